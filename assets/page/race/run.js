// @ts-check
/* A run, folded from its log of events, and what is read off it: no document here. Times inside are milliseconds since
 * the end of a lane's prefill, because the page compares decoding. */

const STATE = {
  accepted: "acc",
  rejected: "rej",
  discarded: "dis",
  resampled: "res",
  bonus: "bon",
};
const EPS = 1e-6,
  UNNAMED = -1; // a token that a server does not tell

function newRun(header) {
  const names = header.lanes && header.lanes.length ? header.lanes : ["speculative", "plain"];
  const lanes = {};
  for (const name of names) lanes[name] = newLane(name);
  return { header, names, lanes, closed: false };
}

function newLane(name) {
  return {
    name,
    started: null,
    zero: null,
    first: null,
    open: null,
    cycles: [],
    failures: [],
    finished: null,
    end: 0,
  };
}

function fold(lines) {
  let run = null;
  for (const event of lines) run = apply(run, event);
  return run;
}

/* Events of unknown kinds or lanes pass by: a newer log still plays. */
function apply(run, event) {
  if (event.event === "header") return newRun(event);
  if (!run || typeof event.lane !== "string") return run;
  const lane = run.lanes[event.lane];
  if (!lane) return run;
  if (event.event === "started") lane.started = event;
  else if (event.event === "drafted") lane.open = { drafted: event };
  else if (event.event === "verified")
    lane.open = { ...sameCycle(lane.open, event), verified: event };
  else if (event.event === "committed") commit(lane, event);
  else if (event.event === "failed") lane.failures.push(event);
  else if (event.event === "finished") lane.finished = event;
  return run;
}

const sameCycle = (open, event) =>
  open && open.drafted && open.drafted.cycle === event.cycle ? open : {};

function commit(lane, event) {
  const open = lane.open || {};
  lane.open = null;
  if (lane.zero === null) {
    lane.zero = event.at;
    lane.first = {
      pieces: event.pieces,
      tokens: event.tokens,
      law: open.verified && open.verified.law,
      p: open.verified && open.verified.p,
    };
    if (open.drafted) lane.first.cycle = { ...newCycle(lane, open, event), number: 0 }; // a peer may draft before it reads the prompt
    return;
  }
  const cycle = newCycle(lane, open, event);
  lane.cycles.push(cycle);
  lane.end = cycle.at;
}

function newCycle(lane, open, event) {
  const ms = (seconds) => (seconds - lane.zero) * 1000;
  const before = lane.cycles.length ? lane.cycles[lane.cycles.length - 1] : null;
  const { drafted, verified } = open;
  const positions = (verified && verified.positions) || [];
  const served = serverOf(lane); // it does not tell when it drafted, and all of a cycle arrives together
  const draft =
    drafted && !served
      ? { start: ms(drafted.start), end: ms(drafted.end), steps: (drafted.step_ends || []).map(ms) }
      : null;
  const check = verified ? { start: ms(verified.start), end: ms(verified.end) } : null;
  const kept = event.tokens.length,
    parents = parentsOf((drafted && drafted.parents) || [], positions.length),
    levels = [];
  const drafts = positions.map((position, i) => {
    const level = (levels[i] = parents[i] < 0 ? 1 : levels[parents[i]] + 1);
    const state = kept === event.accepted && level > kept ? "cut" : STATE[position.status] || "dis"; // cut: the text ended before it
    return {
      ...position,
      state,
      level,
      parent: parents[i],
      ready: draft ? (draft.steps[i] ?? draft.end) : served ? ms(event.at) : 0,
      seam: ((drafted && drafted.own) || [])[i],
    };
  });
  const own = kept > event.accepted ? ownToken(event, verified, drafts.length) : null;
  const reached = [
    ...new Set(
      drafts.filter((one) => one.state === "acc" || one.state === "rej").map((one) => one.level),
    ),
  ];
  const cycle = {
    number: lane.cycles.length + 1,
    draft,
    check,
    drafts,
    own,
    at: ms(event.at),
    gained: kept,
    served: Boolean(served),
    tokens: event.tokens,
    pieces: event.pieces,
    bonus: verified && verified.bonus,
    who: (drafted && drafted.drafter) || "", // where the drafter is chosen anew in every cycle
    start: draft ? draft.start : check ? check.start : before ? before.at : 0,
    tree: new Set(parents).size < parents.length,
    accepted: reached.filter((level) =>
      drafts.some((one) => one.level === level && one.state === "acc"),
    ).length,
    judged: reached.length,
  };
  cycle.sum = addUp(before && before.sum, cycle);
  return cycle;
}

