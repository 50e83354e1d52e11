/* Draws probabilities as bars: both models' for a draft, or only the target's. */

import { svgText, svgRect, svgRoot } from "#page/race/svg.js";
import { shortenPiece } from "#page/race/text.js";
import { formatChance } from "#page/race/format.js";
import { UNNAMED } from "#page/race/run.js";
import { MAX_ROWS, rowsToShow, rankByTarget } from "#page/step/distributions.js";

const TEST_ROWS = 3; // tokens beside a draft's test: further ones would push its formula off the screen

// compares pieces if a server sent no token ids
/** @param {any} a @param {any} b */
const isSameToken = (a, b) => (a.token === UNNAMED || b.token === UNNAMED ? a.piece === b.piece : a.token === b.token);

export function createProbabilityBars(/** @type {StepPage} */ { texts, current }) {
  function drawBars(/** @type {Draft} */ draft, /** @type {number} */ width) {
    const { shown, rest } = rowsToShow(draft, rankByTarget, 1, TEST_ROWS),
      rows = [...shown, { isRest: true, ...rest }],
      left = 84,
      rowHeight = 30,
      highest = Math.max(1e-6, ...rows.flatMap((row) => [row.p || 0, row.q || 0])),
      widthOf = (/** @type {number} */ v) => (v / highest) * (width - left - 52);
    const chart = svgRoot(width, rows.length * rowHeight + 6, texts.position.bars_aria);
    rows.forEach((row, i) => {
      const y = i * rowHeight,
        cls = i === 0 ? "sd-b" : "sd-k";
      if (i === 0) chart.append(svgRect(-8, y - 3, width + 8, rowHeight - 1, { rx: 6, class: "sd-f-hot" }));
      chart.append(
        svgText(
          0,
          y + 18,
          row.isRest ? texts.rest : shortenPiece(row.piece, left),
          row.isRest ? "" : i ? "sd-tk" : "sd-tk sd-b",
        ),
      );
      for (const [value, barClass, offset] of [
        [row.p, "sd-f-target", 2],
        [row.q, "sd-f-draft sd-s-draft", 14],
      ]) {
        if (value != null)
          chart.append(svgRect(left, y + offset, widthOf(value), 11, { class: barClass, "stroke-width": 0.6 }));
        chart.append(
          svgText(
            left + (value == null ? 0 : widthOf(value)) + 6,
            y + offset + 10,
            value == null ? "·" : formatChance(value),
            offset === 2 ? cls : i === 0 ? "sd-b" : "",
          ),
        );
      }
    });
    return chart;
  }

  /* Draws the target's distribution at its own token or, if given, at a server's drafted token `draft`. */
  function drawRow(/** @type {number} */ width, draft = /** @type {any} */ (null)) {
    const token = draft
        ? {
            distribution: draft.target,
            state: "plain",
            sample: draft.piece ? { token: draft.token, piece: draft.piece, prob: draft.p } : null,
          }
        : current().targetToken,
      labels = texts.own,
      state = token.state;
    const rows = token.distribution.top.slice(0, MAX_ROWS),
      sampleRow = token.sample && rows.findIndex((/** @type {Candidate} */ entry) => isSameToken(entry, token.sample));
    if (token.sample && sampleRow < 0) rows.push({ ...token.sample, prob: token.sample.prob ?? 0 });
    const rowHeight = 26,
      restProb = Math.max(
        0,
        1 - rows.reduce((/** @type {number} */ sum, /** @type {Candidate} */ entry) => sum + entry.prob, 0),
      ),
      allRows = [...rows, { piece: null, prob: restProb }],
      highest = Math.max(...allRows.map((entry) => entry.prob)),
      chart = svgRoot(width, allRows.length * rowHeight, labels.row);
    allRows.forEach((entry, i) => {
      const isSample = token.sample && entry.piece !== null && isSameToken(entry, token.sample),
        barWidth = (entry.prob / highest) * (width - 84 - 110);
      if (isSample)
        chart.append(
          svgRect(-8, i * rowHeight, width + 8, rowHeight - 2, {
            rx: 6,
            class: "sd-f-" + (state === "plain" ? "hot" : state),
          }),
        );
      chart.append(
        svgText(
          0,
          i * rowHeight + 16,
          entry.piece === null ? texts.rest : shortenPiece(entry.piece, 84),
          entry.piece === null ? "" : isSample ? "sd-tk sd-on" : "sd-tk",
        ),
        svgRect(84, i * rowHeight + 6, barWidth, 11, {
          class: isSample && state !== "plain" ? "sd-f-ink" : "sd-f-target",
        }),
        svgText(
          84 + barWidth + 6,
          i * rowHeight + 16,
          formatChance(entry.prob) + (isSample ? " " + (draft ? texts.served.kept : labels.drawn) : ""),
          isSample ? "sd-b" + (state === "plain" ? "" : " sd-on") : "",
        ),
      );
    });
    return chart;
  }

  return { drawBars, drawRow };
}
