/* Questions with their answers, and the tab that shows why. */

import { h, button } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { lead, openTab } from "#page/guide/prose.js";

/* `tabs`: their labels by name. */
export function questions({ quiz: Q, see }, tabs) {
  function question({ ask, choices, answer, why, tab, part }, number) {
    const said = h("p", { class: "sd-gd-why sd-sub", "aria-live": "polite" }),
      options = choices.map((choice, i) =>
        h(
          "label",
          {},
          h("input", { type: "radio", name: "sd-guess-" + number, value: i }),
          h("span", {}, choice),
        ),
      );
    function reveal() {
      const chosen = options.findIndex((option) => option.firstChild.checked);
      if (chosen < 0) return said.replaceChildren(Q.choose);
      options.forEach((option, i) => option.classList.toggle("sd-gd-answer", i === answer));
      said.replaceChildren(
        h("b", {}, chosen === answer ? "✓ " + Q.right : "✗ " + Q.wrong),
        " ",
        choices[answer] + ": " + why + " ",
        button(words(see, { tab: tabs[tab] }), openTab(tab, part), "sd-link sd-inline"),
      );
    }
    return h(
      "li",
      {},
      h(
        "fieldset",
        {},
        h("legend", {}, number + 1 + ". " + ask),
        h("div", { class: "sd-gd-options" }, options, button(Q.reveal, reveal, "sd-pill")),
        said,
      ),
    );
  }

  return [lead(Q.lead), h("ol", { class: "sd-gd-two sd-gd-quiz" }, Q.list.map(question))];
}
