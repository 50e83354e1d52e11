/* Computes α, τ, K and the costs from the events of a run. */

import { figuresAt } from "#page/race/measure.js";
import { replayEnd, speculativeOf } from "#page/race/run.js";
import { accountedSpeedup } from "#page/theory/formulas.js";

/* Takes c, v and o in plain steps. Returns null if a figure is missing, for example without a plain lane. */
export function measureRun(/** @type {Run} */ run) {
  if (run.names.length < 2) return null;
  const figures = /** @type {Figures & Record<"alpha" | "tau" | "c" | "v", number>} */ (figuresAt(run, replayEnd(run))),
    costOf = (/** @type {number} */ ms, /** @type {number} */ n) => Number(figures.inPlainPasses(ms, n)),
    { speculative: sums } = figures,
    lane = speculativeOf(run),
    cycles = lane.cycles.slice(0, sums.passes),
    drafting = cycles.filter((cycle) => cycle.drafting);
  if (!sums.judged || figures.c == null || figures.v == null || !figures.speedup) return null;
  const { drafter = "", k: requestedK = 0, params } = lane.started || {},
    countBeyond = (/** @type {(cycle: Cycle) => number} */ countOf) => (/** @type {number} */ place) =>
      cycles.filter((cycle) => countOf(cycle) > place).length;
  const places = Array.from({ length: Math.max(...cycles.map((cycle) => cycle.judged)) }, (_, place) => place);
  const judgedAt = places.map(countBeyond((cycle) => cycle.judged)),
    acceptedAt = places.map(countBeyond((cycle) => cycle.accepted));
  const alphas = acceptedAt.map((accepted, place) => accepted / judgedAt[place]),
    meanDrafts = sums.drafted / drafting.length,
    share = drafting.length / sums.passes,
    tree = sums.trees > 0;
  const o = costOf(Math.max(0, sums.endMs - sums.draftMs - sums.passMs), sums.passes),
    step = figures.inPlainPasses(sums.passMs - sums.checkMs, sums.passes - sums.checks) ?? 1;
  const k = tree ? requestedK : Math.max(1, Math.round(meanDrafts)),
    c = tree ? costOf(sums.draftMs, drafting.length * k) : figures.c;
  return {
    drafter,
    k,
    c,
    v: figures.v,
    o,
    share,
    tree,
    varied: !tree && Math.abs(meanDrafts - k) > 0.1,
    tau: figures.tau,
    alpha: figures.alpha,
    alphas,
    judgedAt,
    acceptedAt,
    judged: sums.judged,
    accepted: sums.accepted,
    speedup: figures.speedup,
    accounted: accountedSpeedup(figures.tau, meanDrafts, figures.c, figures.v, o, share, step),
    temperature: params ? params.temperature : 0,
    kind: run.header.kind || "",
    family: (run.header.models || {}).family,
    passMs: figures.plain.endMs / figures.plain.passes,
    acceptedCounts: drafting
      .filter((cycle) => cycle.targetToken && depthOfCycle(cycle) === k)
      .map((cycle) => cycle.accepted),
  };
}

const depthOfCycle = (/** @type {Cycle} */ cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));
