/* Draws the open cycle as a grid, a column per draft and one for the target's own token, and the rail of sub-steps. */

import { html, createButton } from "#page/race/html.js";
import { fillText, formatPiece } from "#page/race/text.js";
import { formatChance, formatApart } from "#page/race/format.js";
import { BLOCK_VERIFICATION } from "#page/race/run.js";

/** @param {StepPage} page @param {Chips} options */
export function createGrid(page, { listNodes, isRevealed, createNodeChip, createTargetChip }) {
  const { texts, playerTexts, view, part, current } = page;

  function paintGrid() {
    const { cycle, states, targetToken, verdict, stepIndex, steps } = current(),
      nodes = listNodes(),
      notation = texts.notation[view.notation],
      labels = texts.grid,
      hasPassed = stepIndex >= steps.indexOf("check");
    const showsTarget = targetToken && stepIndex >= steps.indexOf("own"),
      isReplaced = showsTarget && targetToken.state === "resampled" && !cycle.tree,
      replaced = isReplaced ? states.indexOf("rejected") : -1, // the target's token stands in its column
      hotClass = (/** @type {number} */ node) => (node === view.step || node === replaced ? " sd-hot" : "");
    const label = (/** @type {string} */ name, /** @type {string} */ sub, figure = "") =>
        html("div", { class: "sd-rl" }, html("span", {}, name, html("small", {}, sub)), html("small", {}, figure)),
      cell = (/** @type {string} */ cls, /** @type {Child[]} */ ...inner) =>
        html("div", { class: "sd-cell " + cls }, inner);
    part.grid.style.setProperty("--n", String(nodes.length + 1));
    part.grid.classList.toggle("sd-many", nodes.length > 9);
    part.grid.replaceChildren(
      label(labels.draft, cycle.tree ? labels.draft_tree : labels.draft_sub, cycle.served ? "" : notation.q_short),
      ...nodes.map((node) =>
        cell(
          "sd-top" + hotClass(node),
          createNodeChip(node, "pending", "span"),
          html("span", {}, cycle.served ? texts.served.no_q : formatChance(cycle.drafts[node].q)),
        ),
      ),
      cell("sd-ghost", nodes.length && !cycle.tree && targetToken && html("span", {}, labels.if_all)),
      label(labels.target, labels.target_sub, view.notation === "plain" ? notation.q_short : notation.p_short),
      html(
        "div",
        { class: "sd-pass" + (hasPassed ? "" : " sd-off") },
        fillText(cycle.served ? texts.served.pass : nodes.length ? labels.pass : labels.pass_plain, {
          time: page.passTime(),
          rows: states.filter((state) => state !== "out").length + 1,
        }),
      ),
      ...nodes.map((node) => cell("sd-places" + hotClass(node), chanceOf(node))),
      cell("sd-places", likeliestAfter(nodes)),
      label(
        labels.verdict,
        verdict.rule === BLOCK_VERIFICATION
          ? labels.verdict_block
          : cycle.tree
            ? labels.verdict_tree
            : labels.verdict_sub,
        Object.values(verdict.trials).some((trial) => trial.u != null) ? labels.verdict_coin : "",
      ),
      ...nodes.map((node) =>
        cell(
          "sd-bottom" + hotClass(node),
          ...(node === replaced
            ? [createNodeChip(node, states[node], "span"), createTargetChip("span")]
            : verdictCell(node)),
        ),
      ),
      cell(
        "",
        ...(showsTarget && replaced < 0
          ? [createTargetChip("span"), html("span", {}, playerTexts.status[targetToken.state])]
          : []),
      ),
    );
    const hotCell = part.grid.querySelector(".sd-hot");
    if (hotCell) part.grid.scrollLeft = Math.max(0, hotCell.offsetLeft - part.grid.clientWidth / 2);
  }

  function chanceOf(/** @type {number} */ node) {
    const { cycle } = current(),
      { p } = cycle.drafts[node];
    return cycle.served && p == null ? "–" : formatChance(p);
  }

  function likeliestAfter(/** @type {number[]} */ nodes) {
    const { cycle } = current(),
      next = cycle.drafts[nodes.length],
      distribution = next ? next.target : cycle.bonus;
    if (cycle.tree || !distribution) return "";
    const [{ piece, prob }] = distribution.top;
    return fillText(texts.own_says.likeliest, { x: formatPiece(piece), p: formatChance(prob) });
  }

  function verdictCell(/** @type {number} */ node) {
    const { states, verdict } = current(),
      trial = verdict.trials[node];
    if (!isRevealed(node)) return ["–"];
    const verdictText = !trial
      ? states[node] === "accepted"
        ? texts.grid.with_it
        : states[node] === "cut"
          ? texts.grid.cut
          : texts.grid.never
      : trial.u == null
        ? trial.accepted
          ? texts.grid.kept
          : texts.grid.not_kept
        : formatApart(trial.u, trial.chance).join(trial.accepted ? " < " : " ≥ ");
    return [createNodeChip(node, states[node], "span"), html("span", {}, verdictText)];
  }

  return paintGrid;
}

export function createRail(/** @type {StepPage} */ page) {
  const { texts, part, current } = page;

  function paintRail() {
    const { steps, stepIndex, targetToken } = current(),
      isLong = steps.length > 9;
    part.rail.classList.toggle("sd-many", isLong);
    part.rail.replaceChildren(
      ...steps.map((name, i) => {
        const isTest = typeof name === "number",
          label = isTest
            ? fillText(texts.rail.judge, { n: numberOf(name) })
            : texts.rail[name === "own" ? targetToken.state : name];
        const node = createButton(
          isTest && isLong && i !== stepIndex ? String(numberOf(name)) : label,
          () => page.showStep(name),
          null,
        );
        if (isTest) node.setAttribute("aria-label", label);
        return html(
          "li",
          {
            class: (i < stepIndex ? "sd-done" : "") + (name === "late" ? " sd-late" : ""),
            "aria-current": i === stepIndex ? "step" : null,
          },
          node,
        );
      }),
    );
    part.rail.setAttribute("aria-label", texts.rail.aria);
  }

  /** Returns the number that the page shows for a draft: its place in a chain or, in a tree, its turn to be judged.
   * @param {number} node */
  const numberOf = (node) => (current().cycle.tree ? current().verdict.order.indexOf(node) : node) + 1;

  return paintRail;
}
