/* A run in a link: its log without what can be worked out again and without the rows of whole distributions, which are
 * most of it; then compressed, as text that an address may hold.
 *
 * `pack` and `unpack` go between a log and a list. What a link brings is untrusted: it is inflated up to a limit, and
 * the log that comes out is checked like any opened file. */

const KEY = "run=";
export const MAX_FRAGMENT = 8000; // characters of a fragment: chats and browsers take that much
export const MAX_INFLATED_BYTES = 1000000; // bytes; a run of 256 tokens has a tenth of that
const STATUSES = ["accepted", "rejected", "discarded"],
  KINDS = ["bonus", "resampled"];

const micro = (seconds) => Math.round(seconds * 1e6);
const lines = (log) =>
  log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const isChain = (parents) => parents.every((parent, i) => parent === i - 1);

/* Four digits tell a probability; all of them stay where the decision would fall the other way, or follows from those
 * of a whole block. */
function judged({ token, piece, status, p, q, u, h }) {
  const exact = [p, q, u, h].map((x) => x ?? null),
    short = exact.map(brief),
    stays = (/** @type {any[]} */ [p, q, u]) => u * q < p;
  const numbers = h == null && (u == null || stays(exact) === stays(short)) ? short : exact;
  while (numbers.length && numbers[numbers.length - 1] === null) numbers.pop();
  return [token, piece, STATUSES.indexOf(status), ...numbers];
}
const brief = (x) => (x == null ? null : Number(x.toPrecision(4)));

export function packLog(log) {
  const clock = {};
  const since = (lane, seconds) => {
    const now = micro(seconds),
      gone = now - (clock[lane] || 0);
    clock[lane] = now;
    return gone;
  };
  return lines(log).map((one) => {
    const { event, lane } = one;
    if (event === "drafted")
      return [
        "d",
        lane,
        since(lane, one.start),
        since(lane, one.end),
        isChain(one.parents) ? 0 : one.parents,
        one.drafter ?? 0,
        one.own ?? 0,
      ];
    if (event === "verified")
      return [
        "v",
        lane,
        since(lane, one.start),
        since(lane, one.end),
        one.positions.map(judged),
        brief(one.p),
      ];
    if (event !== "committed") return one.event === "finished" ? { ...one, text: "" } : one;
    const own = one.tokens.slice(one.accepted);
    return [
      "c",
      lane,
      since(lane, one.at),
      one.accepted,
      own,
      one.pieces.slice(one.accepted),
      KINDS.indexOf(one.kind),
      one.text === one.pieces.join("") ? 0 : one.text,
    ];
  });
}

