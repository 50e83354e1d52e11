/* How this tab writes: figures, tokens within a sentence, headings and remarks. */

import { h } from "#page/race/kit.js";
import { shown } from "#page/race/text.js";

export const figure = (x) =>
  x >= 0.1 || x === 0
    ? x.toFixed(2)
    : x >= 0.001
      ? x.toPrecision(2)
      : x.toExponential(0).replace("-", "−"); // a line would break at a hyphen
export const mark = (state, piece) => h("mark", { class: "sd-" + state }, shown(piece));
export const title = (content) => h("h3", {}, content);
export const note = (content) => h("p", { class: "sd-sub sd-gapped" }, content);
export const formula = (content) => h("div", { class: "sd-formula" }, content);
