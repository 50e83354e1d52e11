/* Shows the quiz. A choice reveals the answer, with a link to the tab that shows why. */

import { html, createButton } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { createColumns, tabOpener } from "#page/guide/prose.js";

export function createQuiz(/** @type {GuideTexts} */ { quiz: texts, see }, /** @type {Record<string, string>} */ tabs) {
  function createQuestion(/** @type {any} */ { ask, choices, answer, why, tab, part }, /** @type {number} */ number) {
    const answerText = html("p", { class: "sd-gd-why", "aria-live": "polite" }),
      options = choices.map((/** @type {string} */ choice, /** @type {number} */ i) =>
        html(
          "label",
          {},
          html("input", { type: "radio", name: "sd-guess-" + number, value: i }),
          html("span", {}, choice),
        ),
      );
    function reveal() {
      const chosen = options.findIndex((/** @type {any} */ option) => option.firstChild.checked);
      options.forEach((/** @type {Part} */ option, /** @type {number} */ i) =>
        option.classList.toggle("sd-gd-answer", i === answer),
      );
      answerText.replaceChildren(
        html("b", {}, chosen === answer ? texts.right : texts.wrong),
        " ",
        choices[answer] + ": " + why + " ",
        createButton(fillText(see, { tab: tabs[tab] }), tabOpener(tab, part), "sd-link sd-inline"),
      );
    }
    for (const option of options) option.onchange = reveal;
    return html(
      "div",
      { class: "sd-gd-question" },
      html(
        "fieldset",
        {},
        html("legend", {}, number + 1 + ". " + ask),
        html("div", { class: "sd-gd-options" }, options),
      ),
      answerText,
    );
  }

  return createColumns(texts.list.map(createQuestion));
}
