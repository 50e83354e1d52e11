/* Puts a run into a link, compressed and without its distributions over tokens.
 *
 * A link is untrusted: it is inflated only up to a limit, and its log is checked like that of an opened file. */

import { RUN_PREFIX as PREFIX, carriesRun } from "#page/race/run.js";

export const MAX_FRAGMENT = 8000; // characters of a fragment that chats and browsers accept
export const MAX_INFLATED_BYTES = 1000000; // bytes; a run of 256 tokens has a tenth of that
const STATUSES = ["accepted", "rejected", "discarded"],
  KINDS = ["bonus", "resampled"];

const toMicroseconds = (/** @type {number} */ seconds) => Math.round(seconds * 1e6);
const readLines = (/** @type {string} */ log) =>
  log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const isChain = (/** @type {number[]} */ parents) => parents.every((parent, i) => parent === i - 1);

/* Packs a position. Rounds its numbers to four digits, unless this reverses the decision. A position with an h (block
 * verification) keeps all digits. */
function packPosition(/** @type {Position} */ { token, piece, status, p, q, u, h }) {
  const exact = [p, q, u, h].map((x) => x ?? null),
    rounded = exact.map(roundProbability),
    isAccepted = (/** @type {any[]} */ [p, q, u]) => u * q < p;
  const numbers = h == null && (u == null || isAccepted(exact) === isAccepted(rounded)) ? rounded : exact;
  while (numbers.length && numbers[numbers.length - 1] === null) numbers.pop();
  return [token, piece, STATUSES.indexOf(status), ...numbers];
}
const roundProbability = (/** @type {number | null | undefined} */ x) => (x == null ? null : Number(x.toPrecision(4)));

export function packLog(/** @type {string} */ log) {
  const clock = /** @type {Record<string, number>} */ ({});
  const takeElapsed = (/** @type {string} */ lane, /** @type {number} */ seconds) => {
    const now = toMicroseconds(seconds),
      elapsed = now - (clock[lane] || 0);
    clock[lane] = now;
    return elapsed;
  };
  return readLines(log).map((entry) => {
    const { event, lane } = entry;
    if (event === "drafted")
      return [
        "d",
        lane,
        takeElapsed(lane, entry.start),
        takeElapsed(lane, entry.end),
        isChain(entry.parents) ? 0 : entry.parents,
        entry.drafter ?? 0,
        entry.own ?? 0,
      ];
    if (event === "verified")
      return [
        "v",
        lane,
        takeElapsed(lane, entry.start),
        takeElapsed(lane, entry.end),
        entry.positions.map(packPosition),
        roundProbability(entry.p),
      ];
    if (event !== "committed") return entry.event === "finished" ? { ...entry, text: "" } : entry;
    const targetTokens = entry.tokens.slice(entry.accepted);
    return [
      "c",
      lane,
      takeElapsed(lane, entry.at),
      entry.accepted,
      targetTokens,
      entry.pieces.slice(entry.accepted),
      KINDS.indexOf(entry.kind),
      entry.text === entry.pieces.join("") ? 0 : entry.text,
    ];
  });
}

