/* Guesses of a run that a visitor judges in place of the target, and how that went: no document here. */

import { REJECTION } from "#page/step/judge.js";

export const GAME = 10,
  OPEN = 7; // guesses of a game, and those of them that a coin decides

/* The chance with which the rule keeps a guess. */
export const chanceOf = ({ p, q }) => Math.min(1, p / q);

/* All guesses of a lane that rejection sampling judged with a coin, one a place, each with the text before it. */
export function guessesOf({ started, first, cycles }) {
  const { rule = REJECTION, params } = started || {};
  if (rule !== REJECTION || !params || params.temperature === 0) return [];
  const found = [];
  let text = first ? first.pieces.join("") : "";
  for (const { drafts, pieces, tree } of cycles) {
    let before = text;
    for (const { piece, p, q, u, state } of tree ? [] : drafts) {
      if (u != null && p != null && q > 0)
        found.push({ before, piece, p, q, u, kept: state === "acc" });
      before += piece;
    }
    text += pieces.join("");
  }
  return found;
}

/* Ten of them, in the order of the text; each game takes the next ones. */
export function rounds(all, game) {
  const of = (wanted) => all.filter((one) => chanceOf(one) < 1 === wanted),
    take = (list, n) =>
      Array.from(
        { length: Math.min(n, list.length) },
        (_, i) => list[(game * n + i) % list.length],
      );
  const open = take(of(true), OPEN),
    chosen = new Set([...open, ...take(of(false), GAME - open.length)]);
  return all.filter((one) => chosen.has(one));
}

/* How often `said` (whether each was kept) agrees with the coins; on average, how often the likelier verdict would, and
 * another toss; and which verdicts went too far. */
export function scored(judged, said) {
  const sum = (value) => judged.reduce((total, one, i) => total + Number(value(one, i)), 0),
    r = judged.map(chanceOf);
  return {
    agreed: sum((one, i) => one.kept === said[i]),
    likelier: sum((_, i) => Math.max(r[i], 1 - r[i])),
    coin: sum((_, i) => r[i] ** 2 + (1 - r[i]) ** 2),
    eager: sum((_, i) => said[i] && r[i] < 0.5),
    wasted: sum((_, i) => !said[i] && r[i] === 1),
  };
}
