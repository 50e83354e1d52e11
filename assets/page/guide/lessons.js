/* Shows the lesson plans for teachers. */

import { html } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { createLead, createList } from "#page/guide/prose.js";

export function createLessons(/** @type {GuideTexts} */ texts) {
  const labels = texts.teach,
    createPlan = (/** @type {GuideTexts["teach"]["plans"][number]} */ { title, goals, steps }) =>
      html(
        "div",
        {},
        html("h3", {}, title),
        html("h4", {}, labels.goals),
        createList(goals),
        html(
          "ol",
          { class: "sd-gd-plan" },
          steps.map(([minutes, activity]) =>
            html("li", {}, html("b", {}, fillText(labels.minutes, { n: minutes })), html("span", {}, activity)),
          ),
        ),
      );
  return [createLead(labels.lead), html("div", { class: "sd-gd-lessons" }, labels.plans.map(createPlan))];
}
