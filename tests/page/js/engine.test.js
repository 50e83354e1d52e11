// The engine in the browser is exact: its loop is enumerated on toys, and mistakes planted in it are seen.
import test from "node:test";
import assert from "node:assert";
import { Random, RandomSampler } from "#page/engine/random.js";
import { argmax, highestIndices, probabilities, residual } from "#page/engine/sampling.js";
import { RejectionSampling } from "#page/engine/verify.js";
import { DraftModel, NoDrafter, PromptLookup } from "#page/engine/drafters.js";
import { generate, interleave } from "#page/engine/engine.js";
import { TextStream } from "#page/engine/text.js";

const USUAL = {
  temperature: 1,
  top_k: 0,
  top_p: 1,
  max_tokens: 5,
  seed: 0,
  stop: [],
  ignore_end: true,
};

/* ---- toys ---- */

class Table {
  constructor(vocabulary, seed, base) {
    Object.assign(this, { vocabulary, seed, base, context: 64, known: new Map() });
  }

  /* A draft resembles its base. */
  row(prefix) {
    const key = prefix.join();
    if (!this.known.has(key)) {
      const source = new Random([this.seed, ...prefix, prefix.length]),
        noise = () => Math.sqrt(-2 * Math.log(source.random())) * Math.cos(2 * Math.PI * source.random()),
        base = this.base && this.base.row(prefix),
        row = Array.from({ length: this.vocabulary }, () => 1.2 * noise());
      this.known.set(
        key,
        Float32Array.from(row, (one, i) => (base ? 0.6 * base[i] + 0.6 * one : one)),
      );
    }
    return this.known.get(key);
  }

  newCache() {
    const tokens = [];
    return {
      tokens,
      get length() {
        return tokens.length;
      },
      keep: (length) => (tokens.length = length),
      release() {},
    };
  }

  forward(tokens, cache, rows = 1) {
    const all = [];
    for (const token of tokens) {
      cache.tokens.push(token);
      all.push(this.row(cache.tokens));
    }
    return all.slice(all.length - rows);
  }
}

/* Draws are choices: each run takes one way through them, and `ways` goes through all. */
class Choices {
  constructor(script) {
    Object.assign(this, { script, taken: [], chance: 1 });
  }

  choose(chances) {
    const at = this.taken.length,
      possible = chances.map((_, i) => i).filter((i) => chances[i] > 0),
      choice = at < this.script.length ? this.script[at] : 0;
    this.taken.push([choice, possible.length]);
    const picked = possible[choice] ?? 0;
    this.chance *= chances[picked];
    return picked;
  }

  categorical(probs) {
    const all = [...probs],
      sum = all.reduce((a, b) => a + b, 0);
    return this.choose(all.map((one) => one / sum));
  }

  accept(p, q) {
    const kept = q > 0 ? Math.min(1, p / q) : 1;
    return [this.choose([kept, 1 - kept]) === 0, 0.5];
  }
}

/* Text -> its probability, over all ways of a run. */
function distribution(task) {
  const found = new Map();
  let script = [];
  for (;;) {
    const sampler = new Choices(script),
      tokens = [];
    for (const event of generate({ ...task(), sampler })) if (event.event === "committed") tokens.push(...event.tokens);
    const text = tokens.join();
    found.set(text, (found.get(text) || 0) + sampler.chance);
    script = sampler.taken.map(([choice]) => choice);
    const ways = sampler.taken.map(([, count]) => count);
    while (script.length && script[script.length - 1] + 1 >= ways[script.length - 1]) script.pop();
    if (!script.length) return found;
    script[script.length - 1]++;
  }
}

function difference(one, other) {
  const texts = new Set([...one.keys(), ...other.keys()]);
  return [...texts].reduce((sum, text) => sum + Math.abs((one.get(text) || 0) - (other.get(text) || 0)) / 2, 0);
}

const taskOf = (target, drafter, k, params, rule) => () => ({
  ...{ lane: "speculative", target, prompt: [0], params, k, ends: [0] },
  ...{
    bytes: (token) => Uint8Array.of(97 + token),
    piece: String,
    drafter: drafter(),
    rule: rule && rule(),
  },
});
const plainly = (target, params) => distribution(taskOf(target, () => new NoDrafter(), 0, params));

class Fixed {
  name = "fixed";
  propose(tokens, k) {
    return { tokens: [0, 1, 0, 1].slice(0, k), probs: null, seconds: [] };
  }
}

/* ---- the loop is lossless ---- */

