/* The mistakes that can be planted: a switch each, the first ones on show. */

import { h } from "#page/race/kit.js";
import { words, sentences } from "#page/race/text.js";
import { FIRST } from "#page/lossless/reading.js";

/* `choose` is told which one; pressed again, none. `planted()` is the one that is on. */
export function mistakes(W, root, part, named, planted, choose) {
  const keys = Object.keys(W.mistakes);

  function bug(name) {
    const { title, what, met } = named[name],
      node = h(
        "button",
        {
          type: "button",
          class: "sd-bug",
          role: "switch",
          "data-key": name,
          "aria-checked": "false",
        },
        h("i", {}),
        h("b", {}, title),
        h("span", {}, sentences(what, met && words(W.rail.met, { met }))),
      );
    node.onclick = () => choose(planted() === name ? "" : name);
    return node;
  }

  function paint() {
    for (const node of root.querySelectorAll(".sd-bug"))
      node.setAttribute("aria-checked", String(node.dataset.key === planted()));
  }

  part.more.textContent = words(W.rail.more, { n: keys.length - FIRST });
  part.bugs.append(...keys.slice(0, FIRST).map(bug));
  part.others.append(...keys.slice(FIRST).map(bug));
  return paint;
}
