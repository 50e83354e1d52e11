/* What a run measured, in the letters of the formulas. */

import { figuresAt } from "#page/race/measure.js";
import { replayEnd, speculativeOf } from "#page/race/run.js";
import { accountedSpeedup } from "#page/theory/formulas.js";

/* In the letters of the formulas; null if nothing was drafted or nothing stands beside it. Costs are in plain steps. */
export function measureRun(run) {
  if (run.names.length < 2) return null;
  const F = figuresAt(run, replayEnd(run)),
    { speculative: a } = F,
    lane = speculativeOf(run),
    cycles = lane.cycles.slice(0, a.passes),
    drafting = cycles.filter((cycle) => cycle.drafting);
  if (!a.judged || F.c == null || F.v == null || !F.speedup) return null;
  const { drafter = "", k: asked = 0, params } = lane.started || {},
    count = (of) => (place) => cycles.filter((cycle) => of(cycle) > place).length;
  const places = Array.from(
    { length: Math.max(...cycles.map((cycle) => cycle.judged)) },
    (_, place) => place,
  );
  const judgedAt = places.map(count((cycle) => cycle.judged)),
    acceptedAt = places.map(count((cycle) => cycle.accepted));
  const alphas = acceptedAt.map((kept, place) => kept / judgedAt[place]),
    mean = a.drafted / drafting.length,
    share = drafting.length / a.passes,
    tree = a.trees > 0;
  const o = F.inPlainPasses(Math.max(0, a.endMs - a.draftMs - a.passMs), a.passes),
    step = F.inPlainPasses(a.passMs - a.checkMs, a.passes - a.checks) ?? 1;
  const k = tree ? asked : Math.max(1, Math.round(mean)),
    c = tree ? F.inPlainPasses(a.draftMs, drafting.length * k) : F.c;
  return {
    drafter,
    k,
    c,
    v: F.v,
    o,
    share,
    tree,
    varied: !tree && Math.abs(mean - k) > 0.1,
    tau: F.tau,
    alpha: F.alpha,
    alphas,
    judgedAt,
    acceptedAt,
    judged: a.judged,
    accepted: a.accepted,
    measured: F.speedup,
    accounted: accountedSpeedup(F.tau, mean, F.c, F.v, o, share, step),
    temperature: params ? params.temperature : 0,
    kind: run.header.kind || "",
    family: (run.header.models || {}).family,
    passMs: F.plain.endMs / F.plain.passes,
    keptOf: drafting
      .filter((cycle) => cycle.targetToken && deep(cycle) === k)
      .map((cycle) => cycle.accepted),
  };
}

const deep = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));
