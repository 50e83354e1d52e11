/* Builds a run from the events of a log. A run has lanes, and a lane has cycles. Times of cycles are in ms since the
 * end of the lane's prefill (`prefillEnd`, in s), because the page compares only decoding. */

import { NO_TOTALS, serverOf } from "#page/race/run.js";
import { BYTES } from "#page/race/text.js";

function createRun(/** @type {Header} */ header) {
  const names = header.lanes && header.lanes.length ? header.lanes : ["speculative", "plain"];
  const lanes = /** @type {Record<string, Lane>} */ ({});
  for (const name of names) lanes[name] = createLane(name);
  return { header, names, lanes, closed: false };
}

function createLane(/** @type {string} */ name) {
  return {
    name,
    started: null,
    prefillEnd: null,
    prefill: null,
    pending: null,
    pendingBytes: [], // bytes of a character that is not complete yet
    cycles: [],
    failures: [],
    finished: null,
    endMs: 0,
  };
}

export function foldEvents(/** @type {TraceEvent[]} */ lines) {
  let run = /** @type {Run | null} */ (null);
  for (const event of lines) run = applyEvent(run, event);
  return /** @type {Run} */ (run);
}

/* Applies an event to a run and returns the run. Skips unknown events and lanes, so that a newer log still plays. */
export function applyEvent(/** @type {Run | null} */ run, /** @type {any} */ event) {
  if (event.event === "header") return createRun(event);
  if (!run || typeof event.lane !== "string") return run;
  const lane = run.lanes[event.lane];
  if (!lane) return run;
  if (event.event === "started") lane.started = event;
  else if (event.event === "drafted") lane.pending = { drafted: event };
  else if (event.event === "verified")
    // traces of schema 1 have the key `law`
    lane.pending = { ...openCycleOf(lane.pending, event), verified: { distribution: event.law, ...event } };
  else if (event.event === "committed") commit(lane, event);
  else if (event.event === "failed") lane.failures.push(event);
  else if (event.event === "finished") lane.finished = event;
  return run;
}

const MAX_BYTES = 16; // at most this many bytes wait for the rest of a character

const bytesOf = (/** @type {string} */ piece) =>
  BYTES.test(piece) ? (piece.match(/[0-9A-F]{2}(?=>)/g) || []).map((byte) => parseInt(byte, 16)) : [];

function decode(/** @type {number[]} */ bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes));
  } catch {
    return "";
  }
}

/* Joins byte tokens that form one character: the last of these tokens becomes the character, the others "". */
function joinBytes(/** @type {Lane} */ lane, /** @type {string[]} */ pieces) {
  return pieces.map((piece) => {
    if (!BYTES.test(piece)) {
      lane.pendingBytes = [];
      return piece;
    }
    lane.pendingBytes.push(...bytesOf(piece));
    const text = decode(lane.pendingBytes);
    if (!text && lane.pendingBytes.length < MAX_BYTES) return "";
    lane.pendingBytes = [];
    return text || piece;
  });
}

const openCycleOf = (/** @type {any} */ pending, /** @type {any} */ event) =>
  pending && pending.drafted && pending.drafted.cycle === event.cycle ? pending : {};

function commit(/** @type {Lane} */ lane, /** @type {any} */ event) {
  const pending = { ...lane.pending, bytes: lane.pendingBytes.slice() },
    texts = joinBytes(lane, event.pieces);
  lane.pending = null;
  if (lane.prefillEnd === null) {
    lane.prefillEnd = event.at;
    lane.prefill = {
      pieces: event.pieces,
      texts,
      tokens: event.tokens,
      distribution: pending.verified && pending.verified.distribution,
      p: pending.verified && pending.verified.p,
    };
    // a peer (a lane of transformers) can draft before its target reads the prompt
    if (pending.drafted) lane.prefill.cycle = { ...createCycle(lane, pending, event, texts), number: 0 };
    return;
  }
  const cycle = createCycle(lane, pending, event, texts);
  lane.cycles.push(cycle);
  lane.endMs = cycle.endMs;
}

