// @ts-check
/* The prompt of this visit whose guesses were kept least. */

const { figuresAt, isOver, wasStopped } = require("./run.js");
const { words, fixed, visible } = require("./text.js");

const ENOUGH = 16, // judged guesses of a run that counts
  SHOWN = 60; // characters of a prompt

/* The harder one of what was known and a live run that has ended; null before the first. */
function harder(known, run) {
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

const told = (W, { prompt, alpha }) =>
  words(W.foot.hardest, {
    prompt: visible(prompt.length > SHOWN ? prompt.slice(0, SHOWN - 1) + "…" : prompt),
    alpha: fixed(alpha),
  });

module.exports = { harder, told };
