/* What is read off a run, as `log.js` folds it: no document here. */

export const EPS = 1e-6,
  UNNAMED = -1; // a token that a server does not tell

/* The last token of the path that was kept, -1 if none was. */
export const tipOf = (cycle) =>
  cycle.drafts.reduce((tip, draft, i) => (draft.state === "acc" ? i : tip), -1);

/* When a cycle's first token shows. */
export const beginning = (cycle) => Math.min(cycle.at, ...cycle.drafts.map((draft) => draft.ready));

/* The totals before the first cycle. */
export const NOTHING = {
  tokens: 0,
  accepted: 0,
  judged: 0,
  drafted: 0,
  trees: 0,
  drafting: 0,
  passing: 0,
  checks: 0,
  checking: 0,
};

export const speculative = (run) => run.lanes[run.names[0]];
export const plain = (run) =>
  run.names.length > 1 ? run.lanes[run.names[run.names.length - 1]] : null;
export const peerOf = (run) => (run.names.length > 2 ? run.lanes[run.names[1]] : null);

/* A lane may be a server's, watched from outside. Then `started` says whose, and at the end how its cycles are
 * known. */
export const serverOf = (lane) => (lane && lane.started && lane.started.server) || "";
export const isServed = (run) =>
  Boolean((run.header.models || {}).server || serverOf(speculative(run)));
export const countedOf = (lane) => (lane.finished && lane.finished.counted) || "";
export const isTold = (lane) =>
  // what became of each cycle's drafts
  !serverOf(lane) || ["exact", "merged"].includes(countedOf(lane)) || isPlain(lane);
const isPlain = (lane) =>
  // a server that does not speculate
  Boolean(serverOf(lane) && lane.finished && lane.finished.reason !== "failed" && !countedOf(lane));

export const isOver = (run) => run.closed || run.names.every((name) => run.lanes[name].finished);
export const wasStopped = (run) =>
  run.closed && !run.names.every((name) => run.lanes[name].finished);

/* How far the replay may go: while the run goes on, no lane may be shown ahead of what the other has done. Servers are
 * watched one after the other. */
export function horizon(run) {
  const lanes = run.names.map((name) => run.lanes[name]);
  if (isOver(run) || isServed(run)) return Math.max(...lanes.map((lane) => lane.end));
  const busy = lanes.filter((lane) => !lane.finished);
  return Math.min(...busy.map((lane) => lane.end));
}

export function doneBy(cycles, t) {
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
export const written = (lane, k) =>
  (lane.first ? lane.first.pieces.length : 0) + (k ? lane.cycles[k - 1].sum.tokens : 0);

/* The times between arrivals, from the first token on, in ms: the median and the longest. */
export function gapsOf(lane, t) {
  const ends = lane.cycles.slice(0, doneBy(lane.cycles, t)).map((cycle) => cycle.at),
    gaps = ends.map((at, i) => at - (i ? ends[i - 1] : 0)).filter((gap) => gap > EPS);
  return gaps.length ? { median: middle(gaps), longest: Math.max(...gaps) } : null;
}

/* Everything the figures line needs at time t. Costs are in plain passes of the target; what a server does not
 * tell is null. */
export function figuresAt(run, t) {
  const laneAt = (lane) => {
    if (!lane) return { k: 0, last: null, ...NOTHING, written: 0, time: 0, rate: 0 };
    const k = doneBy(lane.cycles, t),
      last = k ? lane.cycles[k - 1] : null;
    const sum = last ? last.sum : NOTHING;
    return {
      k,
      last,
      ...sum,
      written: written(lane, k),
      time: last ? last.at : 0,
      rate: last && last.at > 0 ? (sum.tokens / last.at) * 1000 : 0,
    };
  };
  const lane = speculative(run),
    a = laneAt(lane),
    b = laneAt(plain(run)),
    peer = peerOf(run) && laneAt(peerOf(run));
  const told = isTold(lane),
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
export function isBusy(run) {
  const A = speculative(run),
    B = plain(run),
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

export const firstRejection = (run) =>
  speculative(run).cycles.find((cycle) => cycle.own && cycle.own.state === "res") || null;

/* Where does a lane part from the plain one? -1 if nowhere among the tokens that both have: greedy ones must agree.
 * Pieces are compared where a server tells no ids. */
export function partAt(run, lane = speculative(run)) {
  if (!plain(run)) return { at: -1, of: 0 };
  const all = (lane, what) =>
    (lane.first ? lane.first[what] : []).concat(...lane.cycles.map((cycle) => cycle[what]));
  const what = [lane, plain(run)].some((one) => all(one, "tokens").includes(UNNAMED))
    ? "pieces"
    : "tokens";
  const a = all(lane, what),
    b = all(plain(run), what),
    n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return { at: i, of: n };
  return { at: -1, of: n };
}

/* The lanes in the order of the page: speculative, plain, and the peer if there is one. */
export const shownLanes = (run) => [speculative(run), plain(run), peerOf(run)].filter(Boolean);

/* The deepest level of a cycle's tree. */
export const depthOf = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

/* S: a run and the moment S.t that is shown of it. */
export const atEnd = (S) => S.t >= horizon(S.run) - EPS;

export const isGreedy = (run) => {
  const { started } = speculative(run);
  return Boolean(started && started.params && started.params.temperature === 0);
};

/* Whether a coin decides about this draft: the chance is neither near 0 nor near 1. */
export const isOpen = ({ p, q }) => p > 0.1 * q && p < 0.9 * q;