/** @param {Lane} lane @param {any} pending @param {any} event @param {string[]} texts */
function createCycle(lane, pending, event, texts) {
  const ms = (/** @type {number} */ seconds) => (seconds - Number(lane.prefillEnd)) * 1000;
  const before = lane.cycles.length ? lane.cycles[lane.cycles.length - 1] : null;
  const { drafted, verified } = pending;
  const positions = /** @type {Position[]} */ ((verified && verified.positions) || []);
  const server = serverOf(lane); // a server does not report when it drafted, and a whole cycle arrives at once
  const drafting =
    drafted && !server
      ? {
          start: ms(drafted.start),
          end: ms(drafted.end),
          steps: (drafted.step_ends || []).map(ms),
        }
      : null;
  const check = verified ? { start: ms(verified.start), end: ms(verified.end) } : null;
  const committed = event.tokens.length,
    parents = parentsOf((drafted && drafted.parents) || [], positions.length),
    levels = /** @type {number[]} */ ([]);
  const drafts = positions.map((position, i) => {
    const level = (levels[i] = parents[i] < 0 ? 1 : levels[parents[i]] + 1);
    // "cut" means that the text ended before this draft
    const state = committed === event.accepted && level > committed ? "cut" : position.status || "discarded";
    return {
      ...position,
      state,
      text: state === "accepted" ? texts[level - 1] : position.piece,
      character: characterOf(positions, i, parents, pending.bytes),
      level,
      parent: parents[i],
      readyMs: drafting ? (drafting.steps[i] ?? drafting.end) : server ? ms(event.at) : 0,
    };
  });
  const targetToken =
    committed > event.accepted
      ? { ...targetTokenOf(event, verified, drafts.length), text: texts[committed - 1] }
      : null;
  const judgedLevels = [
    ...new Set(drafts.filter(({ state }) => state === "accepted" || state === "rejected").map(({ level }) => level)),
  ];
  const cycle = /** @type {Cycle} */ ({
    number: lane.cycles.length + 1,
    drafting,
    check,
    drafts,
    targetToken,
    endMs: ms(event.at),
    gained: committed,
    served: Boolean(server),
    tokens: event.tokens,
    pieces: event.pieces,
    texts,
    bonus: verified && verified.bonus,
    startMs: drafting ? drafting.start : check ? check.start : before ? before.endMs : 0,
    tree: new Set(parents).size < parents.length,
    accepted: judgedLevels.filter((level) => drafts.some((one) => one.level === level && one.state === "accepted"))
      .length,
    judged: judgedLevels.length,
  });
  cycle.totals = addTotals(before && before.totals, cycle);
  return cycle;
}

/** Returns the character that a draft of bytes is a part of, as far as it and the drafts around it tell; else "".
 * @param {Position[]} positions @param {number} i @param {number[]} parents @param {number[]} pendingBytes */
function characterOf(positions, i, parents, pendingBytes) {
  let bytes = /** @type {number[]} */ ([]),
    node = i;
  for (; node >= 0 && BYTES.test(positions[node].piece); node = parents[node])
    bytes = [...bytesOf(positions[node].piece), ...bytes];
  if (node < 0) bytes = [...pendingBytes, ...bytes];
  for (node = i; bytes.length && !decode(bytes); bytes.push(...bytesOf(positions[node].piece)))
    if ((node = parents.indexOf(node)) < 0 || !BYTES.test(positions[node].piece)) return "";
  return [...decode(bytes)].at(-1) ?? "";
}

/* Returns the index of each draft's parent; -1 means the committed text. A log without parents describes a chain. */
const parentsOf = (/** @type {number[]} */ parents, /** @type {number} */ count) =>
  Array.from({ length: count }, (_, i) =>
    Number.isInteger(parents[i]) && parents[i] >= -1 && parents[i] < i ? parents[i] : i - 1,
  );

/** @param {any} event @param {TraceEvent|undefined} verified @param {number} draftCount */
function targetTokenOf(event, verified, draftCount) {
  const last = event.tokens.length - 1;
  return {
    piece: event.pieces[last],
    token: event.tokens[last],
    state: draftCount ? event.kind || "plain" : "plain",
    distribution: verified && verified.distribution,
    p: verified && verified.p,
  };
}

/* Adds a cycle to the totals so far. `checks` and `checkMs` leave out passes without a draft. */
function addTotals(/** @type {Totals|null} */ totals, /** @type {any} */ cycle) {
  const before = totals || NO_TOTALS,
    passMs = cycle.check ? cycle.check.end - cycle.check.start : 0,
    checks = Number(passMs > 0 && cycle.drafts.length > 0);
  return {
    tokens: before.tokens + cycle.gained,
    accepted: before.accepted + cycle.accepted,
    judged: before.judged + cycle.judged,
    drafted: before.drafted + cycle.drafts.length,
    trees: before.trees + Number(cycle.tree),
    draftMs: before.draftMs + (cycle.drafting ? cycle.drafting.end - cycle.drafting.start : 0),
    passMs: before.passMs + passMs,
    checks: before.checks + checks,
    checkMs: before.checkMs + checks * passMs,
  };
}

/* Returns the first two lines of a log, which hold the settings of its run. */
export const headOf = (/** @type {string} */ log) => log.split("\n", 2).join("\n").slice(0, 20000);

/** Creates the state of `readLog`, which reads the new lines of a growing log and returns whether another log began.
 * @returns {LogReader} */
export function createReader() {
  return { firstLine: null, length: 0, run: null };
}

export function readLog(/** @type {LogReader} */ reader, /** @type {string} */ text) {
  const isOtherLog = reader.firstLine !== null && (text.length < reader.length || !text.startsWith(reader.firstLine));
  if (isOtherLog) Object.assign(reader, createReader());
  let end;
  while ((end = text.indexOf("\n", reader.length)) >= 0) {
    const line = text.slice(reader.length, end);
    reader.length = end + 1;
    if (reader.firstLine === null) reader.firstLine = line + "\n";
    try {
      reader.run = applyEvent(reader.run, JSON.parse(line));
    } catch (error) {
      console.warn("a line of the run cannot be read", error);
    }
  }
  return isOtherLog;
}
