/* Draws each token's exact probability under the rule and under the target. */

import { html, createLegend } from "#page/race/html.js";
import { svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillText, joinSentences, shortenPiece } from "#page/race/text.js";
import { formatChance } from "#page/race/format.js";
import { EXACT, isExact } from "#page/lossless/reading.js";
import { formatRoughly, formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createClosedForm(/** @type {LosslessTexts} */ texts, /** @type {SetCheck} */ setCheck) {
  function paintClosed(/** @type {Certificate} */ certificate) {
    const labels = texts.closed,
      { error, overlap, needed } = certificate.closed,
      passed = isExact(certificate),
      box = html("div", {});
    setCheck(
      "closed",
      passed,
      labels.title,
      error === null
        ? labels.no_law
        : fillText(passed && error ? labels.rounding : labels.error, { error: formatFigure(error) }),
      labels.lead,
      createLegend(["sd-i-target", labels.target], [passed ? "sd-i-good" : "sd-i-rejected", labels.written]),
      box,
      createNote(
        joinSentences(
          fillText(labels.overlap, { beta: formatChance(overlap) }),
          needed && fillText(labels.needed, { needed: formatRoughly(needed) }),
        ),
      ),
    );
    box.append(drawBars(certificate.closed, box.clientWidth));
  }

  function drawBars(/** @type {Certificate["closed"]} */ { rows, rest }, /** @type {number} */ width) {
    const allRows = [...rows, ...(Math.max(...rest) > 1e-6 ? [[null, ...rest]] : [])],
      columnWidth = width / allRows.length,
      baseline = 136,
      hatch = createHatch(),
      chart = svgRoot(width, 162, texts.closed.aria, hatch.defs);
    const highest = Math.max(...allRows.flatMap(([, p, writtenP]) => [p, writtenP || 0])),
      heightOf = (/** @type {number} */ v) => (v / highest) * 118,
      barWidth = Math.min(34, columnWidth * 0.34);
    allRows.forEach(([piece, p, writtenP], i) => {
      const middle = (i + 0.5) * columnWidth,
        difference = writtenP === null ? 0 : writtenP - p,
        isSame = Math.abs(difference) <= EXACT;
      chart.append(
        svgRect(middle - barWidth - 1, baseline - heightOf(p), barWidth, heightOf(p), {
          class: "sd-f-target",
        }),
      );
      if (writtenP !== null)
        chart.append(
          svgRect(
            middle + 1,
            baseline - heightOf(writtenP),
            barWidth,
            heightOf(writtenP),
            isSame ? { class: "sd-f-accepted sd-o-accepted" } : { fill: hatch.fill, class: "sd-s-rejected" },
          ),
        );
      const isOff = Math.abs(difference) >= 0.0005,
        change = (difference > 0 ? " +" : " −") + Math.abs(difference).toFixed(Math.abs(difference) < 0.005 ? 3 : 2);
      chart.append(
        svgText(
          middle,
          baseline - heightOf(Math.max(p, writtenP || 0)) - 7,
          formatChance(p) + (isOff ? change : ""),
          isOff ? "sd-b" : "",
          "middle",
        ),
      );
      chart.append(
        svgText(
          middle,
          baseline + 17,
          piece === null ? texts.closed.rest : shortenPiece(piece, columnWidth),
          piece === null ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    chart.append(svgLine(0, baseline, width, baseline, "sd-ax"));
    return chart;
  }

  return paintClosed;
}
