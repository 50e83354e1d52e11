/* The prompt of this visit whose guesses were kept least. */

import { figuresAt, isOver, wasStopped } from "#page/race/run.js";
import { words, fixed, visible } from "#page/race/text.js";

const ENOUGH = 16, // judged guesses of a run that counts
  SHOWN = 60; // characters of a prompt

/* The harder one of what was known and a live run that has ended; null before the first. */
export function harder(known, run) {
  const { header } = run,
    { alpha, a } = figuresAt(run, Infinity);
  if (
    header.source !== "live" ||
    !isOver(run) ||
    wasStopped(run) ||
    alpha == null ||
    a.judged < ENOUGH
  )
    return known;
  return known && known.alpha <= alpha ? known : { prompt: header.prompt, alpha };
}

export const told = (W, { prompt, alpha }) =>
  words(W.foot.hardest, {
    prompt: visible(prompt.length > SHOWN ? prompt.slice(0, SHOWN - 1) + "…" : prompt),
    alpha: fixed(100 * alpha, 0) + " %",
  });
