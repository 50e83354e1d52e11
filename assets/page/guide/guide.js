// @ts-check
/* The guide's page, section by section; the short ones are here. Words are all in its JSON. */

const { h, button, link, parts } = require("../race/player.js");
const { lead, list } = require("./prose.js"),
  { lessons } = require("./lessons.js"),
  { questions } = require("./questions.js"),
  { game } = require("./game.js"),
  { sheet } = require("./worksheet.js"),
  { practice } = require("./practice.js");

const PAPER = /arXiv (\d{4}\.\d{5})/;

function mount(element, props) {
  const W = JSON.parse(props.words),
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
    mistakes: () => [
      lead(W.mistakes_words.lead),
      h("ol", { class: "sd-gd-wrongs" }, W.mistakes.map(mistake)),
    ],
    teach: () => lessons(W, part, props),
    quiz: () => questions(W, JSON.parse(props.tabs)),
    game: () => game(W),
    sheet: () => sheet(W, root, part),
    practice: () => practice(W, JSON.parse(props.sources)),
  };

  function mistake([wrong, right, source]) {
    const M = W.mistakes_words,
      said = (mark, label) => [
        h("i", { "aria-hidden": "true" }, mark),
        h("span", { class: "sd-hidden" }, label + ": "),
      ];
    return h(
      "li",
      {},
      h("p", { class: "sd-gd-wrong" }, said("✗", M.wrong), wrong),
      h(
        "div",
        {},
        h("p", { class: "sd-gd-right" }, said("✓", M.right), right),
        h("p", { class: "sd-sub" }, M.source + ": ", cited(source)),
      ),
    );
  }

  part.contents.textContent = W.contents;
  for (const [name, build] of Object.entries(SECTIONS)) {
    const title = h("h2", { tabindex: "-1" }, W.sections[name]),
      section = h("section", { "data-section": name }, title, build());
    part.body.append(section);
    part.list.append(
      h(
        "li",
        {},
        button(
          W.sections[name],
          () => {
            section.scrollIntoView();
            title.focus({ preventScroll: true });
          },
          "sd-link",
        ),
      ),
    );
  }
}

mount(element, props);
