/* The mistakes that can be planted: a switch each, the first ones on show. */

import { html } from "#page/race/html.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { FIRST_MISTAKES } from "#page/lossless/reading.js";

/* `choose` is told which one; pressed again, none. `planted()` is the one that is on. */
export function createMistakes(W, root, part, named, planted, choose) {
  const keys = Object.keys(W.mistakes);

  function bug(name) {
    const { title, what, met } = named[name],
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
        html("span", {}, joinSentences(what, met && fillText(W.rail.met, { met }))),
      );
    node.onclick = () => choose(planted() === name ? "" : name);
    return node;
  }

  function paint() {
    for (const node of root.querySelectorAll(".sd-bug"))
      node.setAttribute("aria-checked", String(node.dataset.key === planted()));
  }

  part.more.textContent = fillText(W.rail.more, { n: keys.length - FIRST_MISTAKES });
  part.bugs.append(...keys.slice(0, FIRST_MISTAKES).map(bug));
  part.others.append(...keys.slice(FIRST_MISTAKES).map(bug));
  return paint;
}
