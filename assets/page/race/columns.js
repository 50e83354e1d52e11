/* Draws a chart with one column per cycle. Committed tokens are stacked upwards, all other drafts downwards. */

import { speculativeOf } from "#page/race/run.js";
import { STATE_MARKS } from "#page/race/tokens.js";
import { svg, svgText, svgLine, svgRoot, createBarPaths, createHatch } from "#page/race/svg.js";
import { clamp, toFixed, niceStep } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";

/* Returns whether the number of the cycle at index `i` stands clear of the word at the end of the axis. */
export const isClear = (
  /** @type {Pick<ColumnLayout, "slots" | "columnPx">} */ { slots, columnPx },
  /** @type {number} */ i,
) => (slots - i) * columnPx > 14;

/** `view` holds the run on show, the replay's current time (`view.timeMs`) and the charts' widths (`view.widths`).
 * @param {PlayerTexts} texts @param {Parts} part @param {View} view */
export function createColumnChart(texts, part, view) {
  function layoutColumns(/** @type {number} */ width, /** @type {number} */ right) {
    const cycles = speculativeOf(view.run).cycles,
      slots = Math.max(cycles.length, 8);
    return { cycles, slots, width, columnPx: (width - right) / slots, right };
  }

  /** @param {Element} chart @param {ColumnLayout} layout @param {number} y @param {number} current */
  function drawCycleAxis(chart, layout, y, current) {
    const step = niceStep(layout.slots, layout.width > 300 ? 5 : 4);
    for (let i = 0; i < layout.cycles.length; i++)
      if (i === 0 || ((i + 1) % step === 0 && isClear(layout, i)))
        chart.append(svgText((i + 0.5) * layout.columnPx, y, String(i + 1), i === current ? "sd-b" : "", "middle"));
    chart.append(svgText(layout.width - layout.right + 4, y, texts.charts.cycle));
  }

  function drawBars(/** @type {Figures} */ figures) {
    const layout = layoutColumns(view.widths.bars, 40),
      tallest = Math.max(2, ...layout.cycles.map((cycle) => cycle.gained)),
      deepest = Math.max(1, ...layout.cycles.map((cycle) => cycle.drafts.length - cycle.accepted));
    const row = clamp(Math.floor(160 / (tallest + deepest)), 5, 17),
      baseline = 18 + tallest * row,
      height = baseline + deepest * row + 36,
      pad = layout.columnPx > 8 ? 3 : layout.columnPx > 4 ? 1 : 0,
      hatch = createHatch(),
      bars = createBarPaths(),
      marks = /** @type {SVGElement[]} */ ([]);
    /** @param {number} i @param {number} level @param {State} state @param {boolean} isDone */
    const drawCell = (i, level, state, isDone) => {
      const x = i * layout.columnPx + pad / 2,
        y = level > 0 ? baseline - level * row : baseline + (-level - 1) * row + 6;
      bars.add(isDone ? state : "ghost", x, y + 1, layout.columnPx - pad, row - 2, 2);
      if (isDone && layout.columnPx - pad > 11 && row > 12 && state !== "rejected" && STATE_MARKS[state])
        marks.push(
          svgText(
            x + (layout.columnPx - pad) / 2,
            y + row / 2 + 4,
            state === "bonus" ? "+" : STATE_MARKS[state],
            "sd-cell",
            "middle",
          ),
        );
    };
    layout.cycles.forEach((cycle, i) => {
      const isDone = i < figures.speculative.passes,
        accepted = cycle.drafts.filter((draft) => draft.state === "accepted"),
        others = cycle.drafts.filter((draft) => draft.state !== "accepted");
      accepted.forEach((_, j) => drawCell(i, j + 1, "accepted", isDone));
      if (cycle.targetToken) drawCell(i, accepted.length + 1, cycle.targetToken.state, isDone);
      others.forEach((draft, j) => drawCell(i, -j - 1, draft.state, isDone));
    });
    const plotWidth = layout.width - layout.right,
      chart = svgRoot(
        layout.width,
        height,
        texts.charts.bars_aria,
        svg(
          "desc",
          {},
          fillText(texts.charts.bars_told, {
            cycles: layout.cycles
              .map((cycle) => `${cycle.number}: ${cycle.gained} / ${cycle.drafts.length - cycle.accepted}`)
              .join(", "),
          }),
        ),
        hatch.defs,
        bars.paths((state) => ({
          class: `sd-f-${state} sd-o-${state}`,
          fill: state === "rejected" ? hatch.fill : null,
        })),
        marks,
      );
    chart.append(
      svgLine(0, baseline + 3, plotWidth, baseline + 3, "sd-ax"),
      svgLine(0, baseline - row, plotWidth, baseline - row, "sd-dots"),
    );
    const tauY = figures.tau == null ? null : baseline - figures.tau * row,
      overlaps = tauY != null && Math.abs(tauY - (baseline - row)) < 12;
    chart.append(svgText(plotWidth + 4, baseline - row + (overlaps ? 14 : 4), texts.charts.plain));
    if (figures.tau != null && tauY != null)
      chart.append(
        svgLine(0, tauY, plotWidth, tauY, "sd-mean", { "stroke-dasharray": "6 4" }),
        svgText(plotWidth + 4, tauY + (overlaps ? -2 : 4), "τ " + toFixed(figures.tau, 1), "sd-b"),
      );
    drawCycleAxis(chart, layout, height - 6, figures.speculative.passes - 1);
    part.bars.replaceChildren(chart);
  }

  return drawBars;
}
