/* Whole words for a sentence: a token may be half of one. */

// of scripts with spaces between words
const LETTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{M}\p{N}]/u;
const LONGEST = 24; // characters

const starts = (piece) => LETTER.test([...piece][0] || "");
const ends = (piece) => LETTER.test([...piece].pop() || "");

/* What of a word stands already before a piece that goes on with it. */
function begun(before, piece) {
  let head = "";
  if (!starts(piece)) return head;
  for (let i = before.length - 1; i >= 0 && ends(before[i]); i--) {
    head = before[i] + head;
    if (!starts(before[i])) break;
  }
  return head;
}

/* How a word goes on. */
function rest(piece, after) {
  let tail = "";
  if (!ends(piece)) return tail;
  for (const next of after) {
    if (!starts(next)) break;
    tail += next;
    if (!ends(next)) break;
  }
  return tail;
}

/* The word that a piece is part of; the piece alone where that would be long. */
export function completeWord(piece, before, after) {
  const word = begun(before, piece) + piece + rest(piece, after);
  return word.trim().length <= LONGEST ? word : piece;
}

/* Both words of a rejection: what the draft said, and what stands there instead. `cycles` are all of the lane. */
export function rejectedWords(lane, cycle, i) {
  const n = lane.cycles.indexOf(cycle),
    kept = cycle.drafts.slice(0, i).map((draft) => draft.piece);
  const before = [lane.first, ...lane.cycles.slice(Math.max(0, n - 3), n)]
      .filter(Boolean)
      .flatMap((one) => one.pieces)
      .concat(kept),
    drafted = cycle.drafts.slice(i + 1).map((draft) => draft.piece),
    written = lane.cycles.slice(n + 1, n + 4).flatMap((one) => one.pieces);
  return {
    draft: completeWord(cycle.drafts[i].piece, before, drafted),
    own: completeWord(cycle.own.piece, before, written),
  };
}
