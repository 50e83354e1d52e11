/* Draws the acceptance rate by position in the draft. The formulas assume the same rate everywhere. */

import { svgText, svgLine } from "#page/race/svg.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { wilson } from "#page/theory/formulas.js";
import { svgDot, drawRows, drawTicks } from "#page/theory/axes.js";

export function createAssumptions(/** @type {TheoryPage} */ { texts, part, createFrame, measured: measuredRun }) {
  function paintPositions(/** @type {Measured} */ measured) {
    part.positionssub.textContent = measured
      ? measured.tree
        ? texts.positions.sub_tree
        : texts.positions.sub
      : texts.measured.none;
    if (!measured) return part.positions.replaceChildren();
    const frame = createFrame("positions", 190, texts.positions.aria, {
        left: 30,
        bottom: 40,
        right: 66,
      }),
      { chart } = frame,
      count = measured.alphas.length,
      step = frame.plotWidth / Math.max(count, 3),
      x = (/** @type {number} */ i) => frame.left + (i + 0.5) * step,
      y = (/** @type {number} */ value) => frame.floor - value * frame.plotHeight;
    drawRows(
      frame,
      [0, 0.5, 1].map((value) => [y(value), String(value), value ? "" : "sd-ax"]),
    );
    chart.append(
      svgLine(frame.left, y(measured.alpha), frame.left + frame.plotWidth, y(measured.alpha), "sd-dots"),
      svgText(frame.left + frame.plotWidth + 6, y(measured.alpha) + 4, "α " + toFixed(measured.alpha), "sd-b"),
    );
    measured.alphas.forEach((alpha, i) => {
      const [low, high] = wilson(measured.acceptedAt[i], measured.judgedAt[i]);
      chart.append(
        svgLine(x(i), y(low), x(i), y(high), "sd-th-whisker"),
        ...[low, high].map((value) => svgLine(x(i) - 5, y(value), x(i) + 5, y(value), "sd-th-whisker")),
        svgDot(x(i), y(alpha), 4.5, "sd-dot-a"),
      );
      if (step > 50) chart.append(svgText(x(i) + 9, y(alpha) + 4, toFixed(alpha), "sd-b"));
    });
    drawTicks(
      frame,
      measured.judgedAt.map((judged, i) => [
        x(i),
        step > 58 ? fillText(texts.positions.tick, { i: i + 1, n: judged }) : i + 1,
      ]),
      texts.positions.axis,
    );
    part.positions.replaceChildren(chart);
  }

  return { positions: () => paintPositions(measuredRun()) };
}
