/* Searches the questions, the glossary and what other places of the page say. `findHits` uses no DOM. */

import { html, createButton } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { GUIDE_URL, tabOpener } from "#page/guide/prose.js";

/** Returns the ids of the questions and the indices of the terms and places that contain the query or, if none does,
 * all of its words; null for an empty query. @param {Pick<GuideTexts, "answers" | "glossary">} texts
 * @param {string} query @param {string[][]} places */
export function findHits({ answers, glossary }, query, places = []) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const find = (/** @type {string[]} */ needles) => {
    const contains = (/** @type {any[]} */ ...texts) => {
      const text = texts.flat(Infinity).join(" ").toLowerCase();
      return needles.every((needle) => text.includes(needle));
    };
    return {
      questions: Object.keys(answers.list).filter((id) => {
        const { ask, say } = /** @type {Entries} */ (answers.list)[id];
        return contains(ask, say);
      }),
      terms: glossary.flatMap((entry, i) => (contains(entry) ? [i] : [])),
      places: places.flatMap(([, ...said], i) => (contains(said) ? [i] : [])),
    };
  };
  if (!words.length) return null;
  const hits = find([words.join(" ")]);
  return Object.values(hits).some((found) => found.length) ? hits : find(words);
}

/** Creates the search box, the list of hits at other places, and a function that empties the box. `showHits` receives
 * the hits. @param {GuideTexts} texts @param {Record<string, string>} tabs @param {Server} server
 * @param {HTMLElement} root @param {(hits: Hits | null) => void} showHits */
export function createSearchBox(texts, tabs, server, root, showHits) {
  const input = html("input", {
      type: "search",
      placeholder: texts.search.label,
      "aria-label": texts.search.label,
    }),
    status = html("span", { class: "sd-sub", role: "status" }),
    list = html("dl", { class: "sd-gd-glossary" }),
    others = html("div", { class: "sd-gd-page", hidden: true }, html("h2", {}, texts.search.elsewhere), list);
  const visible = (/** @type {Element} */ node) => node.getClientRects().length > 0;
  /** @type {Promise<void> | null} */
  let loading = null;
  let places = /** @type {string[][]} */ ([]); // each a tab or a section of the Guide, a heading, a text

  function createEntry(/** @type {string[]} */ [place, heading, text]) {
    const section = /** @type {Record<string, string>} */ (texts.sections)[place],
      label = fillText(texts.see, { tab: section || tabs[place] }),
      link = section
        ? html("a", { href: GUIDE_URL + place }, label)
        : createButton(label, tabOpener(place, ""), "sd-link sd-inline");
    return html("div", {}, html("dt", {}, heading), html("dd", {}, text + " ", link));
  }

  async function load() {
    places = await server.elsewhere().catch(() => []);
    if (!places.length) loading = null; // the next letter tries again
    list.replaceChildren(...places.map(createEntry));
    update();
  }

  function update() {
    const hits = findHits(texts, input.value, places),
      found = hits ? Object.values(hits).flat().length : 0;
    const show = (/** @type {Iterable<any>} */ nodes, /** @type {number[] | undefined} */ shown) =>
      [...nodes].forEach((node, i) => (node.hidden = Boolean(shown) && !shown?.includes(i)));
    for (const node of root.querySelectorAll("[data-answer]"))
      node.hidden = hits !== null && !hits.questions.includes(String(node.dataset.answer));
    show(root.querySelectorAll("[data-section=glossary] dl > div"), hits?.terms);
    show(list.children, hits?.places);
    others.hidden = !hits?.places.length;
    root.toggleAttribute("data-search", Boolean(hits));
    showHits(hits);
    status.textContent = !hits ? "" : found ? fillText(texts.search.hits, { n: found }) : texts.search.none;
  }

  function clear() {
    if (!input.value) return;
    input.value = "";
    update();
  }

  input.oninput = () => {
    loading ||= load();
    update();
  };
  input.onkeydown = (event) => {
    if (event.key === "Escape") clear();
    if (event.key !== "Enter") return;
    event.preventDefault(); // otherwise this Enter would also open the answer that the next line focuses
    [...root.querySelectorAll("[data-answer] > summary")].find(visible)?.focus();
  };
  return { box: html("div", { class: "sd-gd-row sd-gd-search" }, input, status), others, clear };
}
