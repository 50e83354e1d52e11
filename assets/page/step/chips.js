/* The tokens of the cycle that is open, as chips; each keeps its verdict to itself until its turn. */

import { createChip } from "#page/race/tokens.js";

export function createChips(page) {
  const { S, PW, now } = page;

  /* Of a chain every draft, of a tree those that somebody judged: on screen a tree is its path, and what was tried. */
  function nodesShown() {
    const { cycle, states, verdict } = now(),
      all = cycle.drafts.map((_, node) => node).filter((node) => states[node] !== "out");
    return cycle.tree
      ? all
          .filter((node) => verdict.order.includes(node))
          .sort((a, b) => verdict.order.indexOf(a) - verdict.order.indexOf(b))
      : all;
  }

  /* A draft keeps its verdict to itself until its turn; -1 stands for those that never have one. */
  function revealed(node) {
    const { verdict, at, steps } = now(),
      turn = verdict.order.indexOf(node),
      end = verdict.order.length ? 1 + verdict.order.length : 2;
    return at >= (turn < 0 ? Math.min(end, steps.length - 1) : 2 + turn);
  }

  function chipOf(node, state, tag = "button") {
    const made = createChip(PW, now().cycle.drafts[node].piece, state, tag);
    made.classList.toggle("sd-on", S.step === node && tag === "button");
    if (tag === "button")
      made.onclick = () => {
        const { steps } = now();
        page.show(steps.includes(node) ? node : steps.includes("late") ? "late" : "own");
      };
    return made;
  }

  function ownChip(tag) {
    const { own } = now(),
      made = createChip(PW, own.sample ? own.sample.piece : "…", own.state, tag);
    if (tag === "button") made.onclick = () => page.show("own", S.coin);
    return made;
  }

  return { nodesShown, revealed, chipOf, ownChip };
}
