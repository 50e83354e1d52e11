/* A run, folded from its log of events. Times inside are milliseconds since the end of a lane's prefill, because
 * the page compares decoding. */

import { NO_TOTALS, serverOf } from "#page/race/run.js";

const STATE = {
  accepted: "acc",
  rejected: "rej",
  discarded: "dis",
  resampled: "res",
  bonus: "bon",
};

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
    half: [], // bytes of a character that is not whole yet
    cycles: [],
    failures: [],
    finished: null,
    end: 0,
  };
}

export function foldEvents(lines) {
  let run = null;
  for (const event of lines) run = applyEvent(run, event);
  return run;
}

/* Events of unknown kinds or lanes pass by: a newer log still plays. */
export function applyEvent(run, event) {
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

const BYTES = /^(<0x[0-9A-F]{2}>)+$/,
  LONGEST = 16; // bytes that may wait for the rest of a character

/* The pieces of a lane's text with the bytes of a character joined: it stands at its last token, and nothing before. */
function joined(lane, pieces) {
  return pieces.map((piece) => {
    if (!BYTES.test(piece)) {
      lane.half = [];
      return piece;
    }
    lane.half.push(...piece.match(/[0-9A-F]{2}(?=>)/g).map((byte) => parseInt(byte, 16)));
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(lane.half));
      lane.half = [];
      return text;
    } catch {
      if (lane.half.length < LONGEST) return "";
      lane.half = [];
      return piece;
    }
  });
}

const sameCycle = (open, event) =>
  open && open.drafted && open.drafted.cycle === event.cycle ? open : {};

function commit(lane, event) {
  const open = lane.open || {},
    texts = joined(lane, event.pieces);
  lane.open = null;
  if (lane.zero === null) {
    lane.zero = event.at;
    lane.first = {
      pieces: event.pieces,
      texts,
      tokens: event.tokens,
      distribution: open.verified && open.verified.law,
      p: open.verified && open.verified.p,
    };
    // a peer may draft before it reads the prompt
    if (open.drafted) lane.first.cycle = { ...newCycle(lane, open, event, texts), number: 0 };
    return;
  }
  const cycle = newCycle(lane, open, event, texts);
  lane.cycles.push(cycle);
  lane.end = cycle.at;
}

function newCycle(lane, open, event, texts) {
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
    // cut: the text ended before it
    const state = kept === event.accepted && level > kept ? "cut" : STATE[position.status] || "dis";
    return {
      ...position,
      state,
      text: state === "acc" ? texts[level - 1] : position.piece,
      level,
      parent: parents[i],
      ready: draft ? (draft.steps[i] ?? draft.end) : served ? ms(event.at) : 0,
    };
  });
  const own =
    kept > event.accepted
      ? { ...ownToken(event, verified, drafts.length), text: texts[kept - 1] }
      : null;
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
    texts,
    bonus: verified && verified.bonus,
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

function ownToken(event, verified, drafted) {
  const last = event.tokens.length - 1;
  return {
    piece: event.pieces[last],
    token: event.tokens[last],
    state: drafted ? STATE[event.kind] || "pla" : "pla",
    distribution: verified && verified.law,
    p: verified && verified.p,
  };
}

/* Totals up to and with this cycle: figures at any time are a look-up, not a sum. A check is a pass over a draft. */
function addUp(sum, cycle) {
  const last = sum || NO_TOTALS,
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

/* Reads a growing text line by line; a first line that differs begins a new run. */
export function createReader() {
  return { head: null, length: 0, run: null };
}

export function readLog(reader, text) {
  const fresh =
    reader.head !== null && (text.length < reader.length || !text.startsWith(reader.head));
  if (fresh) Object.assign(reader, createReader());
  let end;
  while ((end = text.indexOf("\n", reader.length)) >= 0) {
    const line = text.slice(reader.length, end);
    reader.length = end + 1;
    if (reader.head === null) reader.head = line + "\n";
    try {
      reader.run = applyEvent(reader.run, JSON.parse(line));
    } catch (error) {
      console.warn("a line of the run cannot be read", error);
    }
  }
  return fresh;
}
