/* Draws the tokens of the open cycle as chips; each shows its verdict from its own sub-step on. */

import { createChip } from "#page/race/tokens.js";

export function createChips(page) {
  const { view, playerTexts, current } = page;

  /* Lists every draft of a chain, but only the judged drafts of a tree, which shows its path and what was tried. */
  function listNodes() {
    const { cycle, states, verdict } = current(),
      nodes = cycle.drafts.map((_, node) => node).filter((node) => states[node] !== "out");
    return cycle.tree
      ? nodes
          .filter((node) => verdict.order.includes(node))
          .sort((a, b) => verdict.order.indexOf(a) - verdict.order.indexOf(b))
      : nodes;
  }

  /* Returns whether a draft's verdict shows yet; -1 stands for the drafts that have no turn. */
  function isRevealed(node) {
    const { verdict, stepIndex, steps } = current(),
      place = verdict.order.indexOf(node),
      end = verdict.order.length ? 1 + verdict.order.length : 2;
    return stepIndex >= (place < 0 ? Math.min(end, steps.length - 1) : 2 + place);
  }

  function createNodeChip(node, state, tag = "button") {
    const chipNode = createChip(playerTexts, current().cycle.drafts[node].piece, state, tag);
    chipNode.classList.toggle("sd-on", view.step === node && tag === "button");
    if (tag === "button")
      chipNode.onclick = () => {
        const { steps } = current();
        page.showStep(steps.includes(node) ? node : steps.includes("late") ? "late" : "own");
      };
    return chipNode;
  }

  function createTargetChip(tag) {
    const { targetToken } = current(),
      chipNode = createChip(playerTexts, targetToken.sample ? targetToken.sample.piece : "…", targetToken.state, tag);
    if (tag === "button") chipNode.onclick = () => page.showStep("own", view.coin);
    return chipNode;
  }

  return { listNodes, isRevealed, createNodeChip, createTargetChip };
}
