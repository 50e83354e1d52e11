/* Plans for lessons. */

import { html } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { createLead, createList } from "#page/guide/prose.js";

export function createLessons(W) {
  const T = W.teach,
    plan = ({ title, goals, steps }) =>
      html(
        "div",
        {},
        html("h3", {}, title),
        html("h4", {}, T.goals),
        createList(goals),
        html(
          "ol",
          { class: "sd-gd-plan" },
          steps.map(([n, what]) =>
            html("li", {}, html("b", {}, fillText(T.minutes, { n })), html("span", {}, what)),
          ),
        ),
      );
  return [createLead(T.lead), html("div", { class: "sd-gd-three" }, T.plans.map(plan))];
}
