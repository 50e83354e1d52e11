/* What the open sub-step is, in a sentence with this cycle's own figures. */

import { html } from "#page/race/html.js";
import { fillTemplate, fillText, formatPiece } from "#page/race/text.js";
import { formatDuration, formatApart } from "#page/race/format.js";
import { BLOCK_VERIFICATION, SHARED_NOISE } from "#page/race/run.js";
import { SAMPLE_AND_MATCH, FIRST_CHOICE, TYPICAL_ACCEPTANCE } from "#page/step/judge.js";
import { weightOf, distributionsOf } from "#page/step/distributions.js";
import { formatFigure, createMark } from "#page/step/marks.js";

export function createSentences(page, theirs) {
  const { W, S, now, isGreedy, passTime } = page;

  function sentence() {
    const { cycle, states, own, gained } = now(),
      Y = W.say,
      n = states.filter((state) => state !== "out").length;
    if (cycle.served && ["draft", "check"].includes(S.step)) return theirs.sentence(S.step, n);
    if (S.step === "draft")
      return [
        ...fillTemplate(cycle.tree ? Y.draft_tree : n === 1 ? Y.draft_one : Y.draft, {
          n,
          time: cycle.drafting ? formatDuration(cycle.drafting.end - cycle.drafting.start) : "–",
          levels: Math.max(...cycle.drafts.map((draft) => draft.level)),
        }),
      ];
    if (S.step === "check")
      return fillTemplate(n ? Y.check : Y.check_plain, { rows: n + 1, time: passTime() });
    if (S.step === "late") {
      const late = states.filter((state) => state === "dis").length;
      return fillTemplate(cycle.tree ? Y.late_tree : late === 1 ? Y.late_one : Y.late, { n: late });
    }
    if (S.step === "commit")
      return fillTemplate(
        !own ? Y.ended : gained === 1 ? (n ? Y.commit_one : Y.commit_plain) : Y.commit,
        {
          n: gained,
          drafts: n,
        },
      );
    if (S.step === "own") return ownSentence();
    return judgeSentence(S.step);
  }

  function judgeSentence(node) {
    if (now().cycle.served) return theirs.judged(node);
    const { verdict, cycle } = now(),
      Y = W.judge,
      trial = verdict.trials[node],
      { piece } = cycle.drafts[node],
      [u, r] = trial.u == null ? ["–", "–"] : formatApart(trial.u, trial.chance);
    const values = {
      x: createMark(trial.kept ? "acc" : "rej", piece),
      p: formatFigure(trial.p),
      q: formatFigure(trial.q),
      r,
      h: r,
      u,
      verdict: html("b", {}, trial.kept ? Y.keep : Y.reject),
      limit: trial.limit == null ? "–" : formatFigure(trial.limit),
      sample: trial.sample ? formatPiece(trial.sample.piece) : "–",
    };
    const fresh =
      trial.u != null &&
      cycle.drafts[node].u == null &&
      !(S.choice.coins && S.choice.coins[node] != null)
        ? [Y.fresh]
        : [];
    if (verdict.rule === SAMPLE_AND_MATCH || verdict.rule === SHARED_NOISE)
      return fillTemplate(
        !trial.sample ? Y.plain : verdict.rule === SAMPLE_AND_MATCH ? Y.match : Y.noise,
        values,
      );
    if (verdict.rule === FIRST_CHOICE) return fillTemplate(Y.first, values);
    if (verdict.rule === TYPICAL_ACCEPTANCE)
      return fillTemplate(trial.limit == null ? Y.plain : Y.typical, values);
    if (trial.u == null) return fillTemplate(Y.plain, values);
    if (verdict.rule === BLOCK_VERIFICATION)
      return [
        ...fillTemplate(Y.block, {
          ...values,
          verdict: html("b", {}, trial.kept ? Y.keep_block : Y.reject_block),
        }),
        ...fresh,
      ];
    if (isGreedy()) return fillTemplate(trial.kept ? Y.greedy : Y.not_greedy, values);
    return trial.p >= trial.q
      ? fillTemplate(Y.sure, values)
      : [...fillTemplate(Y.coin, values), ...fresh];
  }

  function ownSentence() {
    const { own, verdict } = now(),
      Y = W.own_says;
    const name = own.sample ? createMark(own.state, own.sample.piece) : html("span", {}, guess());
    const key =
      own.state === "pla"
        ? "pla"
        : now().cycle.served && own.state === "res"
          ? "served"
          : own.state === "bon"
            ? "bonus"
            : own.node < 0
              ? ({ [SAMPLE_AND_MATCH]: "match", [SHARED_NOISE]: "noise", [FIRST_CHOICE]: "greedy" }[
                  verdict.rule
                ] ?? "straight")
              : isGreedy()
                ? "greedy"
                : "residual";
    return fillTemplate(Y[key], { own: name });
  }

  /* Where the trace does not tell which token would be drawn, the likeliest. */
  function guess() {
    const { own, cycle, verdict } = now();
    const likeliest = ({ piece }, p) =>
      fillText(W.own_says.likeliest, { x: formatPiece(piece), p: formatFigure(p) });
    if (own.node < 0) {
      const first = own.distribution && own.distribution.top[0];
      return first ? likeliest(first, first.prob) : W.own_says.unknown;
    }
    const both = distributionsOf(cycle.drafts[own.node], weightOf(verdict)),
      best = [...both.known].sort((a, b) => b.p - b.q - a.p + a.q)[0];
    return best && best.p > best.q
      ? likeliest(best, (best.p - best.q) / both.surplus)
      : W.own_says.unknown;
  }

  return { sentence, guess };
}
