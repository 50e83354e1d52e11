/* Computes the figures of a run at a time of its replay; uses no DOM. */

import { EPS, UNNAMED, NO_TOTALS, speculativeOf, plainOf, peerOf, serverOf, reportsDrafts } from "#page/race/run.js";

export function countCyclesBy(/** @type {Cycle[]} */ cycles, /** @type {number} */ ms) {
  let low = 0,
    high = cycles.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (cycles[mid].endMs <= ms + EPS) low = mid + 1;
    else high = mid;
  }
  return low;
}

export const countTokens = (/** @type {Lane} */ lane, /** @type {number} */ cycleCount) =>
  (lane.prefill ? lane.prefill.pieces.length : 0) + (cycleCount ? lane.cycles[cycleCount - 1].totals.tokens : 0);

/* Returns the median and the longest gap in ms between arrivals of tokens up to the time `ms`; null without gaps. */
export function gapsOf(/** @type {Lane} */ lane, /** @type {number} */ ms) {
  const ends = lane.cycles.slice(0, countCyclesBy(lane.cycles, ms)).map((cycle) => cycle.endMs),
    gaps = ends.map((at, i) => at - (i ? ends[i - 1] : 0)).filter((gap) => gap > EPS);
  return gaps.length ? { median: medianOf(gaps), longest: Math.max(...gaps) } : null;
}

/* Computes the figures of a run at the time `ms`. Costs are in plain passes: `c` for drafting a token, `v` for a pass
 * that verifies drafts. `draftAcceptance` is accepted / drafted. A figure that cannot be computed is null. */
export function figuresAt(/** @type {Run} */ run, /** @type {number} */ ms) {
  const laneAt = (/** @type {Lane | null} */ lane) => {
    if (!lane) return { passes: 0, last: null, ...NO_TOTALS, written: 0, endMs: 0, rate: 0 };
    const passes = countCyclesBy(lane.cycles, ms),
      last = passes ? lane.cycles[passes - 1] : null;
    const totals = last ? last.totals : NO_TOTALS;
    return {
      passes,
      last,
      ...totals,
      written: countTokens(lane, passes),
      endMs: last ? last.endMs : 0,
      rate: last && last.endMs > 0 ? (totals.tokens / last.endMs) * 1000 : 0,
    };
  };
  const speculativeLane = speculativeOf(run),
    speculative = laneAt(speculativeLane),
    plain = laneAt(plainOf(run)),
    peer = peerOf(run) && laneAt(peerOf(run));
  const reported = reportsDrafts(speculativeLane),
    measured = !serverOf(speculativeLane),
    serverTotals = speculativeLane.finished && speculativeLane.finished.drafted ? speculativeLane.finished : null;
  const plainPassMs = plain.passes ? plain.endMs / plain.passes : 0;
  /** @param {number} totalMs @param {number} n */
  const inPlainPasses = (totalMs, n) => (plainPassMs && n ? totalMs / n / plainPassMs : null);
  return {
    speculative,
    plain,
    peer,
    speedup: speculative.rate && plain.rate ? speculative.rate / plain.rate : null,
    peerSpeedup: peer && peer.rate && plain.rate ? peer.rate / plain.rate : null,
    reported,
    alpha: reported && speculative.judged ? speculative.accepted / speculative.judged : null,
    tau: speculative.passes ? speculative.tokens / speculative.passes : null,
    draftAcceptance: reported
      ? speculative.drafted
        ? speculative.accepted / speculative.drafted
        : null
      : serverTotals
        ? serverTotals.accepted / serverTotals.drafted
        : null,
    plainPassMs,
    inPlainPasses,
    cost: inPlainPasses(speculative.endMs, speculative.passes),
    c: measured ? inPlainPasses(speculative.draftMs, speculative.drafted) : null,
    v: measured ? inPlainPasses(speculative.checkMs, speculative.checks) : null,
    draftCost: measured ? inPlainPasses(speculative.draftMs, speculative.passes) : null,
    passCost: measured ? inPlainPasses(speculative.passMs, speculative.passes) : null,
  };
}

