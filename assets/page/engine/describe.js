/* Describes a cycle in numbers, as `specdec/describe.py` does: both models' probabilities at every drafted position.
 * The lane's clock does not count the time that this takes. */

import { blockChance, entropy, highestIndices, overlap, residual } from "./sampling.js";
import { Random } from "./random.js";

const TOP_TOKENS = 8; // how many tokens `likeliest` returns at most

/* Draws a token from a distribution, only for display, with Gumbel noise. Seed and position determine the noise. */
export class Noise {
  /** @param {number} seed */
  constructor(seed) {
    this.seed = seed >>> 0;
    /** @type {Map<number, Float64Array>} */
    this.noises = new Map();
  }

  /** @param {Float32Array} probs @param {number} position of the token, counted from the start of the prompt */
  draw(probs, position) {
    for (const other of this.noises.keys()) if (other < position - 100) this.noises.delete(other);
    let noise = this.noises.get(position);
    if (!noise) {
      const source = new Random([this.seed, position]);
      noise = new Float64Array(probs.length);
      for (let i = 0; i < noise.length; i++) noise[i] = -Math.log(-Math.log(source.random()));
      this.noises.set(position, noise);
    }
    let best = 0,
      bestScore = -Infinity;
    for (let i = 0; i < probs.length; i++) {
      const score = probs[i] > 0 ? Math.log(probs[i]) + noise[i] : -Infinity;
      if (score > bestScore) [best, bestScore] = [i, score];
    }
    return best;
  }
}

/** @param {number} value @param {number} digits */
const roundTo = (value, digits) => Math.round(value * 10 ** digits) / 10 ** digits;
/** @param {Float32Array} probs */
const likeliest = (probs) => highestIndices(probs, TOP_TOKENS).filter((token) => probs[token] > 0);

function pointMass(/** @type {number} */ size, /** @type {number} */ token) {
  const probs = new Float32Array(size);
  probs[token] = 1;
  return probs;
}

/** Computes block verification's h (see `Position` in `specdec/events.py`). `rows[i]` is p for token i.
 * @param {number[]} tokens @param {Float32Array[]} rows @param {Float32Array[]} q */
function blockChances(tokens, rows, q) {
  let weight = 1;
  return tokens.map((token, i) => {
    weight = Math.min(1, (weight * rows[i][token]) / q[i][token]);
    return i === tokens.length - 1 ? weight : blockChance(weight, rows[i + 1], q[i + 1]);
  });
}

/** @param {(token: number) => string} piece @param {Noise} noise @param {number} length of the text before the cycle */
export function createDescriber(piece, noise, length) {
  const candidate = (/** @type {Float32Array} */ probs, /** @type {number} */ token) => ({
    token,
    piece: piece(token),
    prob: roundTo(probs[token], 7),
  });

  /* Lists those of `tokens` whose probability is above 0, the likeliest first. Adds `rest`, the summed probability of
   * all other tokens, and the entropy. */
  function distribution(/** @type {Float32Array} */ probs, /** @type {number[]} */ tokens) {
    const top = [...new Set(tokens)]
      .filter((token) => probs[token] > 0)
      .sort((a, b) => probs[b] - probs[a] || a - b)
      .map((token) => candidate(probs, token));
    const topSum = top.reduce((sum, { prob }) => sum + prob, 0);
    return { top, rest: roundTo(Math.max(0, 1 - topSum), 7), entropy: roundTo(entropy(probs), 5) };
  }

  /** Adds `sample` to a distribution: the token that the noise draws after `level` drafted tokens.
   * @param {Float32Array} probs @param {number[]} tokens @param {number} level */
  const withSample = (probs, tokens, level) => ({
    ...distribution(probs, tokens),
    sample: candidate(probs, noise.draw(probs, length + level)),
  });

  /** Returns the fields of a `verified` event that say how the draft was judged.
   * @param {import("./verify.js").Proposal} proposal @param {Float32Array[]} rows
   * @param {import("./verify.js").Verdict} verdict */
  function verification({ tokens, probs }, rows, verdict) {
    const q = probs || tokens.map((token) => pointMass(rows[0].length, token)),
      chances = blockChances(tokens, rows, q);
    const positions = tokens.map((token, i) => describePosition(token, i, rows[i], q[i], chances, verdict));
    const { distribution: drawnFrom, accepted } = verdict,
      fields = {
        positions,
        distribution: distribution(drawnFrom, [...likeliest(drawnFrom), verdict.token]),
      },
      lastRow = rows[rows.length - 1],
      bonus = tokens.length ? { bonus: withSample(lastRow, likeliest(lastRow), tokens.length) } : {};
    return { ...fields, p: rows[accepted][verdict.token], ...bonus };
  }

  /** @param {number} token @param {number} i @param {Float32Array} p @param {Float32Array} q
   * @param {number[]} chances @param {import("./verify.js").Verdict} verdict */
  function describePosition(token, i, p, q, chances, { trials, token: targetToken }) {
    const trial = trials[i],
      status = !trial ? "discarded" : trial.accepted ? "accepted" : "rejected",
      rejected = status === "rejected" ? [targetToken] : [],
      shown = [...likeliest(p), ...likeliest(q), token, ...rejected],
      fields = { node: i, token, piece: piece(token), status, p: p[token], q: q[token] },
      residualProbs = residual(p, q, token);
    return {
      ...fields,
      ...(trial && trial.u !== null ? { u: trial.u } : {}),
      overlap: roundTo(overlap(p, q), 7),
      block: chances[i],
      target: withSample(p, shown, i),
      draft: distribution(q, shown),
      ...(trials.length ? { residual: withSample(residualProbs, [...likeliest(residualProbs), ...rejected], i) } : {}),
    };
  }

  return verification;
}
