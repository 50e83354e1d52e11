/* Draws a sub-step's distributions and, beside them, a draft's test or the target's token. */

import { html, createBarCell, createLegend, createRow, createTable } from "#page/race/html.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import { fillText, formatPiece } from "#page/race/text.js";
import { BLOCK_VERIFICATION } from "#page/race/run.js";
import { REJECTION_SAMPLING, TYPICAL_ACCEPTANCE, firstSiblingOf } from "#page/step/judge.js";
import { prefixWeightOf } from "#page/step/distributions.js";
import { createTitle, createNote } from "#page/step/marks.js";
import { createTrials } from "#page/step/trial.js";
import { createResidualCharts } from "#page/step/residual.js";

/** @param {StepPage} page @param {ReturnType<typeof import("./probabilities.js").createProbabilityBars>} bars
 * @param {ReturnType<typeof import("./server.js").createServerViews>} serverViews
 * @param {() => string} describeLikeliest */
export function createEvidence(page, { drawBars, drawRow }, serverViews, describeLikeliest) {
  const { texts, view, part, current, isGreedy } = page;
  const drawTest = createTrials(page),
    { drawAreas, drawSurpluses } = createResidualCharts(page);

  function focusedNode() {
    const { verdict, targetToken, stepIndex } = current();
    if (typeof view.step === "number") return view.step;
    return stepIndex < 2 || !verdict.order.length
      ? null
      : targetToken && targetToken.node >= 0
        ? targetToken.node
        : verdict.order[verdict.order.length - 1];
  }

  function paint() {
    part.right.textContent = "…"; // so that there are two columns
    const shown = ["draft", "check", "commit"].indexOf(String(view.step)) + 1,
      [left, right] = shown
        ? timeEvidence(shown)
        : view.step === "own" && current().targetToken
          ? targetEvidence()
          : testEvidence();
    part.left.replaceChildren(.../** @type {Node[]} */ (left));
    part.right.replaceChildren(.../** @type {Node[]} */ (right));
  }

  function timeEvidence(/** @type {number} */ shown) {
    const { cycle, changed, gained } = current(),
      { drafting, check, endMs } = cycle,
      labels = texts.time,
      stepMs = page.plainStepMs();
    if (!drafting || !check || !stepMs || changed) return [[], []];
    const cycleMs = endMs - drafting.start,
      plainMs = stepMs * (shown > 2 ? gained : 1),
      times = [drafting.end - drafting.start, check.end - check.start, cycleMs].slice(0, shown);
    const rows = [...times, plainMs].map((ms, i) =>
      createRow(labels.rows[i < shown ? i : shown > 2 ? 4 : 3], [
        formatDuration(ms),
        toFixed(ms / stepMs, 1),
        createBarCell(ms / Math.max(cycleMs, stepMs * gained), i === shown),
      ]),
    );
    return [
      [
        createTitle(shown > 2 ? fillText(labels.gain, { gain: toFixed(plainMs / cycleMs) }) : labels.title),
        createTable("sd-th-table", [html("td"), ...labels.heads, html("td")], rows),
      ],
      [],
    ];
  }

  function testEvidence() {
    const node = focusedNode(),
      labels = texts.position,
      notation = texts.notation[view.notation];
    if (node === null || !current().verdict.trials[node]) return [[], []];
    if (current().cycle.served) return serverViews.evidence(current().cycle.drafts[node], part.left.clientWidth);
    const { cycle, verdict } = current(),
      draft = cycle.drafts[node],
      trial = verdict.trials[node],
      values = { n: node + 1, level: draft.level, x: formatPiece(draft.piece) };
    const lead = isGreedy()
      ? labels.lead_greedy
      : verdict.rule === REJECTION_SAMPLING && firstSiblingOf(cycle.drafts, draft) !== draft
        ? labels.lead_sibling
        : draft.q === 1
          ? labels.lead_point
          : labels.lead;
    return [
      [
        createTitle(
          fillText(
            verdict.rule === BLOCK_VERIFICATION ? labels.title_block : cycle.tree ? labels.title_tree : labels.title,
            values,
          ),
        ),
        createLegend(["sd-i-target", notation.p_name], ["sd-i-draft", notation.q_name]),
        draft.target ? drawBars(draft, part.left.clientWidth) : createNote(texts.no_laws),
        createNote(lead),
      ],
      [createTitle(trial.u == null ? labels.test : labels.coin), ...drawTest(draft, trial, part.right.clientWidth)],
    ];
  }

  function targetEvidence() {
    const { targetToken, verdict, cycle } = current(),
      labels = texts.own,
      draft = targetToken.node >= 0 && cycle.drafts[targetToken.node].target ? cycle.drafts[targetToken.node] : null;
    if (!draft) {
      if (cycle.served && targetToken.state === "resampled")
        return serverViews.targetEvidence(targetToken, part.left.clientWidth);
      const [heading, lead] =
        targetToken.state === "bonus"
          ? [labels.bonus, labels.bonus_lead]
          : targetToken.state === "plain"
            ? [labels.plain, labels.plain_lead]
            : [labels.straight, verdict.rule === TYPICAL_ACCEPTANCE ? labels.lossy_lead : labels.straight_lead];
      return [
        [
          createTitle(labels.row),
          targetToken.distribution ? drawRow(part.left.clientWidth) : createNote(texts.no_laws),
        ],
        [createTitle(heading), html("p", {}, lead)],
      ];
    }
    const weight = prefixWeightOf(verdict);
    return [
      [
        createTitle(labels.title),
        createLegend(
          ["sd-i-accepted", labels.overlap],
          ["sd-i-resampled", labels.surplus],
          ["sd-i-rejected", labels.deficit],
        ),
        drawAreas(draft, weight, part.left.clientWidth),
        createNote(weight < 1 ? labels.lead_block : labels.lead),
      ],
      [
        createTitle(weight < 1 ? labels.draw : labels.equal),
        ...drawSurpluses(draft, weight, part.right.clientWidth, describeLikeliest()),
      ],
    ];
  }

  return { paint, focusedNode };
}
