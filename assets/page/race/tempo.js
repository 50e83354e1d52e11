// @ts-check
/* How fast a replay goes by itself: the first cycles are told, the others pass. */

const { EPS, speculative, doneBy, horizon } = require("./run.js");

const FIRST = 3; // cycles that are told slowly, with their verdicts moving
const CYCLE = 3200,
  REST = 12000; // ms: one of the first cycles, and about how long all later ones may take
const PACES = [10, 20, 50, 100, 200, 400, 800, 1600, 3200];

/* How many times slower than it ran: a first cycle takes seconds, all later ones together not much longer. */
function pace(run, t) {
  const cycles = speculative(run).cycles,
    k = doneBy(cycles, t),
    end = horizon(run),
    first = cycles.slice(0, FIRST);
  if (!first.length) return 100;
  const mean = first[first.length - 1].at / first.length,
    from = first[first.length - 1].at;
  const wanted =
    k < first.length
      ? CYCLE / mean
      : k < first.length + 3
        ? Math.min(CYCLE / 3 / mean, 400)
        : REST / Math.max(end - from, EPS);
  return PACES.reduce((best, one) =>
    Math.abs(Math.log(one / wanted)) < Math.abs(Math.log(best / wanted)) ? one : best,
  );
}

module.exports = { FIRST, pace };
