/* Chooses the automatic speed of a replay. The first cycles play in slow motion, the next three a little faster. Later
 * cycles play in real time if one can read along; otherwise they are slowed down to about REST_MS in total. */

import { EPS, speculativeOf, replayEnd } from "#page/race/run.js";
import { countCyclesBy, countTokens } from "#page/race/measure.js";

/* A cycle plays for about `cycleMs`. Then time stops: verdicts move for `settleMs`, and `readMs` is left to read. */
export const FIRST_CYCLES = [
  { cycleMs: 3200, settleMs: 1500, readMs: 2400 },
  { cycleMs: 2000, settleMs: 1000, readMs: 1800 },
  { cycleMs: 1400, settleMs: 800, readMs: 1200 },
];
const NEXT_MS = 1000, // ms that each of the next three cycles takes
  REST_MS = 12000; // ms that all later cycles take together, roughly
const READABLE = 150; // tokens/s; nobody can read along at a higher speed
const SLOWDOWNS = [1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200];

function tokensPerSecond(/** @type {Run} */ run) {
  const lane = speculativeOf(run);
  return lane.endMs > EPS ? (countTokens(lane, lane.cycles.length) / lane.endMs) * 1000 : Infinity;
}

/* Returns the slowdown at the time `ms` of the run: at 10, the replay is ten times slower than the run was. */
export function chooseSlowdown(/** @type {Run} */ run, /** @type {number} */ ms) {
  const cycles = speculativeOf(run).cycles,
    done = countCyclesBy(cycles, ms),
    firstCycles = cycles.slice(0, FIRST_CYCLES.length);
  if (!firstCycles.length) return 100;
  const fromMs = firstCycles[firstCycles.length - 1].endMs,
    meanMs = fromMs / firstCycles.length;
  const later = tokensPerSecond(run) <= READABLE ? 1 : REST_MS / Math.max(replayEnd(run) - fromMs, EPS);
  const slowdown =
    done < firstCycles.length
      ? FIRST_CYCLES[done].cycleMs / meanMs
      : done < firstCycles.length + 3
        ? NEXT_MS / meanMs
        : later;
  return SLOWDOWNS.reduce((best, next) =>
    Math.abs(Math.log(next / slowdown)) < Math.abs(Math.log(best / slowdown)) ? next : best,
  );
}

export function chooseLiveSlowdown(/** @type {Run} */ run) {
  const rate = tokensPerSecond(run);
  return rate > READABLE && rate < Infinity ? 100 : 1;
}
