/* The chart with a column per cycle: the tokens of each draft. */

import { speculativeOf } from "#page/race/run.js";
import { STATE_MARKS } from "#page/race/tokens.js";
import { svg, svgText, svgLine, svgRoot, createBarPaths, createHatch } from "#page/race/svg.js";
import { clamp, toFixed, niceStep } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
export function createColumnChart(W, part, S) {
  function columns(width, right) {
    const cycles = speculativeOf(S.run).cycles,
      n = Math.max(cycles.length, 8);
    return { cycles, n, width, step: (width - right) / n, right };
  }

  function cycleAxis(g, C, y, current) {
    const every = niceStep(C.n, C.width > 300 ? 5 : 4);
    for (let i = 0; i < C.cycles.length; i++)
      if (i === 0 || (i + 1) % every === 0)
        g.append(
          svgText(i * C.step + C.step / 2, y, String(i + 1), i === current ? "sd-b" : "", "middle"),
        );
    g.append(svgText(C.width - C.right + 4, y, W.charts.cycle));
  }

  function drawBars(F) {
    const C = columns(S.room.bars, 40),
      up = Math.max(2, ...C.cycles.map((c) => c.gained)),
      down = Math.max(1, ...C.cycles.map((c) => c.drafts.length - c.accepted));
    const row = clamp(Math.floor(160 / (up + down)), 5, 17),
      zero = 18 + up * row,
      height = zero + down * row + 36,
      pad = C.step > 8 ? 3 : C.step > 4 ? 1 : 0,
      H = createHatch(),
      looks = createBarPaths(),
      marks = [];
    const cell = (i, level, state, on) => {
      const x = i * C.step + pad / 2,
        y = level > 0 ? zero - level * row : zero + (-level - 1) * row + 6;
      looks.add(on ? state : "ghost", x, y + 1, C.step - pad, row - 2, 2);
      if (on && C.step - pad > 11 && row > 12 && state !== "rej" && STATE_MARKS[state])
        marks.push(
          svgText(
            x + (C.step - pad) / 2,
            y + row / 2 + 4,
            state === "bon" ? "+" : STATE_MARKS[state],
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
      g = svgRoot(
        C.width,
        height,
        W.charts.bars_aria,
        svg(
          "desc",
          {},
          fillText(W.charts.bars_told, {
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
      svgLine(0, zero + 3, wide, zero + 3, "sd-ax"),
      svgLine(0, zero - row, wide, zero - row, "sd-dots"),
    );
    const level = F.tau == null ? null : zero - F.tau * row,
      near = level != null && Math.abs(level - (zero - row)) < 12;
    g.append(svgText(wide + 4, zero - row + (near ? 14 : 4), W.charts.plain));
    if (level != null)
      g.append(
        svgLine(0, level, wide, level, "sd-mean"),
        svgText(wide + 4, level + (near ? -2 : 4), "τ " + toFixed(F.tau, 1), "sd-b"),
      );
    cycleAxis(g, C, height - 6, F.a.k - 1);
    part.bars.replaceChildren(g);
  }

  return drawBars;
}
