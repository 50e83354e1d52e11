/* How a result is signed: the stamp and the words of the verdict, and those of one check. */

import { html } from "#page/race/html.js";

export const createNote = (...inner) => html("p", { class: "sd-sub sd-after" }, inner);

export function createSigns(W, part) {
  const LABELS = { good: W.verdict.passed, bad: W.verdict.failed, missed: W.verdict.unsure };
  const stamp = (kind, small) =>
    html(
      "div",
      {
        class: "sd-stamp sd-" + kind + (small ? " sd-small" : ""),
        role: "img",
        "aria-label": LABELS[kind],
      },
      { good: "✓", bad: "✗", missed: "?" }[kind],
    );

  /* A status line speaks when it changes, so a growing sample leaves it alone until it does. */
  function verdict(kind, title, said) {
    const key = kind + title + said;
    if (part.verdict.dataset.said === key && part.verdict.firstChild) return;
    part.verdict.dataset.said = key;
    part.verdict.replaceChildren(
      stamp(kind, false),
      html("div", {}, html("h2", {}, title), html("p", {}, said)),
    );
  }

  /* One check: its name, its result, what it asks, and what is drawn of it. */
  const body = (title, result, lead, ...more) =>
    html(
      "div",
      { class: "sd-levelbody" },
      html("div", { class: "sd-levelhead" }, html("h2", {}, title), html("b", {}, result)),
      html("p", { class: "sd-sub" }, lead),
      ...more,
    );

  function level(name, passed, ...more) {
    const kind = passed === false ? "bad" : passed === null ? "missed" : "good";
    part[name].replaceChildren(stamp(kind, true), body(.../** @type {[any, any, any]} */ (more)));
  }

  return { verdict, level };
}
