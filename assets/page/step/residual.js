/* Charts the residual: max(0, p − q), scaled to the sum 1. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillTemplate, fillText, formatPiece, shortenPiece } from "#page/race/text.js";
import { formatChance, clamp } from "#page/race/format.js";
import { distributionsOf, rowsToShow, rankDrawnFirst } from "#page/step/distributions.js";
import { formatFigure, createMark, createNote, createFormula } from "#page/step/marks.js";

export function createResidualCharts(/** @type {StepPage} */ { texts, view, current }) {
  const sampledToken = () => current().targetToken && current().targetToken.sample;

  function drawAreas(/** @type {Draft} */ draft, /** @type {number} */ weight, /** @type {number} */ width) {
    const { shown, rest } = rowsToShow(draft, rankDrawnFirst(sampledToken()), weight),
      rows = [...shown.filter((row) => row.p != null && row.q != null), { isRest: true, ...rest }],
      columnWidth = width / rows.length,
      baseline = 110,
      hatch = createHatch(),
      chart = svgRoot(width, 146, texts.own.areas_aria, hatch.defs);
    const highest = Math.max(1e-6, ...rows.map(({ isRest, p, q, min }) => (isRest ? p + q - min : Math.max(p, q)))),
      heightOf = (/** @type {number} */ v) => (v / highest) * 80;
    rows.forEach((row, i) => {
      const x = i * columnWidth + 3,
        barWidth = columnWidth - 6,
        lower = row.isRest ? row.min : Math.min(row.p, row.q),
        surplus = row.p - lower,
        deficit = row.q - lower,
        isDrawn = !row.isRest && row.token === sampledToken()?.token,
        surplusHeight = Math.max(heightOf(surplus), isDrawn ? 2 : 0); // so that what is drawn is seen
      chart.append(svgRect(x, baseline - heightOf(lower), barWidth, heightOf(lower), { class: "sd-f-accepted" }));
      if (surplus > 5e-4 || isDrawn)
        chart.append(
          svgRect(x, baseline - heightOf(lower) - surplusHeight, barWidth, surplusHeight, {
            class: "sd-f-resampled sd-o-resampled",
          }),
        );
      if (deficit > 5e-4)
        chart.append(
          svgRect(x, baseline - heightOf(lower + surplus + deficit), barWidth, heightOf(deficit), {
            fill: hatch.fill,
            class: "sd-s-rejected",
          }),
        );
      const top = baseline - heightOf(lower + surplus + deficit) - 6,
        sums = [
          deficit > 0.004 && "−" + formatFigure(deficit),
          (surplus > 0.004 || isDrawn) && "+" + formatFigure(surplus),
        ].filter(Boolean),
        name = row.isRest ? texts.rest_short : shortenPiece(row.piece, columnWidth); // whole, and lower, if drawn
      sums.forEach((label, line) => chart.append(svgText(x + barWidth / 2, top - 13 * line, label, "sd-b", "middle")));
      chart.append(
        isDrawn && name !== formatPiece(row.piece)
          ? svgText(clamp(x + barWidth / 2, 60, width - 60), 141, formatPiece(row.piece), "sd-tk sd-b", "middle")
          : svgText(x + barWidth / 2, baseline + 17, name, row.isRest ? "" : "sd-tk", "middle"),
      );
    });
    chart.append(svgLine(0, baseline, width, baseline, "sd-ax"));
    return chart;
  }

  /** Charts the residual max(0, weight · p − q) and the token sampled from it. Weight < 1: block verification.
   * @param {Draft} draft @param {number} weight @param {number} width @param {string} likeliestText */
  function drawSurpluses(draft, weight, width, likeliestText) {
    const labels = texts.own,
      notation = texts.notation[view.notation],
      distributions = distributionsOf(draft, weight),
      hatch = createHatch(),
      beta = clamp(distributions.overlap, 0, 1),
      overlapWidth = beta * width,
      top = weight < 1 ? 0 : 92,
      chart = svgRoot(width, top + 84, labels.equal_aria, hatch.defs),
      hasRoom = (1 - beta) * width > 34;
    if (weight === 1) {
      chart.append(
        svgText(0, 12, notation.target, "sd-k"),
        svgRect(0, 18, overlapWidth, 24, { class: "sd-f-accepted" }),
        svgRect(overlapWidth, 18, width - overlapWidth, 24, { class: "sd-f-resampled sd-o-resampled" }),
        svgText(0, 60, notation.draft, "sd-k"),
        svgRect(0, 66, overlapWidth, 24, { class: "sd-f-accepted" }),
        svgRect(overlapWidth, 66, width - overlapWidth, 24, {
          fill: hatch.fill,
          class: "sd-s-rejected",
        }),
      );
      if (overlapWidth > 150)
        chart.append(
          svgText(overlapWidth / 2, 34, notation.overlap + " " + formatChance(beta), "sd-on", "middle"),
          svgText(overlapWidth / 2, 82, fillText(labels.kept, { beta: formatChance(beta) }), "sd-on", "middle"),
        );
      else if (overlapWidth > 34)
        for (const y of [34, 82]) chart.append(svgText(overlapWidth / 2, y, formatChance(beta), "sd-on", "middle"));
      if (hasRoom)
        chart.append(
          svgText((overlapWidth + width) / 2, 34, formatChance(1 - beta), "sd-on", "middle"),
          svgRect((overlapWidth + width) / 2 - 17, 70, 34, 16, { class: "sd-f-rejected", rx: 3 }),
          svgText((overlapWidth + width) / 2, 82, formatChance(1 - beta), "sd-on", "middle"),
        );
    }
    drawStrip(chart, distributions, width, top);
    const sentence = sampledToken()
      ? fillTemplate(labels.falls, { own: createMark("resampled", sampledToken().piece) })
      : [likeliestText];
    return [
      chart,
      html("p", { class: "sd-so" }, ...sentence),
      weight === 1 ? createNote(explainResidual(draft, beta)) : null,
      createFormula(
        fillText(labels.formula, {
          residual: weight < 1 ? notation.residual_block : notation.residual,
        }),
      ),
    ].filter(Boolean);
  }

  /* Explains why the replacement is not sampled from p itself. If it were, the drafted token would be written too
   * often, with probability min(p, q) + (1 − β) p. */
  function explainResidual(/** @type {Draft} */ { p, q, piece }, /** @type {number} */ beta) {
    const values = {
      x: formatPiece(piece),
      p: formatFigure(p),
      wrong: formatFigure(Math.min(p, q) + (1 - beta) * p),
    };
    return fillText(texts.own.why, values);
  }

  /** Draws the residual distribution as a strip and marks the sampled token. @param {Element} chart
   * @param {any} distributions @param {number} width @param {number} top */
  function drawStrip(chart, distributions, width, top) {
    const sample = sampledToken(),
      shares = distributions.complete
        .filter((/** @type {Row} */ row) => row.p > row.q)
        .map((/** @type {Row} */ row) => ({ ...row, share: (row.p - row.q) / distributions.surplus }))
        .sort((/** @type {Row} */ a, /** @type {Row} */ b) => b.share - a.share);
    const wideShares = shares.filter(
        (/** @type {Row} */ row) => row.share * width > 16 || (sample && row.token === sample.token),
      ),
      restShare = Math.max(
        0,
        1 - wideShares.reduce((/** @type {number} */ sum, /** @type {Row} */ row) => sum + row.share, 0),
      );
    let x = 0;
    chart.append(svgText(0, top + 20, texts.own.scaled, "sd-k"));
    for (const row of [...wideShares, { share: restShare }]) {
      const barWidth = row.share * width,
        sampled = sample && row.token === sample.token;
      if (barWidth < 0.5 && !sampled) continue;
      chart.append(svgRect(x, top + 40, barWidth, 26, { class: "sd-f-resampled sd-o-resampled" }));
      if (barWidth > 40 && !sampled)
        chart.append(
          svgText(
            x + 6,
            top + 57,
            row.piece == null ? texts.rest_short : shortenPiece(row.piece, barWidth - 8),
            row.piece == null ? "sd-on" : "sd-tk sd-on",
          ),
        );
      if (barWidth > 30)
        chart.append(svgText(x + barWidth / 2, top + 82, formatChance(row.share), sampled ? "sd-b" : "", "middle"));
      if (sampled) {
        const isLeft = x + barWidth / 2 < width / 2,
          textX = x + barWidth / 2 + (isLeft ? 10 : -10);
        chart.append(
          svg("path", { d: `M${x + barWidth / 2 - 6} ${top + 28}h12l-6 9z`, class: "sd-dot-a" }),
          svgText(textX, top + 37, formatPiece(row.piece), "sd-tk sd-b", isLeft ? "start" : "end"),
        );
      }
      x += barWidth;
    }
  }

  return { drawAreas, drawSurpluses };
}
