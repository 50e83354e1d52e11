/* Draws the memory wall: what a pass reads and computes, by batch. */

import { html, createBarCell, createLink, createRow } from "#page/race/html.js";
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
import { svgPath, svgDot, createScrollTable, drawTicks } from "#page/theory/axes.js";

/** @param {TheoryTexts} texts @param {Parts} part @param {TheorySettings} settings
 * @param {{ createFrame: TheoryPage["createFrame"], setMachine: (values: object) => void }} options
 * @param {Hardware} hardware */
export function createMemoryWall(texts, part, settings, { createFrame, setMachine }, hardware) {
  const { machines, models, readDate } = hardware;

  function computeCosts() {
    const machine = toMachine(findById(machines, settings.machine)),
      [target, draft] = [settings.target, settings.draft].map((id) => toModel(findById(models, id)));
    return {
      machine,
      target,
      draft,
      free: freeRows(machine, target, settings.bits, settings.batch, settings.context),
      ...batchCosts(machine, target, draft, settings.bits, settings.k, settings.batch, settings.context),
    };
  }

  function paint() {
    for (const name of ["machine", "target", "draft", "bits"]) part[name].value = settings[name];
    part.batch.value = Math.log2(settings.batch);
    part.context.value = Math.log2(settings.context);
    part.batchvalue.textContent = String(settings.batch);
    part.contextvalue.textContent = fillText(texts.wall.tokens, {
      n: settings.context.toLocaleString("en"),
    });
    for (const [name, value] of [
      ["batch", settings.batch],
      ["context", settings.context],
    ])
      part[name].setAttribute("aria-valuetext", String(value));
    const costs = computeCosts();
    paintRoof(costs);
    paintMemory(costs);
    paintWallText(costs);
  }

  function paintWallText(/** @type {Costs} */ { machine, target, draft, plain, c, v, free }) {
    const wallTexts = texts.wall,
      { measured } = findById(machines, settings.machine),
      speedupNow = speedup(settings.alpha, settings.k, c, v),
      bytes = readingSeconds(machine, target, settings.bits, settings.batch, 1, settings.context) * machine.bandwidth;
    const figures = {
      time: formatSeconds(plain),
      rate: toFixed(settings.batch / plain, settings.batch / plain < 10 ? 1 : 0),
      bytes: formatBytes(bytes),
      rows: settings.k + 1,
      v: toFixed(v),
      c: toFixed(c),
      times: formatTimes(speedupNow),
      free: toFixed(free, free < 10 ? 1 : 0),
      alpha: toFixed(settings.alpha),
      k: settings.k,
      share: toFixed((weightsRead(target, settings.batch * (settings.k + 1)) / target.parameters) * 100, 0),
    };
    const boundText =
      free < 1 ? wallTexts.bound : target.experts > 1 ? wallTexts.experts : v > 1.005 ? wallTexts.past : wallTexts.free;
    part.wallsay.textContent = joinSentences(
      fillText(wallTexts.plain, figures),
      fillText(boundText, figures),
      fillText(speedupNow >= 1 ? wallTexts.pays : wallTexts.loses, figures),
      draft.parameters >= target.parameters && wallTexts.backwards,
      measured && fillText(wallTexts.measured, { ...measured, v: toFixed(measured.v) }),
    );
  }

  function paintRoof(/** @type {Costs} */ { machine, target, plain, free }) {
    const frame = createFrame("roof", 270, texts.roof.aria, { left: 62, bottom: 40, top: 30 }),
      { chart } = frame,
      batch = settings.batch,
      lastRows = Math.max(4096, batch * 16),
      secondsOf = (/** @type {number} */ rows) =>
        passSeconds(machine, target, settings.bits, batch, rows / batch, settings.context);
    const span = Math.log2(lastRows),
      x = (/** @type {number} */ rows) => frame.left + (Math.log2(rows) / span) * frame.plotWidth,
      highLog = Math.log(secondsOf(lastRows) * 1.2),
      lowLog = Math.log(plain / 2),
      y = (/** @type {number} */ seconds) =>
        frame.floor - ((Math.log(seconds) - lowLog) / (highLog - lowLog)) * frame.plotHeight,
      ridgeRows = free * batch;
    if (ridgeRows > batch && target.experts === 1)
      chart.append(
        svgRect(x(batch), frame.top, x(Math.min(ridgeRows, lastRows)) - x(batch), frame.plotHeight, {
          class: "sd-th-shade",
        }),
      );
    if (ridgeRows > batch && ridgeRows < lastRows)
      chart.append(
        svgLine(x(ridgeRows), frame.top, x(ridgeRows), frame.floor, "sd-dots"),
        svgText(
          clamp(x(ridgeRows), frame.left + 40, frame.width - 40),
          frame.top - 8,
          fillText(texts.roof.ridge, { rows: toFixed(ridgeRows, ridgeRows < 10 ? 1 : 0) }),
          "sd-b",
          "middle",
        ),
      );
    if (x(Math.min(ridgeRows, lastRows)) - x(batch) > 120 && target.experts === 1)
      chart.append(svgText(x(batch) + 10, frame.top + 18, texts.roof.free));
    drawTicks(
      frame,
      range(0, Math.floor(span / 2)).map((power) => [x(4 ** power), 4 ** power]),
      texts.roof.axis,
    );
    chart.append(svgLine(frame.left, frame.floor, frame.left + frame.plotWidth, frame.floor, "sd-ax"));
    const points = range(0, 120).map((i) => batch * (lastRows / batch) ** (i / 120));
    chart.append(
      svgPath(
        points.map((rows) => [x(rows), y(secondsOf(rows))]),
        "sd-line-a",
      ),
      svgText(frame.left - 9, y(plain) + 4, formatSeconds(plain), "sd-k", "end"),
    );
    if (y(plain) - y(secondsOf(lastRows)) > 18)
      chart.append(
        svgText(frame.left - 9, y(secondsOf(lastRows)) + 4, formatSeconds(secondsOf(lastRows)), "sd-k", "end"),
      );
    const checkRows = batch * (settings.k + 1),
      alignsEnd = x(checkRows) > frame.left + frame.plotWidth - 150;
    chart.append(
      svgDot(x(batch), y(plain), 5, "sd-dot-b"),
      svgDot(x(checkRows), y(secondsOf(checkRows)), 6.5, "sd-th-you"),
      svgText(
        x(batch) + 2,
        y(plain) + 22,
        fillText(texts.roof.plain, { rows: batch }),
        "sd-k",
        x(batch) > frame.left + frame.plotWidth - 90 ? "end" : "start",
      ),
    );
    const isSteep = checkRows > ridgeRows,
      offsetX = alignsEnd ? -12 : isSteep ? 12 : 0; // a rising line leaves space on its right
    chart.append(
      svgText(
        x(checkRows) + offsetX,
        y(secondsOf(checkRows)) + (isSteep && !alignsEnd ? 16 : -13),
        fillText(texts.roof.check, {
          rows: checkRows,
          times: toFixed(secondsOf(checkRows) / plain),
        }),
        "sd-th-mine sd-b",
        alignsEnd ? "end" : "start",
      ),
    );
    part.roof.replaceChildren(chart);
  }

  function paintMemory(/** @type {Costs} */ { machine, target, draft }) {
    const labels = texts.memory,
      parts = memoryBytes(target, draft, settings.bits, settings.batch, settings.context),
      total = parts.reduce((sum, entry) => sum + entry, 0),
      largest = Math.max(total, machine.memory),
      row = (/** @type {string} */ name, /** @type {number} */ bytes, strong = false) =>
        createRow(name, [formatBytes(bytes), createBarCell(bytes / largest, strong)], strong ? "sd-th-best" : null);
    const machinesNeeded = Math.ceil(total / machine.memory);
    part.memory.replaceChildren(
      html(
        "caption",
        {},
        fillText(machinesNeeded > 1 ? labels.too_much : labels.fits, {
          n: machinesNeeded,
          machine: findById(machines, settings.machine).name,
        }),
      ),
      html(
        "tbody",
        {},
        Object.values(labels.parts).map((name, i) => row(name, parts[i])),
        row(labels.total, total, true),
        row(labels.room, machine.memory),
      ),
    );
  }

  function buildSources() {
    const { active, experts } = texts.sources,
      createSource = (/** @type {Record<string, string>} */ { id, link: url }) =>
        html(
          "span",
          { class: "sd-sub" },
          texts.sources.machines[id],
          url ? [" ", createLink(url, new URL(url).hostname, "sd-th-link")] : null,
        );
    part.sources.append(
      createScrollTable(
        texts.sources.heads,
        machines.map((/** @type {any} */ entry) =>
          createRow(
            [entry.name, createSource(entry)],
            [entry.tflops, entry.gbps, entry.gb, entry.mib.toLocaleString("en")].map(String),
          ),
        ),
      ),
      createScrollTable(
        texts.sources.model_heads,
        models.map((/** @type {any} */ entry) =>
          createRow(
            entry.name,
            [
              entry.active ? fillText(active, { all: entry.parameters, active: entry.active }) : entry.parameters,
              entry.embedding ?? "–",
              entry.layers,
              entry.heads + " × " + entry.head_dim,
              entry.kv_heads,
              entry.experts ? fillText(experts, { all: entry.experts, chosen: entry.chosen }) : "–",
            ].map(String),
          ),
        ),
      ),
      html("p", { class: "sd-sub" }, fillText(texts.sources.models, { read: readDate })),
    );
  }

  const options = (/** @type {any[]} */ list) => list.map(({ id, name }) => html("option", { value: id }, name));
  part.machine.append(...options(machines));
  part.target.append(...options(models));
  part.draft.append(...options(models));
  part.bits.append(...[16, 8, 4].map((bits) => html("option", { value: bits }, fillText(texts.wall.bits, { bits }))));
  buildSources();
  for (const name of ["machine", "target", "draft"])
    part[name].onchange = () => setMachine({ [name]: part[name].value });
  part.bits.onchange = () => setMachine({ bits: +part.bits.value });
  for (const name of ["batch", "context"]) part[name].oninput = () => setMachine({ [name]: 2 ** part[name].value });
  return { roof: paint };
}
