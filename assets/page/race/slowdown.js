/* Chooses how fast a replay plays by itself: the first cycles play in slow motion; the others in real time where the
 * model is slow enough to read along, and else as fast as can be followed. */

import { EPS, speculativeOf, replayEnd } from "#page/race/run.js";
import { countCyclesBy, countTokens } from "#page/race/measure.js";

/* Each of the first cycles takes `cycle` ms; then its verdicts move for `settle` ms, and time stops for `read` ms. */
export const FIRST_CYCLES = [
  { cycle: 3200, settle: 1500, read: 2400 },
  { cycle: 2000, settle: 1000, read: 1800 },
  { cycle: 1400, settle: 800, read: 1200 },
];
const NEXT_MS = 1000, // ms that each of the next three cycles takes
  REST_MS = 12000; // ms that all later cycles may take together, roughly
const READABLE = 150; // tokens/s; nobody can read a faster text along
const SLOWDOWNS = [1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200];

/* Returns the tokens per second of the speculative lane so far. */
function tokensPerSecond(run) {
  const lane = speculativeOf(run);
  return lane.endMs > EPS ? (countTokens(lane, lane.cycles.length) / lane.endMs) * 1000 : Infinity;
}

/* Returns how many times slower than it ran the run is shown at the time `ms`. */
export function chooseSlowdown(run, ms) {
  const cycles = speculativeOf(run).cycles,
    done = countCyclesBy(cycles, ms),
    firstCycles = cycles.slice(0, FIRST_CYCLES.length);
  if (!firstCycles.length) return 100;
  const fromMs = firstCycles[firstCycles.length - 1].endMs,
    meanMs = fromMs / firstCycles.length;
  const later = tokensPerSecond(run) <= READABLE ? 1 : REST_MS / Math.max(replayEnd(run) - fromMs, EPS);
  const slowdown =
    done < firstCycles.length
      ? FIRST_CYCLES[done].cycle / meanMs
      : done < firstCycles.length + 3
        ? NEXT_MS / meanMs
        : later;
  return SLOWDOWNS.reduce((best, one) =>
    Math.abs(Math.log(one / slowdown)) < Math.abs(Math.log(best / slowdown)) ? one : best,
  );
}

/* Returns the slowdown of a live run. */
export const chooseLiveSlowdown = (run) => (tokensPerSecond(run) <= READABLE ? 1 : 100);
