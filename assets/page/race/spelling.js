/* Finds the words that tokens are parts of, for the page's sentences. Only the token itself was judged, so a word is
 * told in parts: what stood before the token, the token, and whether the word goes on after it. */

import { BYTES } from "#page/race/text.js";

// Latin, Cyrillic and Greek put spaces between words; marks and digits continue a word
const LETTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{M}\p{N}]/u;
const MAX_LENGTH = 24; // characters

const startsWord = (/** @type {string} */ piece) => LETTER.test([...piece][0] || "");
const endsWord = (/** @type {string} */ piece) => LETTER.test([...piece].pop() || "");

/** Returns a token's word in parts; `head` is "" if the word is too long.
 * @param {{ piece: string, character?: string }} token @param {string[]} before @param {string} [next]
 * @returns {Word} */
export function wordOf(token, before, next = "") {
  const { piece } = token;
  let head = "";
  for (let i = before.length - 1; startsWord(head || piece) && i >= 0 && endsWord(before[i]); i--)
    head = before[i] + head;
  if ((head + piece).trim().length > MAX_LENGTH) head = "";
  return { ...token, head, goesOn: endsWord(piece) && startsWord(next) };
}

/* Returns the pieces of the last cycles before `cycle`, with its own first `count` drafts. */
function piecesBefore(/** @type {Lane} */ lane, /** @type {Cycle} */ cycle, /** @type {number} */ count) {
  const index = lane.cycles.indexOf(cycle);
  return [lane.prefill, ...lane.cycles.slice(Math.max(0, index - 3), index)]
    .filter(Boolean)
    .flatMap(({ pieces }) => pieces)
    .concat(cycle.drafts.slice(0, count).map((draft) => draft.piece));
}

export const draftWord = (/** @type {Lane} */ lane, /** @type {Cycle} */ cycle, /** @type {number} */ i) =>
  wordOf(cycle.drafts[i], piecesBefore(lane, cycle, i), cycle.drafts[i + 1]?.piece);

export function targetWord(/** @type {Lane} */ lane, /** @type {Cycle} */ cycle, /** @type {number} */ count) {
  const { piece } = /** @type {TargetToken} */ (cycle.targetToken),
    later = lane.cycles.slice(lane.cycles.indexOf(cycle) + 1, lane.cycles.indexOf(cycle) + 5),
    written = [cycle.texts[cycle.texts.length - 1], ...later.flatMap((next) => next.texts)];
  const character = BYTES.test(piece) ? written.find(Boolean) : "";
  return wordOf({ piece, character }, piecesBefore(lane, cycle, count), later[0]?.pieces[0]);
}
