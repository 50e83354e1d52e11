/* Searches the questions and the glossary. `findHits` uses no DOM, so that Node can test it. */

import { html } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";

/** Returns the ids of the questions and the indices of the terms that contain the query; null for an empty query.
 * @param {Pick<GuideTexts, "answers" | "glossary">} texts @param {string} query */
export function findHits({ answers, glossary }, query) {
  const needle = query.trim().toLowerCase(),
    contains = (/** @type {(string | string[])[]} */ ...texts) => texts.join(" ").toLowerCase().includes(needle);
  if (!needle) return null;
  return {
    questions: Object.keys(answers.list).filter((id) => {
      const { ask, say } = /** @type {Entries} */ (answers.list)[id];
      return contains(ask, ...say.flat(2));
    }),
    terms: glossary.flatMap((entry, i) => (contains(...entry) ? [i] : [])),
  };
}

/** Creates the search box and a function that empties it. `showHits` receives the hits. @param {GuideTexts} texts
 * @param {HTMLElement} root @param {(hits: Hits | null) => void} showHits */
export function createSearchBox(texts, root, showHits) {
  const input = html("input", {
      type: "search",
      placeholder: texts.search.label,
      "aria-label": texts.search.label,
    }),
    status = html("span", { class: "sd-sub", role: "status" });
  const visible = (/** @type {Element} */ node) => node.getClientRects().length > 0;

  function update() {
    const hits = findHits(texts, input.value);
    for (const node of root.querySelectorAll("[data-answer]"))
      node.hidden = hits !== null && !hits.questions.includes(String(node.dataset.answer));
    root.querySelectorAll(".sd-gd-glossary > div").forEach((node, i) => {
      node.hidden = hits !== null && !hits.terms.includes(i);
    });
    root.toggleAttribute("data-search", Boolean(hits));
    showHits(hits);
    const [questions, terms] = hits ? [hits.questions.length, hits.terms.length] : [0, 0];
    status.textContent = !hits
      ? ""
      : questions + terms
        ? fillText(texts.search.hits, { questions, terms })
        : texts.search.none;
  }

  function clear() {
    if (!input.value) return;
    input.value = "";
    update();
  }

  input.oninput = update;
  input.onkeydown = (event) => {
    if (event.key === "Escape") clear();
    if (event.key !== "Enter") return;
    event.preventDefault(); // otherwise this Enter would also open the answer that the next line focuses
    [...root.querySelectorAll("[data-answer] > summary")].find(visible)?.focus();
  };
  return { box: html("div", { class: "sd-gd-row sd-gd-search" }, input, status), clear };
}
