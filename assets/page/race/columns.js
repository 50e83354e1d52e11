/* The charts with a column per cycle: tokens of each draft, and the acceptance rate. */

import { speculative } from "#page/race/run.js";
import { MARK, s, text, line, svg, bundle, hatch } from "#page/race/kit.js";
import { clamp, fixed, words, niceStep } from "#page/race/text.js";

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
export function columnCharts(W, part, S) {
  function columns(width, right) {
    const cycles = speculative(S.run).cycles,
      n = Math.max(cycles.length, 8);
    return { cycles, n, width, step: (width - right) / n, right };
  }

  function cycleAxis(g, C, y, current) {
    const every = niceStep(C.n, C.width > 300 ? 5 : 4);
    for (let i = 0; i < C.cycles.length; i++)
      if (i === 0 || (i + 1) % every === 0)
        g.append(
          text(i * C.step + C.step / 2, y, String(i + 1), i === current ? "sd-b" : "", "middle"),
        );
    g.append(text(C.width - C.right + 4, y, W.charts.cycle));
  }

  function drawBars(F) {
    const C = columns(S.room.bars, 40),
      up = Math.max(2, ...C.cycles.map((c) => c.gained)),
      down = Math.max(1, ...C.cycles.map((c) => c.drafts.length - c.accepted));
    const row = clamp(Math.floor(160 / (up + down)), 5, 17),
      zero = 18 + up * row,
      height = zero + down * row + 36,
      pad = C.step > 8 ? 3 : C.step > 4 ? 1 : 0,
      H = hatch(),
      looks = bundle(),
      marks = [];
    const cell = (i, level, state, on) => {
      const x = i * C.step + pad / 2,
        y = level > 0 ? zero - level * row : zero + (-level - 1) * row + 6;
      looks.add(on ? state : "ghost", x, y + 1, C.step - pad, row - 2, 2);
      if (on && C.step - pad > 11 && row > 12 && state !== "rej" && MARK[state])
        marks.push(
          text(
            x + (C.step - pad) / 2,
            y + row / 2 + 4,
            state === "bon" ? "+" : MARK[state],
            "sd-cell",
            "middle",
          ),
        );
    };
    C.cycles.forEach((cycle, i) => {
      const on = i < F.a.k,
        kept = cycle.drafts.filter((d) => d.state === "acc"),
        lost = cycle.drafts.filter((d) => d.state !== "acc");
      kept.forEach((_, j) => cell(i, j + 1, "acc", on));
      if (cycle.own) cell(i, kept.length + 1, cycle.own.state, on);
      lost.forEach((draft, j) => cell(i, -j - 1, draft.state, on));
    });
    const wide = C.width - C.right,
      g = svg(
        C.width,
        height,
        W.charts.bars_aria,
        s(
          "desc",
          {},
          words(W.charts.bars_told, {
            cycles: C.cycles
              .map((c) => `${c.number}: ${c.gained} / ${c.drafts.length - c.accepted}`)
              .join(", "),
          }),
        ),
        H.defs,
        looks.paths((state) => ({
          class: `sd-f-${state} sd-o-${state}`,
          fill: state === "rej" ? H.fill : null,
        })),
        marks,
      );
    g.append(
      line(0, zero + 3, wide, zero + 3, "sd-ax"),
      line(0, zero - row, wide, zero - row, "sd-dots"),
    );
    const level = F.tau == null ? null : zero - F.tau * row,
      near = level != null && Math.abs(level - (zero - row)) < 12;
    g.append(text(wide + 4, zero - row + (near ? 14 : 4), W.charts.plain));
    if (level != null)
      g.append(
        line(0, level, wide, level, "sd-mean"),
        text(wide + 4, level + (near ? -2 : 4), "τ " + fixed(F.tau, 1), "sd-b"),
      );
    cycleAxis(g, C, height - 6, F.a.k - 1);
    part.bars.replaceChildren(g);
  }

  function drawAlpha(F) {
    part.alpha.closest("figure").hidden = !F.told; // of sums alone there is no course to draw
    if (!F.told) return;
    const C = columns(S.room.alpha, 40),
      height = 196,
      top = 8,
      bottom = 24,
      y = (a) => top + (1 - a) * (height - top - bottom),
      x = (i) => i * C.step + C.step / 2;
    const g = svg(
        C.width,
        height,
        W.charts.alpha_aria,
        s(
          "desc",
          {},
          C.cycles
            .filter((c) => c.sum.judged)
            .map((c) => `${c.number}: ${fixed(c.sum.accepted / c.sum.judged)}`)
            .join(", "),
        ),
      ),
      wide = C.width - C.right;
    for (const a of [0, 0.5, 1]) g.append(line(0, y(a), wide, y(a), a ? "sd-grid" : "sd-ax"));
    const points = C.cycles.map((cycle, i) =>
      cycle.sum.judged ? [x(i), y(cycle.sum.accepted / cycle.sum.judged)] : null,
    );
    const path = (list) =>
      list
        .filter(Boolean)
        .map(([px, py], i) => (i ? "L" : "M") + px.toFixed(1) + " " + py.toFixed(1))
        .join("");
    g.append(
      s("path", { d: path(points) || "M0 0", class: "sd-ghost-line" }),
      s("path", { d: path(points.slice(0, F.a.k)) || "M0 0", class: "sd-line-a" }),
    );
    const now = points.slice(0, F.a.k).filter(Boolean).pop();
    const label = now ? clamp(now[1] + 4, top + 4, height - bottom) : null;
    for (const a of [0, 1])
      if (label == null || Math.abs(label - 4 - y(a)) > 13)
        g.append(text(wide + 4, y(a) + 4, String(a)));
    if (now)
      g.append(
        s("circle", { cx: now[0], cy: now[1], r: 3.5, class: "sd-dot-a" }),
        text(wide + 4, label, fixed(F.alpha), "sd-b"),
      );
    cycleAxis(g, C, height - 4, F.a.k - 1);
    part.alpha.replaceChildren(g);
  }

  return { drawBars, drawAlpha };
}
