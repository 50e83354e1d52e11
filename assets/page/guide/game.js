/* The game: speculative sampling with one die. First its arithmetic, then the rules as they are told. */

import { h } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { lead, fold } from "#page/guide/prose.js";

/* Of six faces, those that stand for each word. Chosen so that every chance in the game is a number of sixths. */
export const GAME = {
  words: ["A", "B", "C"],
  draft: [4, 1, 1],
  target: [2, 2, 2],
  k: 3,
  cycles: 10,
};
const FACES = 6;
const percent = (x) => Math.round(100 * x) + " %";

const overlapOf = ({ draft, target }) =>
  draft.reduce((sum, q, i) => sum + Math.min(q, target[i]), 0) / FACES;

/* How often each word comes out, over all cards of a round: those that a verdict decided, and the bonus cards. The
 * mistake: a replacement drawn from the target, not from the residual. */
export function oddsOf(game, mistaken = false) {
  const { draft, target, k } = game,
    beta = overlapOf(game),
    bonus = beta ** k,
    judged = (1 - bonus) / (1 - beta), // cards a cycle
    residual = target.map((p, i) => Math.max(0, p - draft[i]) / FACES / (1 - beta));
  return target.map((count, i) => {
    const p = count / FACES,
      decided = Math.min(count, draft[i]) / FACES + (1 - beta) * (mistaken ? p : residual[i]);
    return (judged * decided + bonus * p) / (judged + bonus);
  });
}

/* Leviathan et al., equation 1, over all the cycles of a round. */
export const cardsOf = (game) =>
  (game.cycles * (1 - overlapOf(game) ** (game.k + 1))) / (1 - overlapOf(game));

/* Up to which face a drafted first word stays: min(1, p/q) of six. */
export const keepOf = ({ draft, target }) => FACES * Math.min(1, target[0] / draft[0]);

/* Each word with the faces that stand for it. */
export function facesOf(counts, game) {
  let next = 1;
  return counts.map((n, i) => ({ word: game.words[i], low: next, high: (next += n) - 1 }));
}

export function game(W) {
  const G = W.game,
    [a, b] = oddsOf(GAME, true),
    faces = (counts) =>
      facesOf(counts, GAME)
        .map((one) => words(one.low === one.high ? G.exact : G.range, one))
        .join(", ");
  const told = {
    k: GAME.k,
    draft: faces(GAME.draft),
    bonus: faces(GAME.target),
    keep: keepOf(GAME),
    tokens: Math.round(cardsOf(GAME)),
    share: percent(GAME.draft[0] / FACES),
    a: percent(a),
    b: percent(b),
  };
  return [
    lead(G.lead),
    h(
      "ul",
      {},
      G.roles.map(([who, what]) => h("li", {}, h("b", {}, who), " ", words(what, told))),
    ),
    h("p", {}, words(G.first, told)),
    h("p", {}, words(G.second, told)),
    fold(W.quiz.reveal, h("p", {}, G.why)),
  ];
}
