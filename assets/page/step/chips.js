/* Draws the cycle's tokens as chips, each without a verdict before it is judged. */

import { createChip } from "#page/race/tokens.js";

export function createChips(/** @type {StepPage} */ page) {
  const { view, playerTexts, current } = page;

  /* Lists the drafts to show: of a chain those up to K, of a tree the judged. */
  function listNodes() {
    const { cycle, states, verdict } = current(),
      nodes = cycle.drafts.map((_, node) => node).filter((node) => states[node] !== "out");
    return cycle.tree
      ? nodes
          .filter((node) => verdict.order.includes(node))
          .sort((a, b) => verdict.order.indexOf(a) - verdict.order.indexOf(b))
      : nodes;
  }

  /* Returns whether a draft's verdict is shown; one never judged is shown with the last verdict. */
  function isRevealed(/** @type {number} */ node) {
    const { verdict, stepIndex, steps } = current(),
      turn = verdict.order.indexOf(node),
      end = verdict.order.length ? 1 + verdict.order.length : 2;
    return stepIndex >= (turn < 0 ? Math.min(end, steps.length - 1) : 2 + turn);
  }

  function createNodeChip(/** @type {number} */ node, /** @type {State} */ state, tag = "button") {
    const chipNode = createChip(playerTexts, current().cycle.drafts[node].piece, state, tag);
    chipNode.classList.toggle("sd-on", view.step === node && tag === "button");
    if (tag === "button")
      chipNode.onclick = () => {
        const { steps } = current();
        page.showStep(steps.includes(node) ? node : steps.includes("late") ? "late" : "own");
      };
    return chipNode;
  }

  function createTargetChip(/** @type {string} */ tag) {
    const { targetToken } = current(),
      chipNode = createChip(playerTexts, targetToken.sample ? targetToken.sample.piece : "…", targetToken.state, tag);
    if (tag === "button") chipNode.onclick = () => page.showStep("own", view.coin);
    return chipNode;
  }

  return { listNodes, isRevealed, createNodeChip, createTargetChip };
}
