/* Builds the paragraphs, lists and folds that several sections share. */

import { html, createLink } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";

export const GUIDE_URL = "?tab=guide#"; // and the name of a section

export const createLead = (text) => html("p", { class: "sd-sub sd-gd-lead" }, text);
export const createList = (items) =>
  html(
    "ul",
    {},
    items.map((item) => html("li", {}, item)),
  );

/* Two columns, each as long as what is open in it. */
export function createColumns(items) {
  const middle = Math.ceil(items.length / 2);
  return html(
    "div",
    { class: "sd-gd-two" },
    [items.slice(0, middle), items.slice(middle)].map((half) => html("div", {}, half)),
  );
}

/* What a lid hides. */
export const createFold = (lid, ...content) => html("details", { class: "sd-fold" }, html("summary", {}, lid), content);

/* A mark that is also said. */
export const createMark = (mark, label) => [
  html("i", { "aria-hidden": "true" }, mark),
  html("span", { class: "sd-hidden" }, label + ": "),
];

/* The day something was looked up, and where. */
export const createSourceNote = (template, { checked: date, links }) =>
  html(
    "p",
    { class: "sd-sub" },
    fillText(template, { date }),
    links.map((url) => [" ", createLink(url, url.replace(/^https:\/\/(www\.)?/, ""))]),
  );

/* With `part`, a section of the tab, it is opened, too. */
export const tabOpener = (name, part) => () => {
  document.getElementById(name + "-button")?.click();
  scrollTo({ top: 0 });
  if (part) unfold(`#${name} [data-fold="${part}"]`);
};

/* Waits for it, 600 frames at most: a tab that was never looked at has yet to be drawn. */
function unfold(selector, frames = 600) {
  const section = /** @type {HTMLDetailsElement | null} */ (document.querySelector(selector));
  if (!section?.getClientRects().length) {
    if (frames) requestAnimationFrame(() => unfold(selector, frames - 1));
    return;
  }
  section.open = true;
  section.scrollIntoView();
  section.querySelector("summary")?.focus({ preventScroll: true });
}