const WARPS = [{}, { temperature: 0 }, { temperature: 0.7 }, { top_k: 2 }, { top_p: 0.8 }, { top_k: 2, top_p: 0.6 }];

test("every drafter keeps the target's distribution, however it is warped", (told) => {
  let cases = 0;
  for (const [vocabulary, k, max_tokens] of [
    [2, 3, 5],
    [3, 2, 4],
    [3, 1, 3],
    [2, 4, 6],
  ])
    // prettier-ignore
    for (const warp of WARPS)
      for (const seed of [1, 2]) {
        const params = { ...USUAL, ...warp, max_tokens },
          target = new Table(vocabulary, seed),
          draft = new Table(vocabulary, seed + 100, target),
          wanted = plainly(target, params);
        assert.ok(Math.abs([...wanted.values()].reduce((a, b) => a + b) - 1) < 1e-6);
        const drafters = [
          () => new DraftModel(draft),
          () => new PromptLookup(),
          () => new Fixed(),
        ];
        for (const drafter of drafters) {
          const off = difference(distribution(taskOf(target, drafter, k, params)), wanted);
          assert.ok(off < 1e-5, `${drafter().name} V=${vocabulary} K=${k} ${JSON.stringify(warp)}: ${off}`);
          cases++;
        }
      }
  assert.equal(cases, 144);
  told.diagnostic(`${cases} distributions`);
});

/* Drafts once, after the first token: all ways of six drafts are too many where every cycle has them. */
const once = (draft) =>
  Object.assign(new DraftModel(draft), {
    propose(tokens, k, ...more) {
      return DraftModel.prototype.propose.call(this, tokens, tokens.length === 2 ? k : 0, ...more);
    },
  });

test("six drafts keep the target's distribution", () => {
  const target = new Table(2, 1),
    params = { ...USUAL, max_tokens: 8 },
    drafter = () => once(new Table(2, 101, target));
  const found = distribution(taskOf(target, drafter, 6, params));
  assert.ok(difference(found, plainly(target, params)) < 1e-5);
});

/* ---- planted mistakes are seen ---- */

const pointOf = (p, q, token) => q || p.map((_, i) => (i === token ? 1 : 0));
const rule = (methods) => () => Object.assign(new RejectionSampling(), methods),
  verify = RejectionSampling.prototype.verify;
const left = (change) => ({ rule: rule({ residual: change }) }),
  kept = (change) => ({ rule: rule({ accept: change }) });
const drawing = (draw) => ({ drafter: (draft) => Object.assign(new DraftModel(draft), { draw }) });

const MISTAKES = {
  from_target: left((p) => p),
  residual_swapped: left((p, q, x) => residual(pointOf(p, q, x), p, x)),
  point_kept: { ...left((p) => p), drafter: () => new Fixed() },
  ratio_swapped: kept((p, q, s) => (p > 0 ? s.accept(q, p) : [true, 0])),
  lenient: kept((p, q, s) => s.accept(1.1 * p, q)),
  row_shift: { rule: rule({ row: (rows, i) => rows[Math.min(i + 1, rows.length - 1)] }) },
  draft_bonus: {
    rule: rule({
      verify(proposal, rows, sampler) {
        const n = proposal.tokens.length;
        this.ownToken = (p, s, i) => s.categorical(n && i === n ? proposal.probs[n - 1] : p);
        return verify.call(this, proposal, rows, sampler);
      },
    }),
  },
  one_coin: {
    rule: rule({
      verify(proposal, rows, sampler) {
        this.passed = 1;
        return verify.call(this, proposal, rows, sampler);
      },
      accept(p, q, sampler) {
        const smallest = Math.min(this.passed, p / q),
          answer = sampler.accept(smallest, this.passed);
        this.passed = smallest;
        return answer;
      },
    }),
  },
  extra_bonus: {
    rule: rule({
      verify(proposal, rows, sampler) {
        const verdict = verify.call(this, proposal, rows, sampler),
          last = verdict.kind === "resampled" && verdict.accepted === proposal.tokens.length - 1;
        return last ? { ...verdict, extra: [sampler.categorical(rows[rows.length - 1])] } : verdict;
      },
    }),
  },
  late_residual: {
    k: 6,
    drafter: once,
    rule: rule({
      accept(p, q, sampler, i) {
        this.at = i;
        return sampler.accept(p, q);
      },
      residual(p, q, token) {
        return this.at < 4 ? residual(p, q, token) : p;
      },
    }),
  },
  argmax_draft: drawing((logits, params) => [argmax(logits), probabilities(logits, params)]),
  unwarped: {
    params: { temperature: 0.7 },
    target: (target) =>
      Object.assign(Object.create(target), {
        forward: (tokens, cache, rows) =>
          target.forward(tokens, cache, rows).map((row) => (rows > 1 ? row.map((one) => one * 0.7) : row)),
      }),
  },
};

