/* Writes one sentence on the open sub-step, with the figures of its cycle. */

import { html } from "#page/race/html.js";
import { fillTemplate, fillText, formatPiece } from "#page/race/text.js";
import { formatDuration, formatApart } from "#page/race/format.js";
import { BLOCK_VERIFICATION, SHARED_NOISE } from "#page/race/run.js";
import { SAMPLE_AND_MATCH, FIRST_CHOICE, TYPICAL_ACCEPTANCE } from "#page/step/judge.js";
import { prefixWeightOf, distributionsOf } from "#page/step/distributions.js";
import { formatFigure, createMark } from "#page/step/marks.js";

export function createSentences(/** @type {StepPage} */ page, /** @type {any} */ serverViews) {
  const { texts, view, current, isGreedy, passTime } = page;

  function stepSentence() {
    const { cycle, states, targetToken, gained } = current(),
      says = texts.say,
      drafted = states.filter((state) => state !== "out").length;
    if (cycle.served && ["draft", "check"].includes(String(view.step)))
      return serverViews.draftSentence(view.step, drafted);
    if (view.step === "draft")
      return fillTemplate(cycle.tree ? says.draft_tree : drafted === 1 ? says.draft_one : says.draft, {
        n: drafted,
        time: cycle.drafting ? formatDuration(cycle.drafting.end - cycle.drafting.start) : "–",
        levels: Math.max(...cycle.drafts.map((draft) => draft.level)),
      });
    if (view.step === "check")
      return fillTemplate(drafted ? says.check : says.check_plain, {
        rows: drafted + 1,
        time: passTime(),
      });
    if (view.step === "late") {
      const late = states.filter((state) => state === "discarded").length;
      return fillTemplate(cycle.tree ? says.late_tree : late === 1 ? says.late_one : says.late, {
        n: late,
      });
    }
    if (view.step === "commit")
      return fillTemplate(
        !targetToken ? says.ended : gained === 1 ? (drafted ? says.commit_one : says.commit_plain) : says.commit,
        {
          n: gained,
          drafts: drafted,
        },
      );
    if (view.step === "own") return targetSentence();
    return judgeSentence(Number(view.step));
  }

  function judgeSentence(/** @type {number} */ node) {
    if (current().cycle.served) return serverViews.judgeSentence(node);
    const { verdict, cycle } = current(),
      says = texts.judge,
      trial = verdict.trials[node],
      { piece } = cycle.drafts[node],
      [u, chance] = trial.u == null ? ["–", "–"] : formatApart(trial.u, trial.chance);
    const values = {
      x: createMark(trial.accepted ? "accepted" : "rejected", piece),
      p: formatFigure(trial.p),
      q: formatFigure(trial.q),
      r: chance,
      h: chance,
      u,
      verdict: html("b", {}, trial.accepted ? says.keep : says.reject),
      limit: trial.limit == null ? "–" : formatFigure(trial.limit),
      sample: trial.sample ? formatPiece(trial.sample.piece) : "–",
    };
    const newCoinNote =
      trial.u != null && cycle.drafts[node].u == null && !(view.choice.coins && view.choice.coins[node] != null)
        ? [says.fresh]
        : [];
    if (verdict.rule === SAMPLE_AND_MATCH || verdict.rule === SHARED_NOISE)
      return fillTemplate(
        !trial.sample ? says.plain : verdict.rule === SAMPLE_AND_MATCH ? says.match : says.noise,
        values,
      );
    if (verdict.rule === FIRST_CHOICE) return fillTemplate(says.first, values);
    if (verdict.rule === TYPICAL_ACCEPTANCE)
      return fillTemplate(trial.limit == null ? says.plain : says.typical, values);
    if (trial.u == null) return fillTemplate(says.plain, values);
    if (verdict.rule === BLOCK_VERIFICATION)
      return [
        ...fillTemplate(says.block, {
          ...values,
          verdict: html("b", {}, trial.accepted ? says.keep_block : says.reject_block),
        }),
        ...newCoinNote,
      ];
    if (isGreedy()) return fillTemplate(trial.accepted ? says.greedy : says.not_greedy, values);
    return trial.p >= trial.q ? fillTemplate(says.sure, values) : [...fillTemplate(says.coin, values), ...newCoinNote];
  }

  function targetSentence() {
    const { targetToken, verdict } = current(),
      says = texts.own_says;
    const name = targetToken.sample
      ? createMark(targetToken.state, targetToken.sample.piece)
      : html("span", {}, describeLikeliest());
    const key =
      targetToken.state === "plain"
        ? "plain"
        : current().cycle.served && targetToken.state === "resampled"
          ? "served"
          : targetToken.state === "bonus"
            ? "bonus"
            : targetToken.node < 0
              ? ({ [SAMPLE_AND_MATCH]: "match", [SHARED_NOISE]: "noise", [FIRST_CHOICE]: "greedy" }[verdict.rule] ??
                "straight")
              : isGreedy()
                ? "greedy"
                : "residual";
    return fillTemplate(says[key], { own: name });
  }

  /* Names the target's likeliest token, where no sampled one is known. */
  function describeLikeliest() {
    const { targetToken, cycle, verdict } = current();
    const formatLikeliest = (/** @type {Candidate} */ { piece }, /** @type {number} */ p) =>
      fillText(texts.own_says.likeliest, { x: formatPiece(piece), p: formatFigure(p) });
    if (targetToken.node < 0) {
      const likeliestToken = targetToken.distribution && targetToken.distribution.top[0];
      return likeliestToken ? formatLikeliest(likeliestToken, likeliestToken.prob) : texts.own_says.unknown;
    }
    const distributions = distributionsOf(cycle.drafts[targetToken.node], prefixWeightOf(verdict)),
      likeliestRow = [...distributions.complete].sort((a, b) => b.p - b.q - a.p + a.q)[0];
    return likeliestRow && likeliestRow.p > likeliestRow.q
      ? formatLikeliest(likeliestRow, (likeliestRow.p - likeliestRow.q) / distributions.surplus)
      : texts.own_says.unknown;
  }

  return { stepSentence, describeLikeliest };
}
