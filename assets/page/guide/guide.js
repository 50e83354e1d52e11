/* Sub-pages of sections, one of them shown. The hash of the address names a section. Words are in its JSON. */

import { h, link, parts } from "#page/race/kit.js";
import { HERE, lead, list, fold, halves, marked } from "#page/guide/prose.js";
import { answers } from "#page/guide/answers.js";
import { lessons } from "#page/guide/lessons.js";
import { questions } from "#page/guide/questions.js";
import { practice } from "#page/guide/practice.js";
import { searchBox } from "#page/guide/search.js";

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
    part = parts(root);
  /* arXiv numbers lead to the papers. */
  const cited = (text) =>
    text
      .split(PAPER)
      .map((piece, i) =>
        i % 2 ? link("https://arxiv.org/abs/" + piece, "arXiv " + piece) : piece,
      );

  const SECTIONS = {
    answers: () => answers(W, tabs, sources.answers),
    start: () => [
      h("p", {}, W.start.lead),
      h(
        "div",
        { class: "sd-gd-row" },
        h(
          "button",
          { type: "button", class: "sd-btn sd-primary", "data-tour": "" },
          W.start.button,
        ),
        h("span", { class: "sd-sub" }, W.start.keys),
      ),
    ],
    about: () =>
      h(
        "div",
        { class: "sd-gd-two" },
        ["is", "not"].map((side) =>
          h("div", {}, h("h3", {}, W.about[side + "_title"]), list(W.about[side])),
        ),
      ),
    glossary: () =>
      h(
        "dl",
        { class: "sd-gd-words" },
        W.glossary.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning))),
      ),
    mistakes: () => [lead(W.mistakes_words.lead), halves(W.mistakes.map(mistake))],
    teach: () => lessons(W),
    quiz: () => questions(W, tabs),
    game: () => [
      lead(W.game.lead),
      h(
        "ul",
        {},
        W.game.roles.map(([who, what]) => h("li", {}, h("b", {}, who), " ", what)),
      ),
      h("p", {}, W.game.first),
      h("p", {}, W.game.second),
      fold(W.quiz.reveal, h("p", {}, W.game.why)),
    ],
    practice: () => practice(W, sources),
  };

  const mistake = ([wrong, right, source]) =>
    fold(
      [marked("✗", W.mistakes_words.wrong), wrong],
      h("p", {}, marked("✓", W.mistakes_words.right), right),
      h("p", { class: "sd-sub" }, W.mistakes_words.source + ": ", cited(source)),
    );

  const way = (name, label = W.sections[name]) => h("a", { href: HERE + name }, label),
    section = (name) =>
      h(
        "section",
        { "data-section": name },
        h("h2", { tabindex: "-1" }, W.sections[name]),
        SECTIONS[name](),
      ),
    ways = PAGES.map(([name]) => way(name, W.pages[name])),
    pages = PAGES.map((names) =>
      h(
        "div",
        { class: "sd-gd-page" },
        names.length > 1
          ? h(
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
  const finder = searchBox(W, root, showHits);
  part.nav.after(finder.box);
  show(0);
  root.addEventListener("click", (event) => {
    const to = event.target.closest(`a[href^="${HERE}"]`);
    if (!to || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    location.hash = to.hash; // followed, it would be a new page: Gradio's has a base of its own
    go(to.hash);
  });
  window.addEventListener("hashchange", () => go(location.hash));
  go(location.hash);
}