for (const [name, { rule, drafter, target: changed, params: more, k = 2 }] of Object.entries(MISTAKES))
  test(`planted: ${name}`, () => {
    let most = 0;
    for (const seed of [1, 2, 3]) {
      const params = { ...USUAL, ...more, max_tokens: k + 2 },
        vocabulary = k > 2 ? 2 : 3,
        target = new Table(vocabulary, seed),
        draft = new Table(vocabulary, seed + 100, target),
        drafts = () => (drafter ? drafter(draft) : new DraftModel(draft)),
        wrong = distribution(taskOf(changed ? changed(target) : target, drafts, k, params, rule));
      most = Math.max(most, difference(wrong, plainly(target, params)));
      if (most > 2e-4) return;
    }
    assert.fail(`the texts' distribution is off by ${most} only`);
  });

/* ---- the rest ---- */

test("random numbers are Python's", () => {
  const of = (seed, skip) => {
    const source = Random.of(seed);
    for (let i = 0; i < skip; i++) source.random();
    return source.random();
  };
  assert.equal(of(0, 0), 0.8444218515250481);
  assert.equal(of(1, 1001), 0.13020153534647938);
  assert.equal(of(2 ** 31 - 1, 0), 0.3177580158172969);
  assert.equal(of(2 ** 40 + 5, 1), 0.2686044399723282);
  assert.equal(of(-5, 0), 0.15161255821044295); // random.Random(2**65 - 5): as sampling.py does
  assert.equal(of(-(2 ** 40) - 3, 0), 0.9663959710255184);
});

test("a draw never takes what has no probability", () => {
  const sampler = new RandomSampler(0);
  sampler.source.random = () => 1 - 2 ** -53;
  assert.equal(sampler.categorical(Float32Array.of(0.5, 0.5, 0)), 1);
  sampler.source.random = () => 0;
  assert.equal(sampler.categorical(Float32Array.of(0, 0.5, 0.5)), 1);
});

test("of equals the first comes first", () => {
  assert.deepEqual(highestIndices([1, 3, 3, 2], 3), [1, 2, 3]);
  assert.equal(argmax([1, 3, 3]), 1);
});

test("text is shown once it is whole, and never a part of a stop string", () => {
  const pieces = [[0xf0, 0x9f], [0x98, 0x80], [97, 69], [78], [68, 98]], // prettier-ignore
    stream = new TextStream((token) => Uint8Array.from(pieces[token]), ["END"]);
  assert.deepEqual(pieces.map((_, token) => stream.push(token)), ["", "😀", "a", "", ""]); // prettier-ignore
  assert.ok(stream.stopped && stream.flush() === "");
  const cut = new TextStream((token) => Uint8Array.from(pieces[token]), ["aEX"]);
  assert.equal(cut.push(2) + cut.push(0) + cut.flush(), "aE\uFFFD");
});

test("a text ends at its limit, its end token, a stop string, and the end of the context", () => {
  const target = new Table(2, 5),
    ended = (changes, more = {}) => {
      const made = taskOf(target, () => new Fixed(), 3, { ...USUAL, max_tokens: 9, ...changes })();
      return [...generate({ ...made, ...more })].pop();
    };
  assert.deepEqual([ended({}).reason, ended({}).tokens], ["length", 9]);
  assert.equal(ended({ ignore_end: false, max_tokens: 40 }).reason, "end");
  assert.equal(ended({ stop: ["a"], max_tokens: 40 }).reason, "stop");
  const short = Object.assign(Object.create(target), { context: 6 });
  assert.deepEqual([ended({}, { target: short }).reason, ended({}, { target: short }).tokens], ["context", 5]);
  assert.deepEqual([ended({ max_tokens: 0 }).reason, ended({ max_tokens: 0 }).text], ["length", ""]);
});

test("lanes take turns by their clocks", () => {
  const lane = (name, times) =>
    (function* () {
      for (const [cycle, at] of times.entries()) yield { event: "committed", lane: name, cycle, at };
    })();
  const order = [...interleave({ a: lane("a", [0, 1, 2]), b: lane("b", [5, 5.4, 5.8, 9]) })];
  assert.equal(order.map((one) => one.lane).join(""), "aabbbba");
});
