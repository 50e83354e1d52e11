/* What several sections begin with or consist of. */

import { h, link } from "#page/race/kit.js";
import { words } from "#page/race/text.js";

export const HERE = "?tab=guide#"; // and the name of a section

export const lead = (text) => h("p", { class: "sd-sub sd-gd-lead" }, text);
export const list = (items) =>
  h(
    "ul",
    {},
    items.map((item) => h("li", {}, item)),
  );

/* Two columns, each as long as what is open in it. */
export function halves(items) {
  const middle = Math.ceil(items.length / 2);
  return h(
    "div",
    { class: "sd-gd-two" },
    [items.slice(0, middle), items.slice(middle)].map((half) => h("div", {}, half)),
  );
}

/* What a lid hides. */
export const fold = (lid, ...content) =>
  h("details", { class: "sd-fold" }, h("summary", {}, lid), content);

/* A mark that is also said. */
export const marked = (mark, label) => [
  h("i", { "aria-hidden": "true" }, mark),
  h("span", { class: "sd-hidden" }, label + ": "),
];

/* The day something was looked up, and where. */
export const checked = (template, { checked: date, links }) =>
  h(
    "p",
    { class: "sd-sub" },
    words(template, { date }),
    links.map((url) => [" ", link(url, url.replace(/^https:\/\/(www\.)?/, ""))]),
  );

/* With `part`, a section of the tab, it is opened, too. */
export const openTab = (name, part) => () => {
  document.getElementById(name + "-button")?.click();
  scrollTo({ top: 0 });
  if (part) unfold(`#${name} [data-fold="${part}"]`);
};

/* Waits for it, 600 frames at most: a tab that was never looked at has yet to be drawn. */
function unfold(selector, frames = 600) {
  const found = /** @type {HTMLDetailsElement | null} */ (document.querySelector(selector));
  if (!found?.getClientRects().length) {
    if (frames) requestAnimationFrame(() => unfold(selector, frames - 1));
    return;
  }
  found.open = true;
  found.scrollIntoView();
  found.querySelector("summary")?.focus({ preventScroll: true });
}
