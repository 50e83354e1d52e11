/* Defines drafters that work like those in `specdec/drafters`. `propose(tokens, k, params, sampler)` returns a
 * `Proposal`: a chain of at most `k` tokens to follow the text `tokens`. Each run has its own instance. */

import { argmax, probabilities } from "./sampling.js";

const emptyProposal = () => ({ tokens: [], probs: null, seconds: [] });

/* Drafts nothing, so that the loop is plain decoding. */
export class NoDrafter {
  name = "none";

  propose() {
    return emptyProposal();
  }
}

/* Drafts by copying tokens from earlier in the text. A subclass chooses them in `copyTokens(text, k)`. Nothing is
 * sampled, so the drafter's distribution q is one-hot and `probs` is null. `around` holds two numbers: how many tokens
 * of the chat template stand before and after the prompt. These tokens are never copied. */
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

/* Searches the earlier text for the last 3 tokens, else for the last 2, else for the last one. Copies what followed
 * (Saxena 2023). */
export class PromptLookup extends CopyingDrafter {
  name = "prompt_lookup";
  indexedCount = 0;
  /** @type {Map<string, number>} maps an n-gram to the position after its latest occurrence */
  latestEnds = new Map();

  copyTokens(/** @type {number[]} */ text, /** @type {number} */ k) {
    for (let end = Math.max(1, this.indexedCount); end < text.length; end++)
      for (let n = 1; n <= Math.min(3, end); n++) this.latestEnds.set(text.slice(end - n, end).join(), end);
    this.indexedCount = text.length;
    for (let n = Math.min(3, text.length); n > 0; n--) {
      const match = this.latestEnds.get(text.slice(-n).join());
      if (match === undefined) continue;
      const source = [...text];
      for (let i = match; i < match + k; i++) source.push(source[i]); // past the text, i reaches the copied tokens
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
    /** @type {number[]} the token ids in the cache: the text, then drafts that the target may have rejected */
    this.cached = [];
  }

  /** @param {number[]} tokens @param {number} k @param {any} params @param {any} sampler */
  propose(tokens, k, params, sampler) {
    let pending = tokens.slice(this.cutBack(tokens));
    if (!k) {
      // Only fill the cache. Leave out the last token, because the next call reads it in any case.
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

  /** Returns a token and the distribution q that it was drawn from. Greedy decoding takes the likeliest token, and
   * returns null instead of q. @param {Float32Array} logits @param {any} params @param {any} sampler
   * @param {number} depth */
  draw(logits, params, sampler, depth) {
    if (!params.temperature) return /** @type {any[]} */ ([argmax(logits), null]);
    const q = probabilities(logits, params);
    return [sampler.categorical(q, ["draft", depth]), q];
  }

  /* Adds tokens to the cache and returns the logits after the last one. */
  step(/** @type {number[]} */ pending) {
    this.cached.push(...pending);
    return this.model.forward(pending, this.cache)[0];
  }

  release() {
    this.cache.release();
  }

  /* Cuts the cache back to what it shares with the text, without the text's last token. Returns the new length. */
  cutBack(/** @type {number[]} */ tokens) {
    let length = 0;
    while (length < tokens.length - 1 && this.cached[length] === tokens[length]) length++;
    this.cached.length = length;
    this.cache.keep(length);
    return length;
  }
}