/* Says whether a run was faster than plain decoding, slower or neither; "" without a comparison. */
export const outcomeOf = (/** @type {number | null} */ speedup) =>
  !speedup ? "" : speedup > 1.05 ? "faster" : speedup < 0.95 ? "slower" : "even";

const MAX_RATIO = 1.05, // largest plausible speed-up, as a multiple of τ
  MAX_SCATTER = 1.5, // largest plausible mean time of a pass, as a multiple of the median
  MIN_PASSES = 8; // the scatter of fewer passes is ignored
/* Returns whether the machine was too busy for a reliable speed-up. `Trace.summary` in Python has the same rule. */
export function wasMachineBusy(/** @type {Run} */ run) {
  const speculative = speculativeOf(run),
    plain = plainOf(run),
    figures = figuresAt(run, Infinity);
  if (!plain || !figures.speedup || serverOf(speculative) || serverOf(plain)) return false;
  const passTimes = (/** @type {Lane} */ lane, /** @type {boolean} */ hasDrafts) =>
    lane.cycles
      .filter((cycle) => cycle.check && Boolean(cycle.drafts.length) === hasDrafts)
      .map(({ check }) => (check ? check.end - check.start : 0));
  const isScattered = (/** @type {number[]} */ times) =>
    times.length >= MIN_PASSES && times.reduce((sum, ms) => sum + ms, 0) / times.length > MAX_SCATTER * medianOf(times);
  return (
    (run.header.machine || {}).busy === true ||
    isScattered(passTimes(speculative, true)) ||
    isScattered(passTimes(plain, false)) ||
    figures.speedup > MAX_RATIO * (figures.tau ?? 0)
  );
}

function medianOf(/** @type {number[]} */ values) {
  const sorted = [...values].sort((a, b) => a - b),
    n = sorted.length;
  return (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2;
}

/* Compares what a lane and the plain lane have written by the time `ms`. Returns `at`, the index of the first different
 * token or -1, and the number of compared tokens. Compares pieces if a server leaves out a token's id. */
export function findDivergence(/** @type {Run} */ run, lane = speculativeOf(run), ms = Infinity) {
  const plain = plainOf(run);
  if (!plain) return { at: -1, compared: 0 };
  const all = (/** @type {Lane} */ { prefill, cycles }, /** @type {"tokens" | "pieces"} */ kind) =>
    [prefill, ...cycles.slice(0, countCyclesBy(cycles, ms))].flatMap(
      (part) => /** @type {any[]} */ (part?.[kind] ?? []),
    );
  const kind = [lane, plain].some((lane) => all(lane, "tokens").includes(UNNAMED)) ? "pieces" : "tokens";
  const tokens = all(lane, kind),
    plainTokens = all(plain, kind),
    compared = Math.min(tokens.length, plainTokens.length);
  for (let i = 0; i < compared; i++) if (tokens[i] !== plainTokens[i]) return { at: i, compared };
  return { at: -1, compared };
}

/** Estimates the fastest draft length below `k`; 0 if none would be 2 % faster than plain. Costs are in plain passes.
 * @param {Figures} figures @param {number} k @param {number} otherCost */
export function findWinningDepth(figures, k, otherCost) {
  const { alpha, passCost, draftCost } = /** @type {Record<string, number>} */ (/** @type {object} */ (figures));
  let best = 0,
    speed = 1.02,
    tokens = 1;
  for (let depth = 1, chance = 1; depth < k; depth++) {
    tokens += chance *= alpha;
    const cost = 1 + otherCost + ((passCost - 1 + draftCost) * depth) / k;
    if (tokens / cost > speed) [best, speed] = [depth, tokens / cost];
  }
  return best;
}
