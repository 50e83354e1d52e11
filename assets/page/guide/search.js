/* Search in the questions and the glossary. First what is found, without a document, so that Node can test it. */

import { html } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";

/* The ids of the questions and the places of the terms that hold what was typed; null if nothing was. */
export function findHits({ answers, glossary }, query) {
  const needle = query.trim().toLowerCase(),
    contains = (...texts) => texts.join(" ").toLowerCase().includes(needle);
  if (!needle) return null;
  return {
    questions: Object.keys(answers.list).filter((id) => {
      const { ask, say } = answers.list[id];
      return contains(ask, ...say.flat(2));
    }),
    terms: glossary.flatMap((entry, i) => (contains(...entry) ? [i] : [])),
  };
}

/* The box, and how to empty it. `show` is told what was found, null to show the page as it was. */
export function createSearchBox(texts, root, showHits) {
  const input = html("input", {
      type: "search",
      placeholder: texts.search.label,
      "aria-label": texts.search.label,
    }),
    count = html("span", { class: "sd-sub", role: "status" });
  const visible = (node) => node.getClientRects().length > 0;

  function update() {
    const hits = findHits(texts, input.value);
    for (const node of root.querySelectorAll("[data-answer]"))
      node.hidden = hits !== null && !hits.questions.includes(node.dataset.answer);
    root.querySelectorAll(".sd-gd-words > div").forEach((node, i) => {
      node.hidden = hits !== null && !hits.terms.includes(i);
    });
    root.toggleAttribute("data-search", Boolean(hits));
    showHits(hits);
    const [questions, terms] = hits ? [hits.questions.length, hits.terms.length] : [0, 0];
    count.textContent = !hits
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
    event.preventDefault(); // else it would open what gets the focus
    [...root.querySelectorAll("[data-answer] > summary")].find(visible)?.focus();
  };
  return { box: html("div", { class: "sd-gd-row sd-gd-search" }, input, count), clear };
}
