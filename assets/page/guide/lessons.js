/* Plans for lessons, and the link that gives a class the same run. */

import { h, button, copied } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { lead, list } from "#page/guide/prose.js";

const ENGINE = { "data-engine": "" }; // such a link needs one

export const linkOf = (base, settings, seed) =>
  base + "?" + new URLSearchParams({ tab: "race", ...settings, seed });

/* `settings` are those of the run; a seed is at `most` as large. */
export function lessons(W, props) {
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
  return [
    lead(T.lead),
    h("div", { class: "sd-gd-three" }, T.plans.map(plan)),
    h("h3", ENGINE, T.seed_title),
    h("p", ENGINE, T.seed_lead),
    classLink(T, props),
  ];
}

function classLink(T, props) {
  const settings = JSON.parse(props.settings),
    seed = h("input", { type: "number", min: 0, max: props.most, step: 1, value: props.seed }),
    said = h("span", { class: "sd-sub", role: "status" }),
    text = h("input", {
      type: "text",
      readonly: "",
      class: "sd-gd-link",
      "aria-label": T.seed_title,
    });
  const draw = () => {
    said.textContent = "";
    text.value = linkOf(
      location.origin + location.pathname,
      settings,
      Math.min(props.most, Math.max(0, Math.floor(+seed.value) || 0)),
    );
  };
  seed.oninput = draw;
  draw();
  const copy = async () => {
    const is = await copied(text.value);
    said.textContent = is ? T.copied : T.shown;
    if (!is) text.select();
  };
  return h(
    "div",
    { ...ENGINE, class: "sd-gd-row" },
    h("label", {}, T.seed, " ", seed),
    text,
    button(T.copy, copy),
    said,
  );
}
