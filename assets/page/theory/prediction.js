/* Compares a run's measured and predicted speed-up, and explains the difference. */

import { svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { expectedTokens, speedup, wilson } from "#page/theory/formulas.js";
import { formatTimes } from "#page/theory/format.js";

export function createPrediction(/** @type {TheoryPage} */ { texts, part, widths, measured: measuredRun }) {
  function paintMeasured() {
    const labels = texts.measured,
      measured = measuredRun();
    if (!measured) {
      part.measured.replaceChildren();
      part.measuredsay.textContent = labels.none;
      return;
    }
    const [low, high] = wilson(measured.accepted, measured.judged).map((alpha) =>
      speedup(alpha, measured.k, measured.c, measured.v, measured.o),
    );
    const formula = speedup(measured.alpha, measured.k, measured.c, measured.v, measured.o),
      costs = { c: toFixed(measured.c), v: toFixed(measured.v), o: toFixed(measured.o) };
    const bars = [
      [
        labels.free,
        expectedTokens(measured.alpha, measured.k),
        fillText(labels.free_note, { alpha: toFixed(measured.alpha), k: measured.k }),
        "sd-th-pale",
      ],
      [labels.formula, formula, fillText(labels.formula_note, costs), "sd-f-target", [low, high]],
      [
        labels.accounted,
        measured.accounted,
        fillText(labels.accounted_note, { tau: toFixed(measured.tau) }),
        "sd-f-target",
      ],
      [labels.measured, measured.speedup, labels.measured_note, "sd-th-you"],
      [
        labels.perfect,
        speedup(1, measured.k, 0, measured.v, measured.o),
        fillText(labels.perfect_note, { k: measured.k, v: costs.v, o: costs.o }),
        "sd-th-pale",
      ],
    ];
    part.measured.replaceChildren(drawBars(bars));
    part.measuredsay.textContent = explainGap(measured, formula, low, high);
  }

  function drawBars(/** @type {any[][]} */ bars) {
    const rowHeight = 54,
      width = widths.measured,
      chart = svgRoot(width, bars.length * rowHeight + 18, texts.measured.aria),
      highest = Math.max(...bars.map(([, value, , , interval]) => (interval ? interval[1] : value))),
      x = (/** @type {number} */ v) => (v / highest) * (width - 62);
    bars.forEach(([name, value, note, cls, interval], i) => {
      const y = i * rowHeight,
        barTop = y + 21;
      chart.append(
        svgText(0, y + 14, name, i === bars.length - 1 ? "sd-b" : "sd-k"),
        svgRect(0, barTop, x(value), 17, { class: cls }),
        svgText(x(value) + 8, y + 34, formatTimes(value), "sd-b"),
      );
      if (width > 420) chart.append(svgText(width, y + 14, note, "", "end"));
      if (interval)
        chart.append(
          svgLine(x(interval[0]), barTop + 23, x(interval[1]), barTop + 23, "sd-th-whisker"),
          ...interval.map((/** @type {number} */ v) => svgLine(x(v), barTop + 19, x(v), barTop + 27, "sd-th-whisker")),
        );
      chart.append(svgLine(x(1), barTop - 2, x(1), barTop + 19, "sd-th-plain"));
    });
    chart.append(svgText(x(1), bars.length * rowHeight + 10, texts.measured.plain, "", "middle"));
    return chart;
  }

  /** Explains the gaps between formula, accounted and measured speed-up. @param {Measured} measured
   * @param {number} formula @param {number} low @param {number} high */
  function explainGap(measured, formula, low, high) {
    const labels = texts.measured,
      isInside = measured.speedup >= low && measured.speedup <= high,
      measuredGap = measured.accounted - measured.speedup,
      values = {
        measured: formatTimes(measured.speedup),
        low: toFixed(low),
        high: toFixed(high),
        n: measured.judged,
      };
    const formulaGap = measured.accounted - formula,
      parts = [fillText(isInside ? labels.inside : labels.outside, values)];
    parts.push(
      fillText(
        Math.abs(formulaGap) < 0.02
          ? labels.even
          : measured.share < 0.98
            ? labels.shorter
            : measured.varied
              ? labels.varied
              : labels.uneven,
        {
          by: formatTimes(Math.abs(formulaGap)),
          way: formulaGap < 0 ? labels.less : labels.more,
          share: toFixed(measured.share * 100, 0),
        },
      ),
    );
    parts.push(
      fillText(Math.abs(measuredGap) < 0.02 * measured.speedup ? labels.closes : labels.open, {
        by: formatTimes(Math.abs(measuredGap)),
        way: measuredGap > 0 ? labels.slower_than : labels.faster_than,
      }),
    );
    const alphas = measured.alphas.map((alpha) => toFixed(alpha)).join(", ");
    return joinSentences(parts, fillText(measured.tree ? labels.by_level : labels.by_place, { alphas }));
  }

  return { measured: paintMeasured };
}
