/* Defines the drafters: after the text `tokens`, `propose(tokens, k, params, sampler)` returns a `Proposal`, a chain of
 * at most `k` tokens, as in `specdec/drafters`. One instance serves one run. */

import { argmax, probabilities } from "./sampling.js";

const emptyProposal = () => ({ tokens: [], probs: null, seconds: [] });

/* Drafts nothing, so that the loop is plain decoding. */
export class NoDrafter {
  name = "none";

  propose() {
    return emptyProposal();
  }
}

/* Copies tokens from earlier in the text, which a subclass chooses in `copyTokens(text, k)`. Nothing is sampled, so q
 * is one-hot and `probs` is null. `around` is how many tokens of a chat template stand before and after the prompt;
 * these are not copied. */
class CopyingDrafter {
  name = "";

  constructor(around = [0, 0]) {
    this.around = around;
    /** @type {number[]} */
    this.text = [];
    this.readCount = 0;
  }

  /** @param {number[]} tokens @param {number} k @returns {import("./verify.js").Proposal} */
  propose(tokens, k) {
    const [before, after] = this.readCount ? [0, 0] : this.around;
    this.text.push(...tokens.slice(this.readCount + before, tokens.length - after));
    this.readCount = tokens.length;
    return { ...emptyProposal(), tokens: /** @type {any} */ (this).copyTokens(this.text, k) };
  }
}

/* Finds the text's longest ending (3, 2 or 1 tokens) that occurred before, and copies what followed it last (Saxena
 * 2023). */
export class PromptLookup extends CopyingDrafter {
  name = "prompt_lookup";
  indexedCount = 0;
  /** @type {Map<string, number>} maps an n-gram to the position after its latest occurrence */
  latestEnds = new Map();

  copyTokens(text, k) {
    for (let end = Math.max(1, this.indexedCount); end < text.length; end++)
      for (let n = 1; n <= Math.min(3, end); n++) this.latestEnds.set(text.slice(end - n, end).join(), end);
    this.indexedCount = text.length;
    for (let n = Math.min(3, text.length); n > 0; n--) {
      const match = this.latestEnds.get(text.slice(-n).join());
      if (match === undefined) continue;
      const source = [...text];
      for (let i = match; i < match + k; i++) source.push(source[i]); // beyond the text's end it copies its own copies
      return source.slice(text.length);
    }
    return [];
  }
}

/* Drafts with a smaller model, token by token (Leviathan 2022, Chen 2023). */
export class DraftModel {
  name = "draft_model";

  /** @param {any} model @param {number} capacity */
  constructor(model, capacity) {
    this.model = model;
    this.cache = model.newCache(capacity);
    /** @type {number[]} the ids in the cache: text, then drafts that may have been rejected */
    this.cached = [];
  }

  /** @param {number[]} tokens @param {number} k @param {any} params @param {any} sampler */
  propose(tokens, k, params, sampler) {
    let pending = tokens.slice(this.cutBack(tokens));
    if (!k) {
      // fills the cache even if nothing is drafted, but for the last token, which every call reads again
      if (pending.length > 1) this.step(pending.slice(0, -1));
      return emptyProposal();
    }
    /** @type {number[]} */
    const drafted = [],
      probs = params.temperature ? /** @type {Float32Array[]} */ ([]) : null,
      seconds = [];
    for (let began = performance.now(); drafted.length < k;) {
      const logits = this.step(pending),
        [token, q] = this.draw(logits, params, sampler, drafted.length),
        now = performance.now();
      drafted.push(token);
      if (probs) probs.push(q);
      seconds.push((now - began) / 1000);
      [pending, began] = [[token], now];
    }
    return { tokens: drafted, probs, seconds };
  }

  /* Returns a token and the distribution that it was drawn from, or null in place of the distribution if decoding is
   * greedy, which draws nothing. */
  draw(logits, params, sampler, depth) {
    if (!params.temperature) return /** @type {any[]} */ ([argmax(logits), null]);
    const q = probabilities(logits, params);
    return [sampler.categorical(q, ["draft", depth]), q];
  }

  /* Adds tokens to the cache and returns the logits after the last one. */
  step(pending) {
    this.cached.push(...pending);
    return this.model.forward(pending, this.cache)[0];
  }

  release() {
    this.cache.release();
  }

  /* Removes rejected drafts from the cache and returns its length. The last token of the text is always read again. */
  cutBack(tokens) {
    let same = 0;
    while (same < tokens.length - 1 && this.cached[same] === tokens[same]) same++;
    this.cached.length = same;
    this.cache.keep(same);
    return same;
  }
}
