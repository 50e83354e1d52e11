/* Beside the sentence what it rests on: both models' probabilities and the test, or what the target's own token is
 * drawn from. */

import { h, legend } from "#page/race/kit.js";
import { words, shown } from "#page/race/text.js";
import { REJECTION, BLOCK, TYPICAL, headOf } from "#page/step/judge.js";
import { weightOf } from "#page/step/distributions.js";
import { title, note } from "#page/step/marks.js";
import { trials } from "#page/step/trial.js";
import { residuals } from "#page/step/residual.js";

export function evidence(page, { bars, row }, theirs, guess) {
  const { W, S, part, now, isGreedy } = page;
  const test = trials(page),
    { areas, surpluses } = residuals(page);

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
      values = { n: node + 1, level: draft.level, x: shown(draft.piece) };
    const about = isGreedy()
      ? P.lead_greedy
      : verdict.rule === REJECTION && headOf(cycle.drafts, draft) !== draft
        ? P.lead_sibling
        : draft.q === 1
          ? P.lead_point
          : P.lead;
    return [
      [
        title(
          words(
            verdict.rule === BLOCK ? P.title_block : cycle.tree ? P.title_tree : P.title,
            values,
          ),
        ),
        legend(["sd-i-target", N.p_name], ["sd-i-draft", N.q_name]),
        draft.target ? bars(draft, part.left.clientWidth) : note(W.no_laws),
        note(about),
      ],
      [title(trial.u == null ? P.test : P.coin), ...test(draft, trial, part.right.clientWidth)],
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
            : [O.straight, verdict.rule === TYPICAL ? O.lossy_lead : O.straight_lead];
      return [
        [title(O.row), own.distribution ? row(part.left.clientWidth) : note(W.no_laws)],
        [title(heading), h("p", {}, about)],
      ];
    }
    const weight = weightOf(verdict);
    return [
      [
        title(O.title),
        legend(["sd-i-acc", O.overlap], ["sd-i-res", O.surplus], ["sd-i-rej", O.deficit]),
        areas(draft, weight, part.left.clientWidth),
        note(weight < 1 ? O.lead_block : O.lead),
      ],
      [
        title(weight < 1 ? O.draw : O.equal),
        ...surpluses(draft, weight, part.right.clientWidth, guess()),
      ],
    ];
  }

  return { paint: paintEvidence, focus };
}
