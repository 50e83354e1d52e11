/* Shows one of the Guide's sub-pages; the address's hash names one of its sections. */

import { html, createLink, findParts } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { GUIDE_URL, createLead, createList, createFold, createColumns, createMark } from "#page/guide/prose.js";
import { createAnswers, markCode } from "#page/guide/answers.js";
import { createLessons } from "#page/guide/lessons.js";
import { createQuiz } from "#page/guide/questions.js";
import { createPractice } from "#page/guide/practice.js";
import { createSearchBox } from "#page/guide/search.js";

/* Each sub-page is named after its first section. */
export const PAGES = [
  ["start", "about", "mistakes", "quiz"],
  ["answers"],
  ["glossary"],
  ["practice"],
  ["teach", "game"],
];
/* The state of each drafted token in the pictures of a cycle's steps. In the second the target reads them. */
const STATES = /** @type {State[][]} */ ([
  ["pending", "pending", "pending"],
  ["plain", "plain", "plain"],
  ["accepted", "accepted", "rejected"],
  ["accepted", "accepted", "resampled"],
]);
const PAPER = /arXiv (\d{4}\.\d{5})/;

/** @type {Mount} */
export function mount(element, props, _watch, _trigger, server) {
  const [texts, tabs, sources] = [props.words, props.tabs, props.sources].map((text) => JSON.parse(text)),
    root = element.querySelector(".sd-guide"),
    part = findParts(root);
  const linkPapers = (/** @type {string} */ text) =>
    text
      .split(PAPER)
      .map((piece, i) => (i % 2 ? createLink("https://arxiv.org/abs/" + piece, "arXiv " + piece) : piece));

  /** @type {Record<string, () => Child>} */
  const SECTIONS = {
    answers: () => createAnswers(texts, tabs, sources.answers),
    start: () =>
      html(
        "div",
        { class: "sd-gd-row" },
        html("button", { type: "button", class: "sd-btn sd-primary", "data-tour": "" }, texts.start.button),
        html("span", { class: "sd-sub" }, texts.start.lead),
      ),
    about: () =>
      html(
        "div",
        { class: "sd-gd-two" },
        ["is", "not"].map((side) =>
          html("div", {}, html("h3", {}, texts.about[side + "_title"]), createList(texts.about[side])),
        ),
      ),
    glossary: () =>
      html(
        "dl",
        { class: "sd-gd-glossary" },
        texts.glossary.map((/** @type {string[]} */ [term, meaning]) =>
          html("div", {}, html("dt", {}, term), html("dd", {}, markCode(meaning))),
        ),
      ),
    mistakes: () => [createLead(texts.mistakes_words.lead), createColumns(texts.mistakes.map(createMistake))],
    teach: () => createLessons(texts),
    quiz: () => createQuiz(texts, tabs),
    game: () => [
      createLead(texts.game.lead),
      html(
        "ul",
        {},
        texts.game.roles.map((/** @type {string[]} */ [who, what]) => html("li", {}, html("b", {}, who), " ", what)),
      ),
      html("p", {}, texts.game.first),
      html("p", {}, texts.game.second),
      createFold(texts.quiz.reveal, html("p", {}, texts.game.why)),
    ],
    practice: () => createPractice(texts, sources),
  };

  const createMistake = (/** @type {string[]} */ [wrong, right, source], /** @type {number} */ i) => {
    const fold = createFold(
      [createMark("×", texts.mistakes_words.wrong), html("q", {}, wrong)],
      html("p", {}, createMark(html("i", { class: "sd-tick" }), texts.mistakes_words.right), right),
      html("p", { class: "sd-sub" }, texts.mistakes_words.source + ": ", linkPapers(source)),
    );
    fold.toggleAttribute("open", !i);
    return fold;
  };

  /* Says first what speculative decoding does: a picture of each step of a cycle, and the words of Race. */
  const createCycle = () =>
    html(
      "div",
      { class: "sd-gd-cycle" },
      JSON.parse(props.reading).map((/** @type {string[]} */ [step, text], /** @type {number} */ i) =>
        html("div", {}, createPicture(STATES[i]), html("b", {}, step), /。$/.test(step) ? "" : " ", text),
      ),
    );
  const createPicture = (/** @type {State[]} */ states) =>
    html(
      "p",
      { "aria-hidden": "true" },
      states.map((state, i) =>
        createChip(/** @type {any} */ ({}), texts.words[state === "resampled" ? 3 : i], state, "span", ""),
      ),
    );

  const isPhone = matchMedia("(max-width: 480px)").matches; // there all sections of a sub-page but the first fold
  const createSection = (/** @type {string} */ name, /** @type {number} */ index) => {
      const title = html("h2", { tabindex: "-1" }, texts.sections[name]),
        content = SECTIONS[name](),
        parts = index && isPhone ? createFold(title, content) : [title, content];
      return html("section", { "data-section": name }, parts);
    },
    links = PAGES.map(([name]) => html("a", { href: GUIDE_URL + name }, texts.pages[name])),
    pages = PAGES.map((names) =>
      html("div", { class: "sd-gd-page" }, names[0] === "start" ? createCycle() : null, names.map(createSection)),
    );

  let shownPage = 0;
  function showPage(/** @type {number} */ pageIndex) {
    shownPage = pageIndex;
    pages.forEach((page, i) => (page.hidden = i !== pageIndex));
    links.forEach((link, i) => link.setAttribute("aria-current", i === pageIndex ? "page" : "false"));
  }

  function showHits(/** @type {Hits | null} */ hits) {
    if (!hits) return showPage(shownPage);
    const counts = /** @type {Record<string, number>} */ ({
      answers: hits.questions.length,
      glossary: hits.terms.length,
    });
    pages.forEach((page, i) => (page.hidden = !counts[PAGES[i][0]]));
    links.forEach((link) => link.setAttribute("aria-current", "false"));
  }

  function goTo(/** @type {string} */ hash) {
    const name = hash.slice(1),
      pageIndex = PAGES.findIndex((names) => names.includes(name));
    searchBox.clear();
    showPage(Math.max(0, pageIndex));
    if (pageIndex < 0) return;
    const title = /** @type {Part} */ (root.querySelector(`[data-section="${name}"] h2`)),
      fold = title.closest("details");
    if (fold) fold.open = true;
    if (name === PAGES[pageIndex][0]) part.nav.scrollIntoView({ block: "nearest" });
    else title.scrollIntoView();
    if (!part.nav.contains(document.activeElement)) title.focus({ preventScroll: true });
  }

  part.nav.setAttribute("aria-label", texts.tab);
  part.nav.append(...links);
  part.body.append(...pages);
  const searchBox = createSearchBox(texts, tabs, server, root, showHits);
  part.nav.before(/** @type {Node} */ (root.querySelector("[data-section=start]")));
  part.nav.after(searchBox.box);
  part.body.append(searchBox.others);
  showPage(0);
  root.addEventListener("click", (event) => {
    const link = /** @type {any} */ (event.target).closest(`a[href^="${GUIDE_URL}"]`);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    location.hash = link.hash; // Gradio's base URL would make the link leave this page
    goTo(link.hash);
  });
  window.addEventListener("hashchange", () => goTo(location.hash));
  goTo(location.hash);
}
