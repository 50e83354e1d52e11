/* Sub-pages of sections, one of them shown. The hash of the address names a section. Words are in its JSON. */

import { html, createLink, findParts } from "#page/race/html.js";
import {
  GUIDE_URL,
  createLead,
  createList,
  createFold,
  createColumns,
  createMark,
} from "#page/guide/prose.js";
import { createAnswers } from "#page/guide/answers.js";
import { createLessons } from "#page/guide/lessons.js";
import { createQuiz } from "#page/guide/questions.js";
import { createPractice } from "#page/guide/practice.js";
import { createSearchBox } from "#page/guide/search.js";

/* Each sub-page goes by its first section. */
export const PAGES = [
  ["answers"],
  ["start", "about", "mistakes", "quiz"],
  ["glossary"],
  ["practice"],
  ["teach", "game"],
];
const PAPER = /arXiv (\d{4}\.\d{5})/;

export function mount(element, props) {
  const [W, tabs, sources] = [props.words, props.tabs, props.sources].map((text) =>
      JSON.parse(text),
    ),
    root = element.querySelector(".sd-guide"),
    part = findParts(root);
  /* arXiv numbers lead to the papers. */
  const cited = (text) =>
    text
      .split(PAPER)
      .map((piece, i) =>
        i % 2 ? createLink("https://arxiv.org/abs/" + piece, "arXiv " + piece) : piece,
      );

  const SECTIONS = {
    answers: () => createAnswers(W, tabs, sources.answers),
    start: () => [
      html("p", {}, W.start.lead),
      html(
        "div",
        { class: "sd-gd-row" },
        html(
          "button",
          { type: "button", class: "sd-btn sd-primary", "data-tour": "" },
          W.start.button,
        ),
        html("span", { class: "sd-sub" }, W.start.keys),
      ),
    ],
    about: () =>
      html(
        "div",
        { class: "sd-gd-two" },
        ["is", "not"].map((side) =>
          html("div", {}, html("h3", {}, W.about[side + "_title"]), createList(W.about[side])),
        ),
      ),
    glossary: () =>
      html(
        "dl",
        { class: "sd-gd-words" },
        W.glossary.map(([term, meaning]) =>
          html("div", {}, html("dt", {}, term), html("dd", {}, meaning)),
        ),
      ),
    mistakes: () => [createLead(W.mistakes_words.lead), createColumns(W.mistakes.map(mistake))],
    teach: () => createLessons(W),
    quiz: () => createQuiz(W, tabs),
    game: () => [
      createLead(W.game.lead),
      html(
        "ul",
        {},
        W.game.roles.map(([who, what]) => html("li", {}, html("b", {}, who), " ", what)),
      ),
      html("p", {}, W.game.first),
      html("p", {}, W.game.second),
      createFold(W.quiz.reveal, html("p", {}, W.game.why)),
    ],
    practice: () => createPractice(W, sources),
  };

  const mistake = ([wrong, right, source]) =>
    createFold(
      [createMark("✗", W.mistakes_words.wrong), wrong],
      html("p", {}, createMark("✓", W.mistakes_words.right), right),
      html("p", { class: "sd-sub" }, W.mistakes_words.source + ": ", cited(source)),
    );

  const way = (name, label = W.sections[name]) => html("a", { href: GUIDE_URL + name }, label),
    section = (name) =>
      html(
        "section",
        { "data-section": name },
        html("h2", { tabindex: "-1" }, W.sections[name]),
        SECTIONS[name](),
      ),
    ways = PAGES.map(([name]) => way(name, W.pages[name])),
    pages = PAGES.map((names) =>
      html(
        "div",
        { class: "sd-gd-page" },
        names.length > 1
          ? html(
              "p",
              { class: "sd-sub" },
              W.contents,
              names.map((name) => way(name)),
            )
          : null,
        names.map(section),
      ),
    );

  let shown = 0;
  function show(at) {
    shown = at;
    pages.forEach((page, i) => (page.hidden = i !== at));
    ways.forEach((one, i) => one.setAttribute("aria-current", i === at ? "page" : "false"));
  }

  /* While something is searched, the sub-pages with hits stand below each other. */
  function showHits(hits) {
    if (!hits) return show(shown);
    const found = { answers: hits.questions.length, glossary: hits.terms.length };
    pages.forEach((page, i) => (page.hidden = !found[PAGES[i][0]]));
    ways.forEach((one) => one.setAttribute("aria-current", "false"));
  }

  /* To a section, wherever the way there stands: its sub-page first. The row of sub-pages stays in sight. */
  function go(hash) {
    const name = hash.slice(1),
      at = PAGES.findIndex((names) => names.includes(name));
    finder.clear();
    show(Math.max(0, at));
    if (at < 0) return;
    const title = root.querySelector(`[data-section="${name}"] h2`);
    if (name === PAGES[at][0]) part.nav.scrollIntoView({ block: "nearest" });
    else title.scrollIntoView();
    if (!part.nav.contains(document.activeElement)) title.focus({ preventScroll: true });
  }

  part.nav.setAttribute("aria-label", W.tab);
  part.nav.append(...ways);
  part.body.append(...pages);
  const finder = createSearchBox(W, root, showHits);
  part.nav.after(finder.box);
  show(0);
  root.addEventListener("click", (event) => {
    const to = event.target.closest(`a[href^="${GUIDE_URL}"]`);
    if (!to || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    location.hash = to.hash; // followed, it would be a new page: Gradio's has a base of its own
    go(to.hash);
  });
  window.addEventListener("hashchange", () => go(location.hash));
  go(location.hash);
}
