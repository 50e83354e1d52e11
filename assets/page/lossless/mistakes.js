/* Builds a switch for each mistake that can be planted in the engine, and for each lossy rule. The first
 * `FIRST_MISTAKES` are always visible. */

import { html } from "#page/race/html.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { FIRST_MISTAKES, LOSSY_RULES } from "#page/lossless/reading.js";

/** `choose(name)` switches a mistake on, `choose("")` switches it off; `getPlanted()` returns the name that is on.
 * @param {LosslessTexts} texts @param {HTMLElement} root @param {Parts} part
 * @param {() => string} getPlanted @param {(name: string) => unknown} choose */
export function createMistakes(texts, root, part, getPlanted, choose) {
  const keys = Object.keys(texts.mistakes).filter((name) => !LOSSY_RULES.includes(name));

  function createSwitch(/** @type {string} */ name) {
    const { title, what, met } = texts.mistakes[name],
      node = html(
        "button",
        {
          type: "button",
          class: "sd-bug",
          role: "switch",
          "data-key": name,
          "aria-checked": "false",
        },
        html("i", {}),
        html("b", {}, title),
        html("span", {}, joinSentences(what, met && fillText(texts.rail.met, { met }))),
      );
    node.onclick = () => choose(getPlanted() === name ? "" : name);
    return node;
  }

  function paint() {
    for (const node of root.querySelectorAll(".sd-bug"))
      node.setAttribute("aria-checked", String(node.dataset.key === getPlanted()));
  }

  part.more.textContent = fillText(texts.rail.more, { n: keys.length - FIRST_MISTAKES });
  part.bugs.append(...keys.slice(0, FIRST_MISTAKES).map(createSwitch));
  part.others.append(...keys.slice(FIRST_MISTAKES).map(createSwitch));
  part.choices.append(...LOSSY_RULES.map(createSwitch));
  return paint;
}
