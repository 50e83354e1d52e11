/* Extends tokens to whole words for the page's sentences, because a token can be a part of a word. */

// Latin, Cyrillic and Greek put spaces between words; marks and digits continue a word
const LETTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{M}\p{N}]/u;
const MAX_LENGTH = 24; // characters

const startsWord = (/** @type {string} */ piece) => LETTER.test([...piece][0] || "");
const endsWord = (/** @type {string} */ piece) => LETTER.test([...piece].pop() || "");

/* Returns the beginning of the word that `piece` continues. */
function wordBefore(/** @type {string[]} */ before, /** @type {string} */ piece) {
  let head = "";
  if (!startsWord(piece)) return head;
  for (let i = before.length - 1; i >= 0 && endsWord(before[i]); i--) {
    head = before[i] + head;
    if (!startsWord(before[i])) break;
  }
  return head;
}

/* Returns the rest of the word that `piece` begins. */
function wordAfter(/** @type {string} */ piece, /** @type {string[]} */ after) {
  let tail = "";
  if (!endsWord(piece)) return tail;
  for (const next of after) {
    if (!startsWord(next)) break;
    tail += next;
    if (!endsWord(next)) break;
  }
  return tail;
}

/** Returns the word that a piece is part of, or only the piece if the word is too long. @param {string} piece
 * @param {string[]} before @param {string[]} after */
export function completeWord(piece, before, after) {
  const word = wordBefore(before, piece) + piece + wordAfter(piece, after);
  return word.trim().length <= MAX_LENGTH ? word : piece;
}

/* Returns both words of a rejection: the word that contains the draft, and the target's word in its place. */
export function rejectedWords(/** @type {Lane} */ lane, /** @type {Cycle} */ cycle, /** @type {number} */ i) {
  const index = lane.cycles.indexOf(cycle),
    accepted = cycle.drafts.slice(0, i).map((draft) => draft.piece);
  const before = [lane.prefill, ...lane.cycles.slice(Math.max(0, index - 3), index)]
      .filter(Boolean)
      .flatMap(({ pieces }) => pieces)
      .concat(accepted),
    drafted = cycle.drafts.slice(i + 1).map((draft) => draft.piece),
    written = lane.cycles.slice(index + 1, index + 4).flatMap(({ pieces }) => pieces);
  return {
    draft: completeWord(cycle.drafts[i].piece, before, drafted),
    targetWord: completeWord(cycle.targetToken ? cycle.targetToken.piece : "", before, written),
  };
}