/* The log again. Of a list that is none of ours it makes a log that no check lets through, or throws. */
export function unpackLog(list) {
  const clock = {},
    open = {},
    total = {},
    text = {},
    cycle = {},
    spent = {};
  const count = (name, { cycle, start, end }) => {
    if (cycle) spent[name] = (spent[name] || 0) + end - start;
  };
  const after = (lane, gone) => (clock[lane] = (clock[lane] || 0) + gone) / 1e6;
  /* Its sums are those of the cycles, whose times were rounded. */
  const ended = (one) => {
    const { lane } = one,
      at = Math.max(one.at, (clock[lane] || 0) / 1e6),
      verify = spent[lane + " v"] || 0,
      draft = Math.max(one.draft, spent[lane + " d"] || 0);
    return {
      ...one,
      text: text[lane] || "",
      at,
      verify,
      draft,
      other: Math.max(0, at - one.prefill - draft - verify),
    };
  };
  const over = new Set();
  const events = list.map((one) => {
    if (!Array.isArray(one)) {
      if (one.event !== "finished") return one;
      if (over.has(one.lane)) throw new Error("a lane ends once"); // each end holds the whole text of its lane
      over.add(one.lane);
      return ended(one);
    }
    const [what, lane, ...rest] = one;
    if (what === "d") {
      const [start, end, parents, drafter, own] = rest;
      const drafted = {
        event: "drafted",
        lane,
        cycle: cycle[lane] || 0,
        tokens: [],
        pieces: [],
        parents,
        start: after(lane, start),
        end: after(lane, end),
        step_ends: [],
        ...(drafter ? { drafter } : {}),
        ...(own ? { own } : {}),
      };
      count(lane + " d", drafted);
      return (open[lane] = drafted);
    }
    if (what === "v") {
      const [start, end, rows, p] = rest,
        times = { start: after(lane, start), end: after(lane, end) };
      const positions = rows.map(
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
      const draft = open[lane];
      if (draft)
        Object.assign(draft, {
          tokens: positions.map(({ token }) => token),
          pieces: positions.map(({ piece }) => piece),
          parents: draft.parents || positions.map((_, i) => i - 1),
        });
      open[lane] = { ...draft, positions };
      const verified = { event: "verified", lane, cycle: cycle[lane] || 0, positions, ...times, p };
      count(lane + " v", verified);
      return verified;
    }
    const [gone, accepted, tokens, pieces, kind, told] = rest,
      kept = ((open[lane] || {}).positions || [])
        .filter(({ status }) => status === "accepted")
        .slice(0, accepted);
    open[lane] = null;
    const all = [...kept.map(({ piece }) => piece), ...pieces],
      readable = told === 0 ? all.join("") : told;
    total[lane] = (total[lane] || 0) + all.length;
    text[lane] = (text[lane] || "") + readable;
    const number = cycle[lane] || 0;
    cycle[lane] = number + 1;
    return {
      event: "committed",
      lane,
      cycle: number,
      tokens: [...kept.map(({ token }) => token), ...tokens],
      pieces: all,
      accepted,
      kind: KINDS[kind],
      text: readable,
      total: total[lane],
      at: after(lane, gone),
    };
  });
  return events.map((one) => JSON.stringify(one)).join("\n") + "\n";
}

/* Whether what comes back is the run: its texts, its verdicts, its order. */
export function isSame(log, other) {
  const told = (text) =>
    JSON.stringify(
      lines(text).map(({ event, lane, cycle, tokens, pieces, positions, text }) => [
        event,
        lane,
        cycle,
        tokens,
        pieces,
        text,
        positions && positions.map(({ token, status }) => [token, status]),
      ]),
    );
  return told(log) === told(other);
}

/* -- bytes -- */

const through = (bytes, stream) => new Blob([bytes]).stream().pipeThrough(stream);

/* `run=…`, or "" where the run is too long for a link, or the browser cannot compress. */
export async function createFragment(log) {
  if (typeof CompressionStream === "undefined") return "";
  const list = packLog(log);
  if (!isSame(log, unpackLog(list))) return "";
  const bytes = new Uint8Array(
    await new Response(
      through(JSON.stringify(list), new CompressionStream("deflate")),
    ).arrayBuffer(),
  );
  if (bytes.length > MAX_FRAGMENT) return "";
  const fragment =
    KEY +
    btoa(String.fromCharCode(...bytes))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");
  return fragment.length > MAX_FRAGMENT ? "" : fragment;
}

export const carriesRun = (hash) => hash.startsWith("#" + KEY);

/* The log in `#run=…`. Throws where there is none, or where it is larger than a run. */
export async function readFragment(hash) {
  const text = hash.slice(1 + KEY.length);
  if (!carriesRun(hash) || text.length > MAX_FRAGMENT) throw new Error("no run");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) =>
    one.charCodeAt(0),
  );
  const reader = through(bytes, new DecompressionStream("deflate")).getReader(),
    parts = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MAX_INFLATED_BYTES) {
      reader.cancel();
      throw new Error("too large");
    }
    parts.push(part.value);
  }
  return unpackLog(JSON.parse(await new Blob(parts).text()));
}
