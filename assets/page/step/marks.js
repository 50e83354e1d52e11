/* Formats figures and creates marked tokens, headings, notes and formulas for the tab Step through. */

import { html } from "#page/race/html.js";
import { formatPiece } from "#page/race/text.js";

// uses a minus sign, because a line would break at a hyphen
export const formatFigure = (/** @type {number} */ x) =>
  x >= 0.1 || x === 0 ? x.toFixed(2) : x >= 0.001 ? x.toPrecision(2) : x.toExponential(0).replace("-", "−");
/** @param {State} state @param {string} piece */
export const createMark = (state, piece) => html("mark", { class: "sd-" + state }, formatPiece(piece));
export const createTitle = (/** @type {Child} */ content) => html("h3", {}, content);
export const createNote = (/** @type {Child} */ content) => html("p", { class: "sd-sub sd-gapped" }, content);
export const createFormula = (/** @type {Child} */ content) => html("div", { class: "sd-formula" }, content);