/* Turns a list back into a log. Throws, or returns an invalid log, if `packLog` did not make the list. */
export function unpackLog(/** @type {any[]} */ packed) {
  const [clock, openDrafts, totals, texts, cycles, spentSeconds] = Array.from(
    { length: 6 },
    () => /** @type {Values} */ ({}),
  );
  const addSpent = (/** @type {string} */ name, /** @type {any} */ { cycle, start, end }) => {
    if (cycle) spentSeconds[name] = (spentSeconds[name] || 0) + end - start;
  };
  /** @param {string} lane @param {number} elapsed */
  const advance = (lane, elapsed) => (clock[lane] = (clock[lane] || 0) + elapsed) / 1e6;
  /* Unpacks the end of a lane. Adapts its seconds to the lane's other events, whose times were rounded. */
  const unpackEnd = (/** @type {any} */ entry) => {
    const { lane } = entry,
      at = Math.max(entry.at, (clock[lane] || 0) / 1e6),
      verify = spentSeconds[lane + " v"] || 0,
      draft = Math.max(entry.draft, spentSeconds[lane + " d"] || 0);
    return {
      ...entry,
      text: texts[lane] || "",
      at,
      verify,
      draft,
      other: Math.max(0, at - entry.prefill - draft - verify),
    };
  };
  const endedLanes = new Set();
  const events = packed.map((entry) => {
    if (!Array.isArray(entry)) {
      if (entry.event !== "finished") return entry;
      if (endedLanes.has(entry.lane)) throw new Error("a lane ends twice"); // many copies of its text would fill memory
      endedLanes.add(entry.lane);
      return unpackEnd(entry);
    }
    const [letter, lane, ...fields] = entry;
    if (letter === "d") {
      const [start, end, parents, drafter, own] = fields;
      const drafted = {
        event: "drafted",
        lane,
        cycle: cycles[lane] || 0,
        tokens: [],
        pieces: [],
        parents,
        start: advance(lane, start),
        end: advance(lane, end),
        step_ends: [],
        ...(drafter ? { drafter } : {}),
        ...(own ? { own } : {}),
      };
      addSpent(lane + " d", drafted);
      return (openDrafts[lane] = drafted);
    }
    if (letter === "v") {
      const [start, end, rows, p] = fields,
        times = { start: advance(lane, start), end: advance(lane, end) };
      const positions = /** @type {any[][]} */ (rows).map(
        ([token, piece, status, p = null, q = null, u = null, h = null], node) => ({
          node,
          token,
          piece,
          status: STATUSES[status],
          p,
          q,
          u,
          ...(h === null ? {} : { h }),
        }),
      );
      const draft = openDrafts[lane];
      if (draft)
        Object.assign(draft, {
          tokens: positions.map(({ token }) => token),
          pieces: positions.map(({ piece }) => piece),
          parents: draft.parents || positions.map((_, i) => i - 1),
        });
      openDrafts[lane] = { ...draft, positions };
      const verified = { event: "verified", lane, cycle: cycles[lane] || 0, positions, ...times, p };
      addSpent(lane + " v", verified);
      return verified;
    }
    const [elapsed, accepted, tokens, pieces, kind, ownText] = fields,
      acceptedDrafts = /** @type {Position[]} */ ((openDrafts[lane] || {}).positions || [])
        .filter(({ status }) => status === "accepted")
        .slice(0, accepted);
    openDrafts[lane] = null;
    const allPieces = [...acceptedDrafts.map(({ piece }) => piece), ...pieces],
      readable = ownText === 0 ? allPieces.join("") : ownText;
    totals[lane] = (totals[lane] || 0) + allPieces.length;
    texts[lane] = (texts[lane] || "") + readable;
    const number = cycles[lane] || 0;
    cycles[lane] = number + 1;
    return {
      event: "committed",
      lane,
      cycle: number,
      tokens: [...acceptedDrafts.map(({ token }) => token), ...tokens],
      pieces: allPieces,
      accepted,
      kind: KINDS[kind],
      text: readable,
      total: totals[lane],
      at: advance(lane, elapsed),
    };
  });
  return events.map((entry) => JSON.stringify(entry)).join("\n") + "\n";
}

/* Returns whether two logs hold the same run: the same events in the same order, with equal texts and verdicts. */
export function isSame(/** @type {string} */ log, /** @type {string} */ other) {
  const keyOf = (/** @type {string} */ jsonl) =>
    JSON.stringify(
      readLines(jsonl).map(({ event, lane, cycle, tokens, pieces, positions, text }) => [
        event,
        lane,
        cycle,
        tokens,
        pieces,
        text,
        positions && positions.map((/** @type {Position} */ { token, status }) => [token, status]),
      ]),
    );
  return keyOf(log) === keyOf(other);
}

/* -- bytes -- */

/** @param {BlobPart} bytes @param {ReadableWritablePair<any, any>} stream */
const pipeThrough = (bytes, stream) => new Blob([bytes]).stream().pipeThrough(stream);

/* Returns `run=…`. Returns "" if the browser cannot compress, or if the run is too long or changes when packed. */
export async function createFragment(/** @type {string} */ log) {
  if (typeof CompressionStream === "undefined") return "";
  const packed = packLog(log);
  if (!isSame(log, unpackLog(packed))) return "";
  const bytes = new Uint8Array(
    await new Response(pipeThrough(JSON.stringify(packed), new CompressionStream("deflate"))).arrayBuffer(),
  );
  if (bytes.length > MAX_FRAGMENT) return "";
  const fragment =
    PREFIX +
    btoa(String.fromCharCode(...bytes))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");
  return fragment.length > MAX_FRAGMENT ? "" : fragment;
}

/* Returns the log of the run in `#run=…`. Throws if there is none, or if it is damaged or inflates to too much. */
export async function readFragment(/** @type {string} */ hash) {
  const text = hash.slice(1 + PREFIX.length);
  if (!carriesRun(hash) || text.length > MAX_FRAGMENT) throw new Error("the address holds no run");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  const reader = pipeThrough(bytes, new DecompressionStream("deflate")).getReader(),
    parts = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MAX_INFLATED_BYTES) {
      reader.cancel();
      throw new Error("the run in the address is too large");
    }
    parts.push(part.value);
  }
  return unpackLog(JSON.parse(await new Blob(parts).text()));
}
