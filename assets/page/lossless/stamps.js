/* Draws the verdict and the checks, each as a stamp (a tick, × or ?) with its text. */

import { html } from "#page/race/html.js";

export const createNote = (/** @type {Child[]} */ ...inner) => html("p", { class: "sd-sub sd-after" }, inner);

export function createStamps(/** @type {LosslessTexts} */ texts, /** @type {Parts} */ part) {
  const LABELS = {
    good: texts.verdict.passed,
    bad: texts.verdict.failed,
    missed: texts.verdict.unsure,
  };
  const createStamp = (/** @type {Kind} */ kind, /** @type {boolean} */ small) =>
    html(
      "div",
      {
        class: "sd-stamp sd-" + kind + (small ? " sd-small" : ""),
        role: "img",
        "aria-label": LABELS[kind],
      },
      { good: html("i", { class: "sd-tick" }), bad: "×", missed: "?" }[kind],
    );

  /* Writes the verdict only when it changes: screen readers announce each change. */
  function setVerdict(/** @type {Kind} */ kind, /** @type {string} */ title, /** @type {string} */ sentence) {
    const key = kind + title + sentence;
    if (part.verdict.dataset.key === key && part.verdict.firstChild) return;
    part.verdict.dataset.key = key;
    part.verdict.replaceChildren(
      createStamp(kind, false),
      html("div", {}, html("h2", {}, title), html("p", {}, sentence)),
    );
  }

  /** @param {string} title @param {string} result @param {string} lead @param {...Child} more */
  const createBody = (title, result, lead, ...more) =>
    html(
      "div",
      { class: "sd-checkbody" },
      html("div", { class: "sd-checkhead" }, html("h2", {}, title), html("b", {}, result)),
      html("p", { class: "sd-sub" }, lead),
      ...more,
    );

  /* Leaves the controls in place, as a slider is no longer dragged once it is moved. */
  function clearCheck(/** @type {string} */ name) {
    for (const node of [...part[name].children]) if (node !== part.sample) node.remove();
  }

  function setCheck(/** @type {string} */ name, /** @type {boolean | null} */ passed, /** @type {any[]} */ ...more) {
    const kind = passed === false ? "bad" : passed === null ? "missed" : "good";
    clearCheck(name);
    part[name].prepend(createStamp(kind, true), createBody(.../** @type {[any, any, any]} */ (more)));
  }

  return { setVerdict, setCheck, clearCheck };
}
