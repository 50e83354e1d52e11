/* Plans for lessons. */

import { h } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { lead, list } from "#page/guide/prose.js";

export function lessons(W) {
  const T = W.teach,
    plan = ({ title, goals, steps }) =>
      h(
        "div",
        {},
        h("h3", {}, title),
        h("h4", {}, T.goals),
        list(goals),
        h(
          "ol",
          { class: "sd-gd-plan" },
          steps.map(([n, what]) =>
            h("li", {}, h("b", {}, words(T.minutes, { n })), h("span", {}, what)),
          ),
        ),
      );
  return [lead(T.lead), h("div", { class: "sd-gd-three" }, T.plans.map(plan))];
}
