/* Runs the loop of `specdec/engine.py`: draft, verify, commit. The loop yields the events of a trace. Between cycles,
 * the target's KV cache holds every token of the text except the last one. Cycle 0 is the prefill. */

import { createDescriber, Noise } from "./describe.js";
import { probabilities } from "./sampling.js";
import { RandomSampler } from "./random.js";
import { RejectionSampling } from "./verify.js";
import { TextStream } from "./text.js";

export const MAX_DRAFT = 64; // tokens in a draft

/** @typedef {{ temperature: number, top_k: number, top_p: number, max_tokens: number, seed: number, stop: string[],
 *   ignore_end: boolean }} Params */
/** @typedef {{ lane: string, target: any, prompt: number[], params: Params, drafter: any, k: number, rule?: any,
 *   ends: number[], bytes: (token: number) => Uint8Array, piece: (token: number) => string, sampler?: any }} Task */

/* Measures the seconds that a lane works. The time that other lanes take does not count. */
class Stopwatch {
  elapsed = 0;

  /** @template T @param {() => T} work @returns {[T, number, number]} the result, and when work began and ended */
  time(work) {
    const start = this.elapsed,
      startedAt = performance.now(),
      result = work();
    this.elapsed += (performance.now() - startedAt) / 1000;
    return [result, start, this.elapsed];
  }
}

/* Holds a lane's growing text, and the reason why it ended. Adds tokens one by one, because each can end the text. */
class Transcript {
  /** @param {Task} task */
  constructor({ prompt, params, target, ends, bytes }) {
    this.tokens = [...prompt];
    this.promptLength = prompt.length;
    this.limit = Math.min(target.context, prompt.length + params.max_tokens);
    this.limitReason = prompt.length + params.max_tokens <= target.context ? "length" : "context";
    this.endTokens = params.ignore_end ? [] : ends;
    this.stream = new TextStream(bytes, params.stop);
    this.text = "";
    this.reason = this.remaining > 0 ? "" : this.limitReason;
  }

  get remaining() {
    return this.limit - this.tokens.length;
  }

  get count() {
    return this.tokens.length - this.promptLength;
  }

  /** @param {number[]} emitted @returns {[number[], string]} the added tokens, and the text that became readable */
  commit(emitted) {
    const before = this.tokens.length;
    let readable = "";
    for (const token of emitted) {
      const isEnd = this.endTokens.includes(token);
      this.tokens.push(token);
      if (!isEnd) readable += this.stream.push(token);
      if (!isEnd && !this.stream.stopped && this.remaining) continue;
      this.reason = this.stream.stopped ? "stop" : isEnd ? "end" : this.limitReason;
      readable += this.stream.flush();
      break;
    }
    this.text += readable;
    return [this.tokens.slice(before), readable];
  }
}

/** Runs `task` and yields its events as they happen. The last event is `finished`.
 * @param {Task} task */
export function* generate(task) {
  const { lane, params, drafter, target, piece, k: maxDraft } = task,
    rule = task.rule || new RejectionSampling(),
    sampler = task.sampler || new RandomSampler(params.seed),
    noise = new Noise(params.seed),
    transcript = new Transcript(task),
    { tokens } = transcript,
    watch = new Stopwatch(),
    spent = { prefill: 0, draft: 0, verify: 0 };
  const fields = { drafter: drafter.name, k: maxDraft, params, prompt_tokens: tokens.length };
  yield { event: "started", lane, ...fields, rule: rule.name, lossless: true, server: "" };
  const cache = target.newCache(transcript.limit + MAX_DRAFT);
  try {
    for (let cycle = 0; !transcript.reason; cycle++) {
      /** @param {"prefill" | "draft" | "verify"} work @param {number} seconds */
      const addSpent = (work, seconds) => (spent[cycle ? work : "prefill"] += seconds);
      // Leave room for the target's own token.
      const k = cycle ? Math.min(maxDraft, transcript.remaining - 1) : 0,
        propose = () => drafter.propose(tokens, k, params, sampler),
        [proposal, startedAt, draftedAt] = watch.time(propose),
        draftLength = proposal.tokens.length;
      addSpent("draft", draftedAt - startedAt);
      if (draftLength)
        yield {
          event: "drafted",
          lane,
          cycle,
          ...draftOf(proposal, piece, startedAt),
          start: startedAt,
          end: draftedAt,
        };

      // In one pass, read the draft and the tokens that the cache lacks. Judge the draft. Cut off rejected tokens.
      const [[rows, verdict], start, end] = watch.time(() => {
        const block = [...tokens.slice(cache.length), ...proposal.tokens],
          distributions = target
            .forward(block, cache, draftLength + 1)
            .map((/** @type {Float32Array} */ logits) => probabilities(logits, params)),
          judged = rule.verify(proposal, distributions, sampler);
        cache.keep(tokens.length + judged.accepted);
        return /** @type {[Float32Array[], import("./verify.js").Verdict]} */ ([distributions, judged]);
      });
      addSpent("verify", end - start);
      const details = createDescriber(piece, noise, tokens.length)(proposal, rows, verdict);
      yield { event: "verified", lane, cycle, ...details, start, end };

      const { accepted, token, kind, extra = [] } = verdict,
        emitted = [...proposal.tokens.slice(0, accepted), token, ...extra],
        [[added, text], , at] = watch.time(() => transcript.commit(emitted));
      yield {
        ...{ event: "committed", lane, cycle, tokens: added, pieces: added.map(piece) },
        ...{ accepted: Math.min(accepted, added.length), kind, text, total: transcript.count, at },
      };
    }
  } finally {
    cache.release?.();
  }
  const at = watch.elapsed,
    other = Math.max(0, at - spent.prefill - spent.draft - spent.verify);
  const { reason, count, text } = transcript;
  yield { event: "finished", lane, reason, tokens: count, text, at, ...spent, other };
}

/** Returns fields of a `drafted` event. The draft is a chain, so the parent of each token is the token before it.
 * @param {import("./verify.js").Proposal} proposal @param {(token: number) => string} piece
 * @param {number} startedAt */
function draftOf({ tokens, seconds }, piece, startedAt) {
  let end = startedAt;
  return {
    tokens,
    pieces: tokens.map(piece),
    parents: tokens.map((_, i) => i - 1),
    step_ends: seconds.map((stepSeconds) => (end += stepSeconds)),
  };
}

/** Runs lanes in turns of one cycle. The next turn goes to the lane that has worked the least since its first token.
 * @param {Record<string, Generator<any>>} lanes */
export function* interleave(lanes) {
  const clocks = Object.fromEntries(Object.keys(lanes).map((name) => [name, 0])),
    firstTokenAt = { ...clocks };
  while (Object.keys(clocks).length) {
    const [name] = Object.entries(clocks).reduce((a, b) => (b[1] < a[1] ? b : a));
    for (;;) {
      const { value, done } = lanes[name].next();
      if (done) {
        delete clocks[name];
        break;
      }
      yield value;
      if (value.event !== "committed") continue;
      if (!value.cycle) firstTokenAt[name] = value.at;
      clocks[name] = value.at - firstTokenAt[name];
      break;
    }
  }
}
