/* Computes tokens per cycle and speed-ups. Letters follow Leviathan et al. 2022 (arXiv 2211.17192). */

/** @param {number} alpha @param {number} k */
export const expectedTokens = (alpha, k) => (alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha));

export function expectedAccepted(/** @type {number} */ alpha, /** @type {number} */ k, alreadyAccepted = 0) {
  let further = 0;
  for (let j = k; j > alreadyAccepted; j--) further = alpha * (1 + further);
  return further;
}

export const acceptedDistribution = (/** @type {number} */ alpha, /** @type {number} */ k) =>
  Array.from({ length: k + 1 }, (_, n) => (n < k ? alpha ** n * (1 - alpha) : alpha ** k));
/** @param {number} probability @param {number} n @param {number} draftSeconds @param {number} verifySeconds */
export const throughput = (probability, n, draftSeconds, verifySeconds) =>
  (expectedAccepted(probability, n) + 1) / (n * draftSeconds + verifySeconds);

/** @param {number} alpha @param {number} k @param {number} c @param {number} [v] @param {number} [o] */
export const speedup = (alpha, k, c, v = 1, o = 0) => expectedTokens(alpha, k) / (k * c + v + o);

/** @param {number} tau @param {number} drafted @param {number} c @param {number} v @param {number} o
 * @param {number} [share] @param {number} [step] */
export const accountedSpeedup = (tau, drafted, c, v, o, share = 1, step = 1) =>
  tau / (share * (drafted * c + v) + (1 - share) * step + o);

/** Returns a cost that is linear in k: 1 at k = 0, v at k = `at`. @param {number} v @param {number} at */
export const growingCost = (v, at) => (/** @type {number} */ k) => 1 + ((v - 1) * k) / at;

/** @param {number} alpha @param {number} c @param {number | ((k: number) => number)} v */
export function bestK(alpha, c, v = 1, o = 0, largest = 32) {
  /** @type {(k: number) => number} */
  const cost = typeof v === "function" ? v : () => v,
    gain = (/** @type {number} */ k) => speedup(alpha, k, c, cost(k), o);
  let best = 1;
  for (let k = 2; k <= largest; k++) if (gain(k) > gain(best)) best = k;
  return gain(best) > 1 ? best : 0;
}

export const breakEven = (/** @type {number} */ c, v = 1, o = 0) => Math.max(0, c + v + o - 1);

export function wilson(/** @type {number} */ accepted, /** @type {number} */ judged, z = 1.96) {
  if (!judged) return [0, 1];
  const rate = accepted / judged,
    square = (z * z) / judged,
    middle = (rate + square / 2) / (1 + square);
  const reach = (z / (1 + square)) * Math.sqrt((rate * (1 - rate)) / judged + square / (4 * judged));
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}

/* Applies a temperature T: p^(1/T), normalised. At T = 0, the likeliest token has 1. */
export function tempered(/** @type {number[]} */ distribution, /** @type {number} */ temperature) {
  const highest = Math.max(...distribution),
    raised = distribution.map((p) => (temperature ? (p / highest) ** (1 / temperature) : Number(p === highest))),
    sum = raised.reduce((a, b) => a + b);
  return raised.map((p) => p / sum);
}

/** Returns β = Σ min(p, q), the chance that a draft drawn from q is accepted. @param {number[]} p
 * @param {number[]} q */
export const overlap = (p, q) => p.reduce((sum, value, i) => sum + Math.min(value, q[i]), 0);
