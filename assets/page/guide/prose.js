/* Builds the paragraphs, lists and folds that several sections share. */

import { html, createLink } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";

export const GUIDE_URL = "?tab=guide#"; // the name of a section follows

export const createLead = (/** @type {string} */ text) => html("p", { class: "sd-sub sd-gd-lead" }, text);
export const createList = (/** @type {Child[]} */ items) =>
  html(
    "ul",
    {},
    items.map((item) => html("li", {}, item)),
  );

/* Puts the items into two columns, so that an open fold lengthens only its own. */
export function createColumns(/** @type {Child[]} */ items) {
  const sizes = items.map((item) => /** @type {any[]} */ ([item]).flat(2).length),
    half = sizes.reduce((sum, size) => sum + size, 0) / 2;
  let middle = 0;
  for (let filled = 0; filled + sizes[middle] / 2 <= half; middle++) filled += sizes[middle];
  return html(
    "div",
    { class: "sd-gd-two" },
    [items.slice(0, middle), items.slice(middle)].map((half) => html("div", {}, half)),
  );
}

export const createFold = (/** @type {Child} */ head, /** @type {Child[]} */ ...content) =>
  html("details", { class: "sd-fold" }, html("summary", {}, head), content);
/* Screen readers read the label instead of the mark. */
export const createMark = (/** @type {Child} */ mark, /** @type {string} */ label) => [
  html("i", { "aria-hidden": "true" }, mark),
  html("span", { class: "sd-hidden" }, label + ": "),
];

/** Creates a note that says when and in which sources something was checked. @param {string} template
 * @param {{ checked: string, links: string[] }} options */
export const createSourceNote = (template, { checked: date, links }) =>
  html(
    "p",
    { class: "sd-sub" },
    fillText(template, { date }),
    links.map((url) => [" ", createLink(url, url.replace(/^https:\/\/(www\.)?/, ""))]),
  );

/* Returns a function that opens a tab and, with `fold`, also a fold of the tab. */
export const tabOpener = (/** @type {string} */ name, /** @type {string | undefined} */ fold) => () => {
  document.getElementById(name + "-button")?.click();
  scrollTo({ top: 0 });
  if (fold) unfold(`#${name} [data-fold="${fold}"]`);
};

/* Opens a fold. Waits up to 600 frames, because a tab is drawn only when first opened. */
function unfold(/** @type {string} */ selector, frames = 600) {
  const section = /** @type {HTMLDetailsElement | null} */ (document.querySelector(selector));
  if (!section?.getClientRects().length) {
    if (frames) requestAnimationFrame(() => unfold(selector, frames - 1));
    return;
  }
  section.open = true;
  section.scrollIntoView();
  section.querySelector("summary")?.focus({ preventScroll: true });
}
