/* Verifies a chain of drafted tokens, as `specdec/verify.py` does. Each token is accepted with probability min(1, p/q).
 * After the first rejection, a token is drawn from the residual distribution (Leviathan et al. 2022, arXiv 2211.17192;
 * Chen et al. 2023, arXiv 2302.01318). */

import { residual } from "./sampling.js";

/** @typedef {{ tokens: number[], probs: Float32Array[] | null, seconds: number[] }} Proposal `probs[i]` is the
 * distribution q of token i; if `probs` is null, each q is one-hot. `seconds[i]` is the time to draft token i */
/** @typedef {{ token: number, p: number, q: number, u: number | null, accepted: boolean }} Trial */
/** @typedef {{ accepted: number, token: number, kind: "resampled" | "bonus", trials: Trial[],
 *   distribution: Float32Array, extra?: number[] }} Verdict `token` was drawn from `distribution`, and follows the
 * accepted drafts. Only planted mistakes have `extra` */

/* Verifies by rejection sampling. Tests override the four small methods to plant mistakes. */
export class RejectionSampling {
  name = "rejection sampling";

  /** @param {Proposal} proposal @param {Float32Array[]} rows @param {any} sampler @returns {Verdict} */
  verify({ tokens, probs }, rows, sampler) {
    /** @type {Trial[]} */
    const trials = [];
    for (const [i, token] of tokens.entries()) {
      const p = this.row(rows, i),
        q = probs ? probs[i] : null,
        qOfToken = q ? q[token] : 1,
        [accepted, u] = this.accept(p[token], qOfToken, sampler, i);
      trials.push({ token, p: p[token], q: qOfToken, u, accepted });
      if (!accepted) {
        const distribution = this.residual(p, q, token);
        return {
          accepted: i,
          token: this.ownToken(distribution, sampler, i),
          kind: "resampled",
          trials,
          distribution,
        };
      }
    }
    const n = tokens.length,
      distribution = this.row(rows, n);
    return {
      accepted: n,
      token: this.ownToken(distribution, sampler, n),
      kind: "bonus",
      trials,
      distribution,
    };
  }

  /* Returns the target's distribution after i drafted tokens. */
  row(/** @type {Float32Array[]} */ rows, /** @type {number} */ i) {
    return rows[i];
  }

  accept(/** @type {number} */ p, /** @type {number} */ q, /** @type {any} */ sampler, /** @type {number} */ i) {
    return sampler.accept(p, q, ["accept", i]);
  }

  residual(/** @type {Float32Array} */ p, /** @type {Float32Array | null} */ q, /** @type {number} */ token) {
    return residual(p, q, token);
  }

  ownToken(/** @type {Float32Array} */ distribution, /** @type {any} */ sampler, /** @type {number} */ i) {
    return sampler.categorical(distribution, ["own", i]);
  }
}
