/* Draws how far the samples are from the target's distribution. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { niceStep } from "#page/race/format.js";
import { FALSE_ALARM, sampleAt, isImplausible, checksOf } from "#page/lossless/reading.js";
import { formatCount, formatRoughly, formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createSampled(/** @type {LosslessTexts} */ texts, /** @type {SetCheck} */ setCheck) {
  const heading = html("summary", {}),
    explanation = html("p", { class: "sd-sub" }),
    test = html("details", { class: "sd-more" }, heading, explanation); // stays open when all is painted anew

  /* `ofDraws` is how many draws the sampling that still runs makes. */
  function paintSampled(
    /** @type {Certificate} */ certificate,
    /** @type {number} */ requestedDraws,
    isLive = false,
    ofDraws = 0,
  ) {
    const labels = texts.sampled,
      sample = sampleAt(certificate, requestedDraws),
      enumerated = certificate.closed.error === null ? null : certificate.exact, // 0 ÷ 0 has no distance
      { sampled: passed } = checksOf(certificate, requestedDraws),
      draws = formatCount(sample ? sample[0] : 0),
      box = html("div", {}),
      notes = [];
    const [, , statistic, degrees, pBound, impossible] = sample ? sample[1][sample[1].length - 1] : [];
    const chanceText =
      pBound < FALSE_ALARM
        ? labels.tiny
        : pBound < 1
          ? fillText(labels.chance, { p: pBound < 0.005 ? formatFigure(pBound) : pBound.toFixed(2) })
          : labels.usual;
    const result = !sample
      ? "–"
      : statistic === null
        ? fillText(labels.ruled_out, { n: formatCount(impossible), draws })
        : chanceText;
    if (enumerated)
      notes.push(
        fillText(labels.exact, { paths: formatCount(enumerated.paths), tv: formatFigure(enumerated.tv[2]) }),
        enumerated.needed && fillText(labels.needed, { needed: formatRoughly(enumerated.needed) }),
      );
    heading.textContent = fillText(labels.test, { g: formatCount(statistic ?? 0) });
    explanation.textContent = fillText(labels.explained, { degrees });
    setCheck(
      "sampled",
      passed,
      fillText(isLive && ofDraws ? labels.so_far : labels.title, { draws, all: formatCount(ofDraws) }),
      result,
      labels.lead,
      box,
      createNote(joinSentences(notes)),
      sample && statistic !== null && test,
    );
    if (sample) {
      // The first sample of a run is the farthest off. Its axis stays, so that the distances are seen to shrink.
      const widest = isLive ? certificate.sampled[0][1] : [];
      box.append(drawDistances(sample[1], enumerated, box.clientWidth, widest));
    }
  }

  /** @param {any[]} rows @param {any} enumerated @param {number} width @param {any[]} widest */
  function drawDistances(rows, enumerated, width, widest) {
    const left = 96,
      plotWidth = width - left - 56,
      distances = [...rows, ...widest].flatMap((row) => row.slice(0, 2)),
      highest = Math.max(0.02, ...distances, ...(enumerated ? enumerated.tv : [])) * 1.08,
      x = (/** @type {number} */ v) => left + (v / highest) * plotWidth,
      chart = svgRoot(width, 134, texts.sampled.aria);
    rows.forEach((distance, i) => {
      const [tv, plainLimit] = distance, // nearly all samples of plain decoding stay below `plainLimit`
        y = 18 + i * 32,
        isRed = isImplausible(distance),
        pointX = x(tv);
      chart.append(
        svgText(0, y + 4, texts.sampled.rows[i], "sd-k"),
        svgLine(left, y, width, y, "sd-grid"),
        svgRect(left, y - 9, x(plainLimit) - left, 18, { class: "sd-f-plain" }),
      );
      if (enumerated) chart.append(svgLine(x(enumerated.tv[i]), y - 12, x(enumerated.tv[i]), y + 12, "sd-mean"));
      chart.append(
        isRed
          ? svg("path", { d: `M${pointX - 6} ${y - 6}l12 12m0 -12l-12 12`, class: "sd-cross" })
          : svg("circle", { cx: pointX, cy: y, r: 6, class: "sd-f-accepted sd-plausible" }),
        svgText(Math.max(pointX, enumerated ? x(enumerated.tv[i]) : 0) + 13, y + 4, tv.toFixed(3), "sd-b"),
      );
    });
    chart.append(svgLine(left, 104, width, 104, "sd-ax"));
    const step = niceStep(highest, plotWidth / 70);
    for (let v = 0; v <= highest; v += step)
      chart.append(svgText(x(v), 121, v.toFixed(step < 0.01 ? 3 : 2), "", "middle"));
    return chart;
  }

  return paintSampled;
}
