/* Measures what drafting costs in this browser, and chooses the draft depth K as `specdec/lanes/probe.py` does. */

import { RandomSampler } from "./random.js";
import { probabilities } from "./sampling.js";

export const ROWS = [1, 2, 3, 5]; // passes over so many tokens are measured

const WARM_MS = 900,
  TEXT_LENGTH = 64, // tokens before the measured passes, because a pass costs more after a longer text
  TICKS = 10, // steps of the clock that a measurement takes at least
  DEEPEST = 8, // the largest K that is chosen
  NEARLY_BEST = 0.95; // a shallower draft is preferred if it reaches this share of the best speed-up

/** @typedef {{ draft: number, passes: number[] }} Costs The unit is a plain step. A drafted token costs `draft`; the
 * target's pass over a draft of depth d costs `passes[d]` */
/** @typedef {{ draft: number, passes: Record<number, number> }} Times in ms; `passes` by the number of rows */

/* Returns the step of the browser's clock in ms: 0.1 in some browsers, 1 in others. A pause can make it look longer. */
function clockTick() {
  const start = performance.now();
  for (;;) {
    const elapsed = performance.now() - start;
    if (elapsed) return Math.min(1, elapsed);
  }
}

/** Runs passes over each number of tokens in `rows`, and drafting steps, for `WARM_MS`, so that the browser optimizes
 * the code before the run. Returns the fastest times, with those that are `known`: the first passes are slow, as are
 * those on a busy machine.
 * @param {any} target @param {(capacity: number) => any} createDrafter @param {number[]} rows @param {any} params
 * @param {Times} [known] @returns {Times} */
export function warmUp(target, createDrafter, rows, params, known) {
  const capacity = TEXT_LENGTH + Math.max(...rows) + 1,
    cache = target.newCache(capacity),
    drafter = createDrafter(capacity),
    sampler = new RandomSampler(params.seed),
    text = Array(TEXT_LENGTH + 1).fill(0),
    times = { draft: known?.draft ?? Infinity, passes: { ...known?.passes } },
    shortestMs = TICKS * clockTick(),
    end = performance.now() + WARM_MS;
  const time = (/** @type {() => void} */ work) => {
    const start = performance.now();
    for (let repeats = 1; ; repeats++) {
      work();
      const elapsed = performance.now() - start;
      if (elapsed >= shortestMs) return elapsed / repeats;
    }
  };
  drafter.propose(text, 0, params, sampler); // reads the text, so that each later call is one step
  for (let i = 0; i <= rows.length || performance.now() < end; i++) {
    const count = rows[i % rows.length],
      block = Array(count).fill(0);
    const passMs = time(() => {
      cache.keep(TEXT_LENGTH); // what these positions hold does not matter
      for (const logits of target.forward(block, cache, count)) probabilities(logits, params);
    });
    times.passes[count] = Math.min(times.passes[count] ?? Infinity, passMs);
    times.draft = Math.min(
      times.draft,
      time(() => drafter.propose(text, 1, params, sampler)),
    );
  }
  cache.release();
  drafter.release?.();
  return times;
}

/** Returns the costs that follow from times of `ROWS`. Depths between them are interpolated, and no pass costs less
 * than one for a shallower draft. @param {Times} times @returns {Costs} */
export function createCosts({ draft, passes: ms }) {
  const passes = [1];
  for (let rows = 2; rows <= Math.max(...ROWS); rows++) {
    const above = ROWS.findIndex((measured) => measured >= rows),
      [low, high] = [ROWS[above - 1], ROWS[above]],
      passMs = ms[low] + ((rows - low) / (high - low)) * (ms[high] - ms[low]);
    passes.push(Math.max(passMs / ms[1], passes[passes.length - 1]));
  }
  return { draft: draft / ms[1], passes };
}

/* Returns the cost of a cycle with a draft of this depth, extrapolated linearly beyond `passes`. */
function costOfCycle(/** @type {Costs} */ { draft, passes }, /** @type {number} */ depth) {
  const deepest = passes.length - 1,
    slope = (passes[deepest] - passes[0]) / deepest,
    pass = depth <= deepest ? passes[depth] : passes[deepest] + slope * (depth - deepest);
  return depth * draft + pass;
}

/* Returns tokens per cycle from acceptance by position. The last rate also counts for all later positions. */
function expectedTokens(/** @type {number[]} */ rates, /** @type {number} */ depth) {
  let [tokens, survival] = [1, 1];
  for (let i = 0; i < depth; i++) tokens += survival *= rates[Math.min(i, rates.length - 1)];
  return tokens;
}

/** Returns the shallowest depth that nearly reaches the best expected speed-up or, if no depth is expected to save
 * time, depth 1, with the tokens and the cost of its cycle. @param {number[]} rates @param {Costs} costs */
export function chooseDepth(rates, costs) {
  const choices = Array.from({ length: DEEPEST }, (_, i) => {
      const [tokens, cost] = [expectedTokens(rates, i + 1), costOfCycle(costs, i + 1)];
      return { k: i + 1, tokens, cost, speedup: tokens / cost };
    }),
    threshold = NEARLY_BEST * Math.max(...choices.map(({ speedup }) => speedup)),
    shallow = choices.find(({ speedup }) => speedup >= threshold) || choices[0];
  return shallow.speedup > 1 ? shallow : choices[0];
}
