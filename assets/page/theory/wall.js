/* The memory wall: what a pass reads and computes on a machine, and what that makes of a batch. */

import { html, createLink, createRow } from "#page/race/html.js";
import { svgText, svgLine, svgRect } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed, clamp } from "#page/race/format.js";
import {
  toMachine,
  toModel,
  weightsRead,
  readingSeconds,
  passSeconds,
  freeRows,
  batchCosts,
  memoryBytes,
} from "#page/theory/hardware.js";
import { speedup } from "#page/theory/formulas.js";
import { formatTimes, findById, range, formatSeconds, formatBytes } from "#page/theory/format.js";
import { svgPath, svgDot, createBarCell, createScrollTable, drawTicks } from "#page/theory/axes.js";

export function createMemoryWall(W, part, S, { frame, choose }, hardware) {
  const { machines, models, read } = hardware;

  function costs() {
    const machine = toMachine(findById(machines, S.machine)),
      [target, draft] = [S.target, S.draft].map((id) => toModel(findById(models, id)));
    return {
      machine,
      target,
      draft,
      free: freeRows(machine, target, S.bits, S.batch, S.context),
      ...batchCosts(machine, target, draft, S.bits, S.k, S.batch, S.context),
    };
  }

  function paint() {
    for (const name of ["machine", "target", "draft", "bits"]) part[name].value = S[name];
    part.batch.value = Math.log2(S.batch);
    part.context.value = Math.log2(S.context);
    part.batchvalue.textContent = String(S.batch);
    part.contextvalue.textContent = fillText(W.wall.tokens, { n: S.context.toLocaleString("en") });
    for (const [name, value] of [
      ["batch", S.batch],
      ["context", S.context],
    ])
      part[name].setAttribute("aria-valuetext", String(value));
    const R = costs();
    paintRoof(R);
    paintMemory(R);
    paintWallWords(R);
  }

  function paintWallWords({ machine, target, draft, plain, c, v, free }) {
    const B = W.wall,
      { measured } = findById(machines, S.machine),
      now = speedup(S.alpha, S.k, c, v),
      bytes = readingSeconds(machine, target, S.bits, S.batch, 1, S.context) * machine.bandwidth;
    const figures = {
      time: formatSeconds(plain),
      rate: toFixed(S.batch / plain, S.batch / plain < 10 ? 1 : 0),
      bytes: formatBytes(bytes),
      rows: S.k + 1,
      v: toFixed(v),
      c: toFixed(c),
      times: formatTimes(now),
      free: toFixed(free, free < 10 ? 1 : 0),
      alpha: toFixed(S.alpha),
      k: S.k,
      share: toFixed((weightsRead(target, S.batch * (S.k + 1)) / target.parameters) * 100, 0),
    };
    const bound = free < 1 ? B.bound : target.experts > 1 ? B.experts : v > 1.005 ? B.past : B.free;
    part.wallsay.textContent = joinSentences(
      fillText(B.plain, figures),
      fillText(bound, figures),
      fillText(now >= 1 ? B.pays : B.loses, figures),
      draft.parameters >= target.parameters && B.backwards,
      measured && fillText(B.measured, { ...measured, v: toFixed(measured.v) }),
    );
  }

  function paintRoof({ machine, target, plain, free }) {
    const A = frame("roof", 270, W.roof.aria, { left: 62, bottom: 40, top: 30 }),
      { g } = A,
      B = S.batch,
      last = Math.max(4096, B * 16),
      time = (rows) => passSeconds(machine, target, S.bits, B, rows / B, S.context);
    const span = Math.log2(last),
      x = (rows) => A.left + (Math.log2(rows) / span) * A.wide,
      high = Math.log(time(last) * 1.2),
      low = Math.log(plain / 2),
      y = (v) => A.floor - ((Math.log(v) - low) / (high - low)) * A.tall,
      ridge = free * B;
    if (ridge > B && target.experts === 1)
      g.append(
        svgRect(x(B), A.top, x(Math.min(ridge, last)) - x(B), A.tall, { class: "sd-th-shade" }),
      );
    if (ridge > B && ridge < last)
      g.append(
        svgLine(x(ridge), A.top, x(ridge), A.floor, "sd-dots"),
        svgText(
          clamp(x(ridge), A.left + 40, A.width - 40),
          A.top - 8,
          fillText(W.roof.ridge, { rows: toFixed(ridge, ridge < 10 ? 1 : 0) }),
          "sd-b",
          "middle",
        ),
      );
    if (x(Math.min(ridge, last)) - x(B) > 120 && target.experts === 1)
      g.append(svgText(x(B) + 10, A.top + 18, W.roof.free));
    drawTicks(
      A,
      range(0, Math.floor(span / 2)).map((power) => [x(4 ** power), 4 ** power]),
      W.roof.axis,
    );
    g.append(svgLine(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"));
    const points = range(0, 120).map((i) => B * (last / B) ** (i / 120));
    g.append(
      svgPath(
        points.map((rows) => [x(rows), y(time(rows))]),
        "sd-line-a",
      ),
      svgText(A.left - 9, y(plain) + 4, formatSeconds(plain), "sd-k", "end"),
    );
    if (y(plain) - y(time(last)) > 18)
      g.append(svgText(A.left - 9, y(time(last)) + 4, formatSeconds(time(last)), "sd-k", "end"));
    const check = B * (S.k + 1),
      right = x(check) > A.left + A.wide - 150;
    g.append(
      svgDot(x(B), y(plain), 5, "sd-dot-b"),
      svgDot(x(check), y(time(check)), 6.5, "sd-th-you"),
      svgText(
        x(B) + 2,
        y(plain) + 22,
        fillText(W.roof.plain, { rows: B }),
        "sd-k",
        x(B) > A.left + A.wide - 90 ? "end" : "start",
      ),
    );
    const steep = check > ridge,
      aside = right ? -12 : steep ? 12 : 0; // right of a rising line there is room below it
    g.append(
      svgText(
        x(check) + aside,
        y(time(check)) + (steep && !right ? 16 : -13),
        fillText(W.roof.check, { rows: check, times: toFixed(time(check) / plain) }),
        "sd-th-mine sd-b",
        right ? "end" : "start",
      ),
    );
    part.roof.replaceChildren(g);
  }

  function paintMemory({ machine, target, draft }) {
    const M = W.memory,
      parts = memoryBytes(target, draft, S.bits, S.batch, S.context),
      total = parts.reduce((sum, one) => sum + one, 0),
      most = Math.max(total, machine.memory),
      row = (name, bytes, strong) =>
        createRow(
          name,
          [formatBytes(bytes), createBarCell(bytes / most, strong)],
          strong ? "sd-th-best" : null,
        );
    const need = Math.ceil(total / machine.memory);
    part.memory.replaceChildren(
      html(
        "caption",
        {},
        fillText(need > 1 ? M.too_much : M.fits, {
          n: need,
          machine: findById(machines, S.machine).name,
        }),
      ),
      html(
        "tbody",
        {},
        Object.values(M.parts).map((name, i) => row(name, parts[i])),
        row(M.total, total, true),
        row(M.room, machine.memory),
      ),
    );
  }

  function buildSources() {
    const { active, experts } = W.sources,
      origin = ({ id, link: url }) =>
        html(
          "span",
          { class: "sd-sub" },
          W.sources.machines[id],
          url ? [" ", createLink(url, new URL(url).hostname, "sd-th-link")] : null,
        );
    part.sources.append(
      createScrollTable(
        W.sources.heads,
        machines.map((one) =>
          createRow(
            [one.name, origin(one)],
            [one.tflops, one.gbps, one.gb, one.mib.toLocaleString("en")].map(String),
          ),
        ),
      ),
      createScrollTable(
        W.sources.model_heads,
        models.map((one) =>
          createRow(
            one.name,
            [
              one.active
                ? fillText(active, { all: one.parameters, active: one.active })
                : one.parameters,
              one.embedding ?? "–",
              one.layers,
              one.heads + " × " + one.head_dim,
              one.kv_heads,
              one.experts ? fillText(experts, { all: one.experts, chosen: one.chosen }) : "–",
            ].map(String),
          ),
        ),
      ),
      html("p", { class: "sd-sub" }, fillText(W.sources.models, { read })),
    );
  }

  const options = (list) => list.map(({ id, name }) => html("option", { value: id }, name));
  part.machine.append(...options(machines));
  part.target.append(...options(models));
  part.draft.append(...options(models));
  part.bits.append(
    ...[16, 8, 4].map((bits) => html("option", { value: bits }, fillText(W.wall.bits, { bits }))),
  );
  buildSources();
  for (const name of ["machine", "target", "draft"])
    part[name].onchange = () => choose({ [name]: part[name].value });
  part.bits.onchange = () => choose({ bits: +part.bits.value });
  for (const name of ["batch", "context"])
    part[name].oninput = () => choose({ [name]: 2 ** part[name].value });
  return { roof: paint };
}
