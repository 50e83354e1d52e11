/* How fast a replay goes by itself: the first cycles are told in slow motion; the others pass in real time where the
 * model is slow enough to read along, and else as fast as can be followed. */

import { EPS, speculativeOf, replayEnd } from "#page/race/run.js";
import { countCyclesBy, countTokens } from "#page/race/measure.js";

/* ms of the first cycles: how long each takes, how long its verdicts move, and how long its sentence is read. */
export const FIRST_CYCLES = [
  { cycle: 3200, settle: 1500, read: 2400 },
  { cycle: 2000, settle: 1000, read: 1800 },
  { cycle: 1400, settle: 800, read: 1200 },
];
const NEXT = 1000, // ms: each of the three cycles after them
  REST = 12000; // about how long all later ones may take together
const READABLE = 150; // tokens/s; a faster text runs away from its reader
const PACES = [1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200];

/* Tokens per second of the speculative lane so far. */
function rate(run) {
  const lane = speculativeOf(run);
  return lane.end > EPS ? (countTokens(lane, lane.cycles.length) / lane.end) * 1000 : Infinity;
}

/* How many times slower than it ran. */
export function chooseSlowdown(run, t) {
  const cycles = speculativeOf(run).cycles,
    k = countCyclesBy(cycles, t),
    first = cycles.slice(0, FIRST_CYCLES.length);
  if (!first.length) return 100;
  const from = first[first.length - 1].at,
    mean = from / first.length;
  const calm = rate(run) <= READABLE ? 1 : REST / Math.max(replayEnd(run) - from, EPS);
  const wanted =
    k < first.length ? FIRST_CYCLES[k].cycle / mean : k < first.length + 3 ? NEXT / mean : calm;
  return PACES.reduce((best, one) =>
    Math.abs(Math.log(one / wanted)) < Math.abs(Math.log(best / wanted)) ? one : best,
  );
}

/* A run that is still being made. */
export const chooseLiveSlowdown = (run) => (rate(run) <= READABLE ? 1 : 100);
