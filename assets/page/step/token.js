/* Computes the token that the target adds, and the sub-steps that show the cycle. */

import { BLOCK_VERIFICATION } from "#page/race/run.js";
import { FIRST_CHOICE, REJECTION_SAMPLING } from "#page/step/judge.js";

/** Describes the token that the target adds. `sample` is null if the trace holds none. @param {Cycle} cycle
 * @param {Verdict} verdict @param {Verdict} recorded */
export function targetTokenOf(cycle, verdict, recorded) {
  if (cycle.served)
    return (
      cycle.targetToken && {
        state: cycle.targetToken.state,
        node: -1,
        distribution:
          cycle.targetToken.distribution ||
          (cycle.drafts.find((draft) => draft.state === "rejected") || {}).target ||
          null,
        sample: {
          token: cycle.targetToken.token,
          piece: cycle.targetToken.piece,
          prob: cycle.targetToken.p,
        },
      }
    );
  const { drafts } = cycle,
    { tip, rule, order, k } = verdict,
    nextDraft = drafts.find((draft) => draft.parent === tip);
  const bonus = !nextDraft || nextDraft.level > k,
    rejected = !bonus && (rule === REJECTION_SAMPLING || rule === BLOCK_VERIFICATION),
    node = rejected ? (rule === BLOCK_VERIFICATION ? tip + 1 : order[order.length - 1]) : -1;
  const distribution = (nextDraft ? nextDraft.target : cycle.tree ? null : cycle.bonus) || null,
    state = !drafts.length ? "plain" : bonus ? "bonus" : "resampled",
    targetToken = { state, node, distribution, sample: /** @type {Candidate | null} */ (null) };
  if (isSameVerdict(verdict, recorded) && (!cycle.targetToken || cycle.targetToken.state === state)) {
    if (!cycle.targetToken) return null; // the text ended inside the draft
    return {
      ...targetToken,
      distribution: distribution || cycle.targetToken.distribution,
      sample: {
        token: cycle.targetToken.token,
        piece: cycle.targetToken.piece,
        prob: cycle.targetToken.p,
      },
    };
  }
  if (rejected) targetToken.sample = residualSample(drafts, node, rule === recorded.rule);
  else if (distribution) targetToken.sample = rule === FIRST_CHOICE ? distribution.top[0] : distribution.sample || null;
  return targetToken;
}

/** @param {Verdict} a @param {Verdict} b */
const isSameVerdict = (a, b) => a.rule === b.rule && String(a.path) === String(b.path);

/* Returns the recorded sample of the residual; null if it is of another rule or path. */
function residualSample(/** @type {Draft[]} */ drafts, /** @type {number} */ node, /** @type {boolean} */ isSameRule) {
  const { residual, parent } = drafts[node],
    olderSiblings = drafts.slice(0, node).filter((draft) => draft.parent === parent);
  return (isSameRule && residual && olderSiblings.every((draft) => draft.u != null) && residual.sample) || null;
}

/** Lists the sub-steps of a cycle: each is a name, or the index of the judged draft. @param {Cycle} cycle
 * @param {Verdict} verdict @param {State[]} states @param {any} targetToken */
export function stepsOf(cycle, verdict, states, targetToken) {
  if (!cycle.drafts.length) return ["check", "own", "commit"];
  const late = verdict.rule !== BLOCK_VERIFICATION && states.includes("discarded");
  return ["draft", "check", ...verdict.order, ...(late ? ["late"] : []), ...(targetToken ? ["own"] : []), "commit"];
}
