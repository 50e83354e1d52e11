/* How a result is signed: the stamp and the words of the verdict, and those of one check. */

import { h } from "#page/race/kit.js";

export const note = (...inner) => h("p", { class: "sd-sub sd-after" }, inner);

export function signs(W, part) {
  const LABELS = { good: W.verdict.passed, bad: W.verdict.failed, missed: W.verdict.unsure };
  const stamp = (kind, small) =>
    h(
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
      h("div", {}, h("h2", {}, title), h("p", {}, said)),
    );
  }

  /* One check: its name, its result, what it asks, and what is drawn of it. */
  const body = (title, result, lead, ...more) =>
    h(
      "div",
      { class: "sd-levelbody" },
      h("div", { class: "sd-levelhead" }, h("h2", {}, title), h("b", {}, result)),
      h("p", { class: "sd-sub" }, lead),
      ...more,
    );

  function level(name, passed, ...more) {
    const kind = passed === false ? "bad" : passed === null ? "missed" : "good";
    part[name].replaceChildren(stamp(kind, true), body(.../** @type {[any, any, any]} */ (more)));
  }

  return { verdict, level };
}
