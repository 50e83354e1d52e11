/* The rail: the sub-steps of the open cycle, the current one marked. */

import { h, button } from "#page/race/kit.js";
import { words } from "#page/race/text.js";

export function rail(page) {
  const { W, part, now } = page;

  function paintRail() {
    const { steps, at, own } = now(),
      many = steps.length > 9;
    part.rail.classList.toggle("sd-many", many);
    part.rail.replaceChildren(
      ...steps.map((name, i) => {
        const isTest = typeof name === "number",
          label = isTest
            ? words(W.rail.judge, { n: placeOf(name) })
            : W.rail[name === "own" ? own.state : name];
        const node = button(
          isTest && many && i !== at ? String(placeOf(name)) : label,
          () => page.show(name),
          null,
        );
        if (isTest) node.setAttribute("aria-label", label);
        return h(
          "li",
          {
            class: (i < at ? "sd-done" : "") + (name === "late" ? " sd-late" : ""),
            "aria-current": i === at ? "step" : null,
          },
          node,
        );
      }),
    );
    part.rail.setAttribute("aria-label", W.rail.aria);
  }

  /* A draft's number for people: its place in a chain; in a tree the order in which it is tried. */
  const placeOf = (node) => (now().cycle.tree ? now().verdict.order.indexOf(node) : node) + 1;

  return paintRail;
}
