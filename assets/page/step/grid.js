/* The open cycle as a grid, draft, pass and verdict one below the other, one column a draft; and the rail of its
 * sub-steps, the current one marked. */

import { html, createButton } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { formatChance, formatApart } from "#page/race/format.js";
import { BLOCK_VERIFICATION } from "#page/race/run.js";

export function createGrid(page, { nodesShown, revealed, chipOf, ownChip }) {
  const { W, PW, S, part, now } = page;

  function paintGrid() {
    const { cycle, states, own, verdict, at, steps } = now(),
      nodes = nodesShown(),
      N = W.notation[S.notation],
      G = W.grid,
      passed = at >= steps.indexOf("check");
    const hot = (node) => (S.step === node ? " sd-hot" : ""),
      ownNow = own && at >= steps.indexOf("own");
    const label = (name, sub) => html("div", { class: "sd-rl" }, name, html("small", {}, sub)),
      cell = (cls, ...inner) => html("div", { class: "sd-cell " + cls }, inner);
    part.grid.style.setProperty("--n", nodes.length + 1);
    part.grid.classList.toggle("sd-many", nodes.length > 9);
    part.grid.replaceChildren(
      label(G.draft, cycle.tree ? G.draft_tree : G.draft_sub),
      ...nodes.map((node) =>
        cell(
          "sd-top" + hot(node),
          chipOf(node, "pen", "span"),
          html(
            "span",
            {},
            cycle.served ? W.served.no_q : N.q_short + " " + formatChance(cycle.drafts[node].q),
          ),
        ),
      ),
      cell(""),
      label(G.target, G.target_sub),
      html(
        "div",
        { class: "sd-pass" + (passed ? "" : " sd-off") },
        fillText(cycle.served ? W.served.pass : nodes.length ? G.pass : G.pass_plain, {
          time: page.passTime(),
          rows: states.filter((state) => state !== "out").length + 1,
        }),
      ),
      label(
        G.verdict,
        verdict.rule === BLOCK_VERIFICATION
          ? G.verdict_block
          : cycle.tree
            ? G.verdict_tree
            : G.verdict_sub,
      ),
      ...nodes.map((node) => cell("sd-bottom" + hot(node), ...verdictCell(node, passed))),
      cell("", ...(ownNow ? [ownChip("span"), html("span", {}, PW.status[own.state])] : [])),
    );
    const place = part.grid.querySelector(".sd-hot");
    if (place) part.grid.scrollLeft = Math.max(0, place.offsetLeft - part.grid.clientWidth / 2);
  }

  function verdictCell(node, passed) {
    const { states, verdict, cycle } = now(),
      trial = verdict.trials[node],
      N = W.notation[S.notation];
    if (!revealed(node))
      return [
        html(
          "span",
          {},
          passed && (!cycle.served || cycle.drafts[node].p != null)
            ? N.p_short + " " + formatChance(cycle.drafts[node].p)
            : "–",
        ),
      ];
    const values = !trial
      ? states[node] === "acc"
        ? W.grid.with_it
        : states[node] === "cut"
          ? W.grid.cut
          : W.grid.never
      : trial.u == null
        ? trial.kept
          ? W.grid.kept
          : W.grid.not_kept
        : "u " + formatApart(trial.u, trial.chance).join(trial.kept ? " < " : " ≥ ");
    return [chipOf(node, states[node], "span"), html("span", {}, values)];
  }

  return paintGrid;
}

export function createRail(page) {
  const { W, part, now } = page;

  function paintRail() {
    const { steps, at, own } = now(),
      many = steps.length > 9;
    part.rail.classList.toggle("sd-many", many);
    part.rail.replaceChildren(
      ...steps.map((name, i) => {
        const isTest = typeof name === "number",
          label = isTest
            ? fillText(W.rail.judge, { n: placeOf(name) })
            : W.rail[name === "own" ? own.state : name];
        const node = createButton(
          isTest && many && i !== at ? String(placeOf(name)) : label,
          () => page.show(name),
          null,
        );
        if (isTest) node.setAttribute("aria-label", label);
        return html(
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
