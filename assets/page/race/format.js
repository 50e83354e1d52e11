/* Formats numbers with their units and chooses the ticks of an axis; uses no DOM. */

import { EPS } from "#page/race/run.js";

/** @param {number} x @param {number} low @param {number} high */
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const toFixed = (/** @type {number} */ x, digits = 2) => x.toFixed(digits);
/* Formats a ratio with one digit; one near 1 has a second. */
export const formatTimes = (/** @type {number} */ ratio) => toFixed(ratio, ratio < 1.1 ? 2 : 1);

/* Formats a probability with two significant digits. Never rounds to 0 or 1. */
export function formatChance(/** @type {number} */ x) {
  if (x == null || Number.isNaN(x)) return "–";
  if (x > 0 && x < 0.0001) return "<0.0001";
  if (x < 1 && x > 0.995) return ">0.99";
  return x >= 0.0995 || x === 0 ? toFixed(x) : x.toPrecision(2);
}

export function formatApart(/** @type {number} */ a, /** @type {number} */ b) {
  let digits = 2;
  while (digits < 6 && a !== b && toFixed(a, digits) === toFixed(b, digits)) digits++;
  return [a, b].map((x) => toFixed(x, digits));
}

export function formatDuration(/** @type {number} */ ms) {
  if (ms >= 1000) return toFixed(ms / 1000, ms < 10000 ? 2 : 1) + " s";
  return toFixed(ms, !ms ? 0 : ms < 0.1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0) + " ms";
}

export function formatSize(/** @type {number} */ count) {
  if (!(count > 0)) return "";
  if (count >= 1e9) return toFixed(count / 1e9, 1) + " B";
  return count >= 1e6 ? toFixed(count / 1e6, count >= 1e7 ? 0 : 1) + " M" : Math.round(count / 1e3) + " k";
}

export function niceStep(/** @type {number} */ span, /** @type {number} */ count) {
  const rough = Math.max(span, EPS) / count,
    power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) || 10);
}
const formatTick = (/** @type {number} */ value, /** @type {number} */ step) =>
  step >= 1 ? String(Math.round(value)) : value.toFixed(Math.min(3, Math.ceil(-Math.log10(step))));

/** Returns the ticks of an axis that starts at `from` and is `span` long. About `count` ticks fit into `window`, the
 * visible length. Returns no ticks if `window` is 0. @param {number} from @param {number} span
 * @param {number} window @param {number} count */
export function ticksOf(from, span, window, count) {
  if (!(window > EPS)) return [];
  const step = niceStep(window, count),
    first = Math.ceil(from / step - EPS),
    last = Math.floor((from + span) / step + EPS);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => ({
    at: (first + i) * step,
    label: formatTick((first + i) * step, step),
  }));
}

/** Estimates the width in px of a label in a font of 12 px. A Chinese character is as wide as it is high.
 * @param {string} label */
export const estimateWidth = (label) => [...label].reduce((width, char) => width + (char > "\u2e80" ? 12 : 5.8), 0);
