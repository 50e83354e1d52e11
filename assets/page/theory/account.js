/* Works out quoted figures by S = τ / (K·c + v + o), on their own costs and on those measured here. */

import { expectedTokens, growingCost } from "#page/theory/formulas.js";

/** @typedef {[number, number]} Span  the least and the greatest */
/** @typedef {{k: number, c: number, v: number, o: number}} Costs  c, v and o in plain steps; v of K + 1 rows */
/**
 * A figure that others publish. `tau` and `speedup` may be a span. `plain` and `fast` are tokens/s. `steps` are the
 * steps of drafting in a cycle, if not K; `rows` those of a check, if not K + 1. What the source leaves out is absent.
 * @typedef {{id: string, name: string, method: string, published?: string, checked: string, engine?: string,
 *   machine?: string, prompts?: string, batch?: number, temperature?: number, k?: number, steps?: number,
 *   rows?: number, tau?: number | Span, plain?: number, fast?: number, speedup?: number | Span,
 *   links: string[]}} Claim
 */
/**
 * What half of the prompts and a probe predict, beside what the other half measured: τ, and the cost of a cycle.
 * @typedef {{predicted_tau: number, predicted_cost: number, unseen_tau: number, unseen_cost: number}} Predicted
 */

export const TOLERANCE = 0.1; // of a predicted speed-up
const CONDITIONS = /** @type {const} */ (["machine", "batch", "temperature", "prompts", "k", "tau"]);

/** @param {number | Span | undefined} value  @returns {Span | null} */
const toSpan = (value) => (value === undefined ? null : typeof value === "number" ? [value, value] : value);
/** @param {Span} span */
const middleOf = ([low, high]) => (low + high) / 2;

/** Returns the α at which K free drafts give so many tokens per cycle; 1 if none is high enough.
 * @param {number} tokens  @param {number} k */
export function neededAlpha(tokens, k) {
  let low = 0,
    high = 1;
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (expectedTokens(middle, k) < tokens) low = middle;
    else high = middle;
  }
  return high;
}

/** Returns the claimed speed-up, the mean `cost` of a cycle that follows, the `draft` cost of a token if a check cost a
 * plain step, and the conditions that are left out. What does not follow is null. @param {Claim} claim */
export function workOut({ tau, k, plain, fast, speedup, ...claim }) {
  const speedups = plain && fast ? toSpan(fast / plain) : toSpan(speedup),
    taus = toSpan(tau),
    steps = claim.steps ?? k,
    cost = speedups && taus ? middleOf(taus) / middleOf(speedups) : null;
  const stated = { ...claim, tau, k };
  return {
    speedups,
    taus,
    cost,
    draft: cost && steps && cost >= 1 ? (cost - 1) / steps : null,
    alpha: speedups && !taus && k && speedups[0] > 1 ? neededAlpha(middleOf(speedups), k) : null,
    missing: [
      ...CONDITIONS.filter((name) => stated[name] === undefined),
      ...(speedups ? [] : /** @type {const} */ (["speedup"])),
    ],
  };
}

/** Returns what the τ of a claim gives at other costs, and the cost of its cycle and check there; null without τ.
 * Without K, its drafts are taken to be as long as the measured ones, or as long as τ needs.
 * @param {Claim} claim  @param {Costs} costs */
export function expectAt({ tau, k, steps, rows }, costs) {
  const taus = toSpan(tau);
  if (!taus) return null;
  const depth = k ?? Math.max(costs.k, Math.ceil(taus[1] - 1)),
    drafted = rows ? rows - 1 : depth,
    v = costs.v > 1 ? growingCost(costs.v, costs.k)(drafted) : costs.v,
    cost = (steps ?? depth) * costs.c + v + costs.o;
  return { speedups: /** @type {Span} */ ([taus[0] / cost, taus[1] / cost]), rows: drafted + 1, v, cost };
}

/** Returns both speed-ups, and by which share of what was measured the predicted speed-up, τ and cost are off.
 * @param {Predicted} row */
export function missOf({ predicted_tau, predicted_cost, unseen_tau, unseen_cost }) {
  const predicted = predicted_tau / predicted_cost,
    measured = unseen_tau / unseen_cost;
  return {
    predicted,
    measured,
    error: predicted / measured - 1,
    tau: predicted_tau / unseen_tau - 1,
    cost: predicted_cost / unseen_cost - 1,
  };
}
