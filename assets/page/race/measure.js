/* Computes the figures of a run at a moment of its replay; without a document. */

import {
  EPS,
  UNNAMED,
  NO_TOTALS,
  speculativeOf,
  plainOf,
  peerOf,
  serverOf,
  reportsDrafts,
} from "#page/race/run.js";

export function countCyclesBy(cycles, t) {
  let low = 0,
    high = cycles.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (cycles[mid].at <= t + EPS) low = mid + 1;
    else high = mid;
  }
  return low;
}

/* Tokens in the lane's text after so many cycles, the prefill's own included. */
export const countTokens = (lane, k) =>
  (lane.first ? lane.first.pieces.length : 0) + (k ? lane.cycles[k - 1].sum.tokens : 0);

/* The times between arrivals, from the first token on, in ms: the median and the longest. */
export function gapsOf(lane, t) {
  const ends = lane.cycles.slice(0, countCyclesBy(lane.cycles, t)).map((cycle) => cycle.at),
    gaps = ends.map((at, i) => at - (i ? ends[i - 1] : 0)).filter((gap) => gap > EPS);
  return gaps.length ? { median: middle(gaps), longest: Math.max(...gaps) } : null;
}

/* Everything the figures line needs at time t. Costs are in plain passes of the target; what a server does not
 * tell is null. */
export function figuresAt(run, t) {
  const laneAt = (lane) => {
    if (!lane) return { k: 0, last: null, ...NO_TOTALS, written: 0, time: 0, rate: 0 };
    const k = countCyclesBy(lane.cycles, t),
      last = k ? lane.cycles[k - 1] : null;
    const sum = last ? last.sum : NO_TOTALS;
    return {
      k,
      last,
      ...sum,
      written: countTokens(lane, k),
      time: last ? last.at : 0,
      rate: last && last.at > 0 ? (sum.tokens / last.at) * 1000 : 0,
    };
  };
  const lane = speculativeOf(run),
    a = laneAt(lane),
    b = laneAt(plainOf(run)),
    peer = peerOf(run) && laneAt(peerOf(run));
  const told = reportsDrafts(lane),
    own = !serverOf(lane),
    sums = lane.finished && lane.finished.drafted ? lane.finished : null;
  const pass = b.k ? b.time / b.k : 0;
  const perPass = (ms, n) => (pass && n ? ms / n / pass : null);
  return {
    a,
    b,
    peer,
    speedup: a.rate && b.rate ? a.rate / b.rate : null,
    against: peer && peer.rate && b.rate ? peer.rate / b.rate : null,
    told,
    alpha: told && a.judged ? a.accepted / a.judged : null,
    tau: a.k ? a.tokens / a.k : null,
    dar: told
      ? a.drafted
        ? a.accepted / a.drafted
        : null
      : sums
        ? sums.accepted / sums.drafted
        : null,
    perPass,
    cost: perPass(a.time, a.k),
    c: own ? perPass(a.drafting, a.drafted) : null,
    v: own ? perPass(a.checking, a.checks) : null,
    draftCost: own ? perPass(a.drafting, a.k) : null,
    passCost: own ? perPass(a.passing, a.k) : null,
  };
}

/* Whether the machine was busy, so that the speed-up is no fact: `Trace.summary` in Python has the same rule. */
const SLACK = 1.05,
  SCATTER = 1.5,
  FEW = 8;
export function wasMachineBusy(run) {
  const A = speculativeOf(run),
    B = plainOf(run),
    F = figuresAt(run, Infinity);
  if (!F.speedup || serverOf(A) || serverOf(B)) return false;
  const passes = (lane, drafted) =>
    lane.cycles
      .filter((cycle) => cycle.check && Boolean(cycle.drafts.length) === drafted)
      .map((cycle) => cycle.check.end - cycle.check.start);
  const scatters = (times) =>
    times.length >= FEW &&
    times.reduce((sum, one) => sum + one, 0) / times.length > SCATTER * middle(times);
  return (
    (run.header.machine || {}).busy === true ||
    scatters(passes(A, true)) ||
    scatters(passes(B, false)) ||
    F.speedup > SLACK * (F.tau ?? 0)
  );
}

function middle(values) {
  const sorted = [...values].sort((a, b) => a - b),
    n = sorted.length;
  return (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2;
}

/* Where does a lane part from the plain one? -1 if nowhere among the tokens that both have: greedy ones must agree.
 * Pieces are compared where a server tells no ids. */
export function findDivergence(run, lane = speculativeOf(run)) {
  if (!plainOf(run)) return { at: -1, of: 0 };
  const all = (lane, what) =>
    (lane.first ? lane.first[what] : []).concat(...lane.cycles.map((cycle) => cycle[what]));
  const what = [lane, plainOf(run)].some((one) => all(one, "tokens").includes(UNNAMED))
    ? "pieces"
    : "tokens";
  const a = all(lane, what),
    b = all(plainOf(run), what),
    n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return { at: i, of: n };
  return { at: -1, of: n };
}
