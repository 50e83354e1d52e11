/* Formats figures; creates marked tokens, headings, notes and formulas. */

import { html } from "#page/race/html.js";
import { formatPiece } from "#page/race/text.js";

// uses a minus sign, because a line would break at a hyphen
export const formatFigure = (/** @type {number} */ x, more = 0) =>
  x >= 0.1 || x === 0
    ? x.toFixed(2 + more)
    : x >= 0.001
      ? x.toPrecision(2 + more)
      : x.toExponential(more).replace("-", "−");

/* Formats p, q and p / q, with so many digits that the first two as printed give the third. */
export function formatRatio(/** @type {number} */ p, /** @type {number} */ q) {
  const ratio = formatFigure(p / q),
    format = (/** @type {number} */ more) => [p, q].map((x) => formatFigure(x, more)),
    isExact = (/** @type {string[]} */ printed) => {
      const [top, bottom] = printed.map((text) => Number(text.replace("−", "-")));
      return formatFigure(top / bottom) === ratio;
    };
  return [...([0, 1, 2, 3].map(format).find(isExact) ?? format(4)), ratio];
}
/** @param {State} state @param {string} piece */
export const createMark = (state, piece) => html("mark", { class: "sd-" + state }, formatPiece(piece));
export const createTitle = (/** @type {Child} */ content) => html("h3", {}, content);
export const createNote = (/** @type {Child} */ content) => html("p", { class: "sd-sub sd-gapped" }, content);
export const createFormula = (/** @type {Child} */ content) => html("div", { class: "sd-formula" }, content);
