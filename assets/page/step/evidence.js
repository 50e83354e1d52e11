/* Beside the sentence what it rests on: both models' probabilities and the test, or what the target's own token is
 * drawn from. */

import { html, createLegend } from "#page/race/html.js";
import { fillText, formatPiece } from "#page/race/text.js";
import { BLOCK_VERIFICATION } from "#page/race/run.js";
import { REJECTION_SAMPLING, TYPICAL_ACCEPTANCE, firstSiblingOf } from "#page/step/judge.js";
import { weightOf } from "#page/step/distributions.js";
import { createTitle, createNote } from "#page/step/marks.js";
import { createTrials } from "#page/step/trial.js";
import { createResidualCharts } from "#page/step/residual.js";

export function createEvidence(page, { bars, row }, theirs, guess) {
  const { W, S, part, now, isGreedy } = page;
  const test = createTrials(page),
    { areas, surpluses } = createResidualCharts(page);

  /* The draft whose test is on show: the one under judgement, else the last one that was. */
  function focus() {
    const { verdict, own, at } = now();
    if (typeof S.step === "number") return S.step;
    return at < 2 || !verdict.order.length
      ? null
      : own && own.node >= 0
        ? own.node
        : verdict.order[verdict.order.length - 1];
  }

  /* What the sentence speaks of, beside it: both models' probabilities and the test, or what the target's own
   * token is drawn from. */
  function paintEvidence() {
    const [left, right] = S.step === "own" && now().own ? ownEvidence() : testEvidence();
    part.left.replaceChildren(...left);
    part.right.replaceChildren(...right);
  }

  function testEvidence() {
    const node = focus(),
      P = W.position,
      N = W.notation[S.notation];
    if (node === null || S.step === "commit" || !now().verdict.trials[node]) return [[], []];
    if (now().cycle.served) return theirs.evidence(now().cycle.drafts[node], part.left.clientWidth);
    const { cycle, verdict } = now(),
      draft = cycle.drafts[node],
      trial = verdict.trials[node],
      values = { n: node + 1, level: draft.level, x: formatPiece(draft.piece) };
    const about = isGreedy()
      ? P.lead_greedy
      : verdict.rule === REJECTION_SAMPLING && firstSiblingOf(cycle.drafts, draft) !== draft
        ? P.lead_sibling
        : draft.q === 1
          ? P.lead_point
          : P.lead;
    return [
      [
        createTitle(
          fillText(
            verdict.rule === BLOCK_VERIFICATION
              ? P.title_block
              : cycle.tree
                ? P.title_tree
                : P.title,
            values,
          ),
        ),
        createLegend(["sd-i-target", N.p_name], ["sd-i-draft", N.q_name]),
        draft.target ? bars(draft, part.left.clientWidth) : createNote(W.no_laws),
        createNote(about),
      ],
      [
        createTitle(trial.u == null ? P.test : P.coin),
        ...test(draft, trial, part.right.clientWidth),
      ],
    ];
  }

  function ownEvidence() {
    const { own, verdict, cycle } = now(),
      O = W.own,
      draft = own.node >= 0 && cycle.drafts[own.node].target ? cycle.drafts[own.node] : null;
    if (!draft) {
      if (cycle.served && own.state === "res")
        return theirs.ownEvidence(own, part.left.clientWidth);
      const [heading, about] =
        own.state === "bon"
          ? [O.bonus, O.bonus_lead]
          : own.state === "pla"
            ? [O.pla, O.pla_lead]
            : [O.straight, verdict.rule === TYPICAL_ACCEPTANCE ? O.lossy_lead : O.straight_lead];
      return [
        [createTitle(O.row), own.distribution ? row(part.left.clientWidth) : createNote(W.no_laws)],
        [createTitle(heading), html("p", {}, about)],
      ];
    }
    const weight = weightOf(verdict);
    return [
      [
        createTitle(O.title),
        createLegend(["sd-i-acc", O.overlap], ["sd-i-res", O.surplus], ["sd-i-rej", O.deficit]),
        areas(draft, weight, part.left.clientWidth),
        createNote(weight < 1 ? O.lead_block : O.lead),
      ],
      [
        createTitle(weight < 1 ? O.draw : O.equal),
        ...surpluses(draft, weight, part.right.clientWidth, guess()),
      ],
    ];
  }

  return { paint: paintEvidence, focus };
}