/* The node that each token follows, -1 for the text. Without a word about it, the draft is a chain. */
const parentsOf = (told, n) =>
  Array.from({ length: n }, (_, i) =>
    Number.isInteger(told[i]) && told[i] >= -1 && told[i] < i ? told[i] : i - 1,
  );

/* The last token of the path that was kept, -1 if none was. */
const tipOf = (cycle) =>
  cycle.drafts.reduce((tip, draft, i) => (draft.state === "acc" ? i : tip), -1);

/* When a cycle's first token shows. */
const beginning = (cycle) => Math.min(cycle.at, ...cycle.drafts.map((draft) => draft.ready));

function ownToken(event, verified, drafted) {
  const last = event.tokens.length - 1;
  return {
    piece: event.pieces[last],
    token: event.tokens[last],
    state: drafted ? STATE[event.kind] || "pla" : "pla",
    law: verified && verified.law,
    p: verified && verified.p,
  };
}

/* Totals up to and with this cycle: figures at any time are a look-up, not a sum. A check is a pass over a draft. */
const NOTHING = {
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
function addUp(sum, cycle) {
  const last = sum || NOTHING,
    pass = cycle.check ? cycle.check.end - cycle.check.start : 0,
    checks = Number(pass > 0 && cycle.drafts.length > 0);
  return {
    tokens: last.tokens + cycle.gained,
    accepted: last.accepted + cycle.accepted,
    judged: last.judged + cycle.judged,
    drafted: last.drafted + cycle.drafts.length,
    trees: last.trees + Number(cycle.tree),
    drafting: last.drafting + (cycle.draft ? cycle.draft.end - cycle.draft.start : 0),
    passing: last.passing + pass,
    checks: last.checks + checks,
    checking: last.checking + checks * pass,
  };
}

const speculative = (run) => run.lanes[run.names[0]];
const plain = (run) => (run.names.length > 1 ? run.lanes[run.names[run.names.length - 1]] : null);
const peerOf = (run) => (run.names.length > 2 ? run.lanes[run.names[1]] : null);

/* A lane may be a server's, watched from outside. Then `started` says whose, and at the end how its cycles are known. */
const serverOf = (lane) => (lane && lane.started && lane.started.server) || "";
const isServed = (run) => Boolean((run.header.models || {}).server || serverOf(speculative(run)));
const countedOf = (lane) => (lane.finished && lane.finished.counted) || "";
const isTold = (lane) =>
  !serverOf(lane) || ["exact", "merged"].includes(countedOf(lane)) || isPlain(lane); // what became of each cycle's drafts
const isPlain = (lane) =>
  Boolean(serverOf(lane) && lane.finished && lane.finished.reason !== "failed" && !countedOf(lane)); // a server that does not speculate

const isOver = (run) => run.closed || run.names.every((name) => run.lanes[name].finished);
const wasStopped = (run) => run.closed && !run.names.every((name) => run.lanes[name].finished);

/* How far the replay may go: while the run goes on, no lane may be shown ahead of what the other has done. Servers are
 * watched one after the other. */
function horizon(run) {
  const lanes = run.names.map((name) => run.lanes[name]);
  if (isOver(run) || isServed(run)) return Math.max(...lanes.map((lane) => lane.end));
  const busy = lanes.filter((lane) => !lane.finished);
  return Math.min(...busy.map((lane) => lane.end));
}

function doneBy(cycles, t) {
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
const written = (lane, k) =>
  (lane.first ? lane.first.pieces.length : 0) + (k ? lane.cycles[k - 1].sum.tokens : 0);

/* The times between arrivals, from the first token on, in ms: the median and the longest. */
function gapsOf(lane, t) {
  const ends = lane.cycles.slice(0, doneBy(lane.cycles, t)).map((cycle) => cycle.at),
    gaps = ends.map((at, i) => at - (i ? ends[i - 1] : 0)).filter((gap) => gap > EPS);
  return gaps.length ? { median: middle(gaps), longest: Math.max(...gaps) } : null;
}

/* Everything the figures line needs at time t. Costs are in plain passes of the target; what a server does not tell is null. */
function figuresAt(run, t) {
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

/* Whether the machine was busy, so that the speed-up is no fact: `Comparison.machine_busy` in Python has the same rule. */
const SLACK = 1.05,
  SCATTER = 1.5,
  FEW = 8;
function isBusy(run) {
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
  return scatters(passes(A, true)) || scatters(passes(B, false)) || F.speedup > SLACK * F.tau;
}

function middle(values) {
  const sorted = [...values].sort((a, b) => a - b),
    n = sorted.length;
  return (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2;
}

const firstRejection = (run) =>
  speculative(run).cycles.find((cycle) => cycle.own && cycle.own.state === "res") || null;

/* Where does a lane part from the plain one? -1 if nowhere among the tokens that both have: greedy ones must agree.
 * Pieces are compared where a server tells no ids. */
function partAt(run, lane = speculative(run)) {
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

/* Reads a growing text line by line; a first line that differs begins a new run. */
function newReader() {
  return { head: null, length: 0, run: null };
}

function read(reader, text) {
  const fresh =
    reader.head !== null && (text.length < reader.length || !text.startsWith(reader.head));
  if (fresh) Object.assign(reader, newReader());
  let end;
  while ((end = text.indexOf("\n", reader.length)) >= 0) {
    const line = text.slice(reader.length, end);
    reader.length = end + 1;
    if (reader.head === null) reader.head = line + "\n";
    try {
      reader.run = apply(reader.run, JSON.parse(line));
    } catch (error) {
      console.warn("a line of the run cannot be read", error);
    }
  }
  return fresh;
}

/* The lanes in the order of the page: speculative, plain, and the peer if there is one. */
const shownLanes = (run) => [speculative(run), plain(run), peerOf(run)].filter(Boolean);

/* The deepest level of a cycle's tree. */
const depthOf = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

/* S: a run and the moment S.t that is shown of it. */
const atEnd = (S) => S.t >= horizon(S.run) - EPS;

const isGreedy = (run) => {
  const { started } = speculative(run);
  return Boolean(started && started.params && started.params.temperature === 0);
};

/* The grammar of the settings, "" for none; and whether it alone leaves a token without a chance: top-k and top-p do so, too. */
const grammarOf = ({ params } = /** @type {any} */ ({})) =>
  params && typeof params.grammar === "string" ? params.grammar : "";
const isBarred = (started, p) =>
  p === 0 &&
  Boolean(grammarOf(started || {})) &&
  !started.params.top_k &&
  started.params.top_p === 1;

module.exports = {
  EPS,
  UNNAMED,
  NOTHING,
  newRun,
  fold,
  apply,
  tipOf,
  beginning,
  speculative,
  plain,
  peerOf,
  isOver,
  wasStopped,
  horizon,
  doneBy,
  written,
  figuresAt,
  isBusy,
  firstRejection,
  partAt,
  serverOf,
  isServed,
  countedOf,
  isTold,
  gapsOf,
  newReader,
  read,
  atEnd,
  shownLanes,
  depthOf,
  isGreedy,
  grammarOf,
  isBarred,
};
