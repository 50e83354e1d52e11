/* The worksheet: on paper only, and dark on white whatever the page is. */

import { h, button, table } from "#page/race/kit.js";
import { lead } from "#page/guide/prose.js";
import { GAME } from "#page/guide/game.js";

export function sheet(W, root, part) {
  const print = () => {
    const dark = document.body.classList.contains("dark");
    paper.replaceChildren(...worksheet(W, part.seed.value));
    root.dataset.print = "sheet";
    document.body.classList.remove("dark");
    addEventListener(
      "afterprint",
      () => {
        delete root.dataset.print;
        document.body.classList.toggle("dark", dark);
      },
      { once: true },
    );
    window.print();
  };
  const paper = h("div", { class: "sd-gd-paper" });
  return [lead(W.sheet.lead), button(W.sheet.print, print), paper];
}

function worksheet(W, seed) {
  const H = W.sheet,
    blank = () => h("span", { class: "sd-gd-blank" }),
    grid = (heads, firsts) =>
      table(
        null,
        heads,
        firsts.map((first) =>
          h(
            "tr",
            {},
            heads.map((_, i) => h("td", {}, i ? "" : first)),
          ),
        ),
      );
  return [
    h("p", { class: "sd-gd-fields" }, H.name, blank(), H.date, blank(), H.seed + ": " + seed),
    h("h3", {}, H.predict),
    h(
      "ol",
      {},
      W.quiz.list.map(({ ask, choices }) =>
        h(
          "li",
          {},
          ask,
          h(
            "p",
            {},
            choices.map((choice) => h("span", { class: "sd-gd-box" }, "☐ " + choice)),
          ),
          h("p", { class: "sd-gd-fields" }, H.saw, blank()),
        ),
      ),
    ),
    h("h3", {}, H.measure),
    grid(H.columns, ["", "", "", ""]),
    h("h3", {}, H.tally),
    grid(["", ...GAME.words], H.rounds),
    h("p", { class: "sd-gd-fields" }, H.surprise, blank()),
  ];
}
