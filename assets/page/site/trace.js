// @ts-check
/* Whether a text is a run that the player can be given. The app does the decisions again; here only the form is
 * looked at, and how large it is: a file or a link may hold anything. */

const LANES = 3,
  NODES = 512, // of a draft
  PIECE = 1000, // characters of a token
  SECONDS = 86400;

const isText = (x, most = PIECE) => typeof x === "string" && x.length <= most,
  isCount = (x, most = 1e9) => Number.isInteger(x) && x >= 0 && x <= most,
  isTime = (x) => typeof x === "number" && x >= 0 && x <= SECONDS,
  isList = (x, check, most = NODES) => Array.isArray(x) && x.length <= most && x.every(check),
  isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x),
  may = (x, check) => x === undefined || x === null || check(x);

const isChance = (x) => may(x, (p) => typeof p === "number" && p >= 0),
  isNamed = (x) => isObject(x) && may(x.piece, isText) && isChance(x.prob),
  isLaw = (x) => may(x, (law) => isObject(law) && isList(law.top, isNamed) && isChance(law.rest)),
  isPosition = (x) =>
    isObject(x) &&
    isText(x.piece) &&
    isText(x.status) &&
    [x.p, x.q, x.u, x.h].every(isChance) &&
    [x.target, x.draft, x.residual].every(isLaw);

/* What the player reads of each kind of line. */
const EVENTS = {
  started: (x) =>
    may(x.params, isObject) && may(x.k, isCount) && isText(x.drafter) && isText(x.rule),
  drafted: (x) =>
    isTime(x.start) &&
    isTime(x.end) &&
    may(x.step_ends, (all) => isList(all, isTime)) &&
    may(x.parents, (all) => isList(all, Number.isInteger)),
  verified: (x) =>
    isTime(x.start) &&
    isTime(x.end) &&
    isList(x.positions, isPosition) &&
    [x.law, x.bonus].every(isLaw),
  committed: (x) =>
    isTime(x.at) &&
    isList(x.pieces, (piece) => isText(piece)) &&
    isList(x.tokens, Number.isInteger) &&
    x.tokens.length === x.pieces.length &&
    isCount(x.accepted, x.tokens.length),
  finished: (x) => may(x.at, isTime),
  failed: () => true,
};

const isHeader = (x) =>
  isObject(x) &&
  x.event === "header" &&
  isText(x.prompt, 20000) &&
  isList(x.lanes, (name) => isText(name, 40), LANES) &&
  new Set(x.lanes).size === x.lanes.length &&
  x.lanes.length > 0 &&
  may(x.models, isObject);

/* The log of a recorded run, `most` characters long at the utmost; "" for any other text. */
function sound(text, most) {
  if (typeof text !== "string" || text.length > most) return "";
  try {
    const [header, ...events] = text
      .replace(/^\uFEFF/, "")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    if (!isHeader(header) || !events.length) return "";
    const known = events.every(
      (one) =>
        isObject(one) &&
        Object.hasOwn(EVENTS, one.event) &&
        header.lanes.includes(one.lane) &&
        EVENTS[one.event](one),
    );
    if (!known || !events.some(({ event }) => event === "committed")) return "";
    return [{ ...header, source: "recorded" }, ...events]
      .map((one) => JSON.stringify(one) + "\n")
      .join("");
  } catch {
    return ""; // no JSON, or nested too deep
  }
}

export { sound };
