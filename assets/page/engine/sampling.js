/* Turns logits into distributions, as `specdec/sampling.py` does. p is the target's distribution, q the drafter's. */

const COLDEST = 1e-30; // replaces lower temperatures

/** Returns the index of the highest value; of equal values, the first index. @param {ArrayLike<number>} row */
export function argmax(row) {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}

/** Returns the indices of the `count` highest values, the highest first; of equal values, the lower index first.
 * @param {ArrayLike<number>} row @param {number} count */
export function highestIndices(row, count) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < row.length; i++) {
    if (best.length === count && !(row[i] > row[best[count - 1]])) continue;
    let at = best.length;
    while (at && row[i] > row[best[at - 1]]) at--;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

/** Returns the distribution that tokens are drawn from: applies temperature, then top-k, then top-p.
 * @param {ArrayLike<number>} logits
 * @param {{ temperature: number, top_k: number, top_p: number }} params */
export function probabilities(logits, { temperature, top_k, top_p }) {
  const probs = new Float32Array(logits.length),
    best = argmax(logits);
  if (temperature === 0) {
    probs[best] = 1;
    return probs;
  }
  const limited = top_k > 0 && top_k < logits.length,
    keptTokens = limited ? highestIndices(logits, top_k) : null,
    scale = 1 / Math.max(temperature, COLDEST);
  let sum = 0;
  const addWeight = (/** @type {number} */ i) => (sum += probs[i] = Math.exp((logits[i] - logits[best]) * scale));
  if (keptTokens) keptTokens.forEach(addWeight);
  else for (let i = 0; i < logits.length; i++) addWeight(i);
  for (let i = 0; i < probs.length; i++) probs[i] /= sum;
  return applyTopP(probs, top_p);
}

/** Keeps the likeliest tokens, just enough to sum to `top_p`, and normalises their probabilities.
 * @param {Float32Array} probs @param {number} top_p */
function applyTopP(probs, top_p) {
  if (top_p >= 1) return probs;
  const threshold = (1 - top_p) / 2 / probs.length, // the tokens below it sum to less than 1 - top_p
    likely = [...probs.keys()].filter((i) => probs[i] >= threshold).sort((a, b) => probs[b] - probs[a] || a - b),
    keptProbs = new Float32Array(probs.length);
  let sum = 0;
  for (const i of likely) {
    if (sum >= top_p) break;
    sum += keptProbs[i] = probs[i];
  }
  return keptProbs.map((p) => p / sum);
}

/** Returns max(0, p - q), normalised; if `q` is null, q is one-hot at `token` (Leviathan et al. 2022, Algorithm 1).
 * @param {Float32Array} p @param {Float32Array | null} q @param {number} token */
export function residual(p, q, token) {
  const residualProbs = new Float32Array(p.length);
  let mass = 0,
    total = 0;
  for (let i = 0; i < p.length; i++) {
    total += p[i];
    mass += residualProbs[i] = Math.max(0, p[i] - (q ? q[i] : i === token ? 1 : 0));
  }
  // If p and q are equal up to rounding, the residual is 0 everywhere, and p replaces it.
  for (let i = 0; i < p.length; i++) residualProbs[i] = mass > 0 ? residualProbs[i] / mass : p[i] / total;
  return residualProbs;
}

/** Returns Σ min(p, q), the chance to accept a draft. @param {ArrayLike<number>} p @param {ArrayLike<number>} q */
export function overlap(p, q) {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += Math.min(p[i], q[i]);
  return sum;
}

/** Returns the entropy in nats. @param {ArrayLike<number>} probs */
export function entropy(probs) {
  let sum = 0;
  for (let i = 0; i < probs.length; i++) if (probs[i] > 0) sum -= probs[i] * Math.log(probs[i]);
  return sum;
}

/** Returns h, the chance that block verification accepts a prefix. `p` and `q` are the distributions after
 * it; `weight` is the product of its tokens' p/q, capped at 1 at each.
 * @param {number} weight @param {ArrayLike<number>} p @param {ArrayLike<number>} q */
export function blockChance(weight, p, q) {
  let mass = 0;
  for (let i = 0; i < p.length; i++) mass += Math.max(0, weight * p[i] - q[i]);
  return weight < 1 ? mass / (mass + 1 - weight) : 1;
}
