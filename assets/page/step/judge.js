/* Computes the verdict of a rule on a cycle, from its probabilities and coins (random numbers); uses no DOM.
 *
 * It shares no code with the engine's loop and the audit, so that a test can compare the three. */

import { BLOCK_VERIFICATION, SHARED_NOISE } from "#page/race/run.js";

export const REJECTION_SAMPLING = "rejection sampling",
  SAMPLE_AND_MATCH = "sample and match",
  TYPICAL_ACCEPTANCE = "typical acceptance",
  FIRST_CHOICE = "first choice";
export const RULES = [
  REJECTION_SAMPLING,
  SAMPLE_AND_MATCH,
  SHARED_NOISE,
  BLOCK_VERIFICATION,
  TYPICAL_ACCEPTANCE,
  FIRST_CHOICE,
];
const EPSILON = 0.09,
  DELTA = 0.3; // constants of typical acceptance, as in the engine
const typicalThreshold = (/** @type {Distribution} */ { entropy }) => Math.min(EPSILON, DELTA * Math.exp(-entropy));

/* Returns why `rule` cannot judge the cycle, as a key of the texts `lacks`, or null if it can. */
export function whatIsMissing(/** @type {Cycle} */ cycle, /** @type {string} */ rule) {
  const { drafts, tree } = cycle;
  if (cycle.served) return "server";
  if (rule === REJECTION_SAMPLING) return null;
  if (rule === BLOCK_VERIFICATION)
    return tree ? "tree" : drafts.every((draft) => chanceOfBlock(draft) != null) ? null : "block";
  const firstSiblings = drafts.filter((draft) => firstSiblingOf(drafts, draft) === draft);
  if (rule === SAMPLE_AND_MATCH || rule === SHARED_NOISE)
    return firstSiblings.every((draft) => draft.target && draft.target.sample) ? null : "sample";
  return firstSiblings.every((draft) => draft.target && draft.target.top.length) ? null : "laws";
}

const chanceOfBlock = (/** @type {Draft} */ draft) => draft.h ?? draft.block;

/** Returns the first child of the draft's parent. Its `target` is the target's distribution, not a residual.
 * @param {Draft[]} drafts @param {Draft} draft */
export const firstSiblingOf = (drafts, draft) =>
  /** @type {Draft & { target: Distribution }} */ (drafts.find(({ parent }) => parent === draft.parent));

/* Returns each draft's probability in the target's distribution. Where q is a point mass, the log holds the draft's
 * probability in the residual after the siblings tried before. */
function findRawProbabilities(/** @type {Draft[]} */ drafts) {
  const remaining = /** @type {Record<number, number>} */ ({});
  return drafts.map((draft) => {
    if (draft.q < 1) return draft.row ?? draft.p;
    const rest = remaining[draft.parent] ?? 1;
    if (draft.u != null) remaining[draft.parent] = rest * (1 - draft.p);
    return draft.p * rest;
  });
}

/* Returns a coin for a draft that has none, always the same. */
function coinFor(/** @type {number} */ number, /** @type {number} */ node) {
  let x = (number * 0x9e3779b1 + node * 0x85ebca6b + 1) | 0;
  x = Math.imul(x ^ (x >>> 15), x | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}

/* Judges the cycle under another rule, with a shorter draft or with other coins. `choice` is { rule, k, coins };
 * `ranRule` is the rule of the cycle's run. */
export function judge(/** @type {Cycle} */ cycle, /** @type {Choice} */ choice, /** @type {string} */ ranRule) {
  const k = choice.k ?? Infinity,
    drafts = cycle.drafts.map((draft) => (draft.level <= k ? draft : { ...draft, parent: null })),
    raw = findRawProbabilities(cycle.drafts);
  const coin = (/** @type {number} */ node) =>
    choice.coins && choice.coins[node] != null ? choice.coins[node] : (drafts[node].u ?? coinFor(cycle.number, node));
  const draws = ranRule === SAMPLE_AND_MATCH ? targetDraws(cycle) : {},
    bySample = createSampleRule(choice.rule === SAMPLE_AND_MATCH ? draws : {});
  const verify = /** @type {Record<string, (drafts: any[], raw: number[], coin: Coin) => any>} */ ({
    [REJECTION_SAMPLING]: byCoins,
    [SAMPLE_AND_MATCH]: bySample,
    [SHARED_NOISE]: bySample,
    [BLOCK_VERIFICATION]: byBlock,
    [TYPICAL_ACCEPTANCE]: byThreshold,
    [FIRST_CHOICE]: byFirstChoice,
  })[String(choice.rule)];
  return { rule: choice.rule, k, ...verify(drafts, raw, coin) };
}

/** @param {Draft[]} drafts @param {(draft: Draft) => boolean} test */
const selectNodes = (drafts, test) => drafts.flatMap((draft, node) => (test(draft) ? [node] : []));

/** Walks down the tree. Below `tip`, the last accepted token, tries siblings in order until `accept` accepts one. With
 * `atOnce` the rule judges all siblings together, so siblings before the accepted one do not count as rejected.
 * @param {Draft[]} drafts @param {(draft: Draft, node: number, tried: number[]) => Trial} accept
 * @param {any} [atOnce] */
function descend(drafts, accept, atOnce = false) {
  const path = [],
    order = /** @type {number[]} */ ([]),
    trials = /** @type {Record<number, Trial>} */ ({});
  for (let tip = -1; ;) {
    const tried = /** @type {number[]} */ ([]),
      siblings = selectNodes(drafts, (draft) => draft.parent === tip),
      accepted = siblings.find((node) => {
        trials[node] = accept(drafts[node], node, [...tried]);
        tried.push(node);
        return trials[node].accepted;
      });
    if (atOnce && accepted !== undefined) for (const node of tried.splice(0, tried.length - 1)) delete trials[node];
    order.push(...tried);
    if (accepted === undefined) return { path, order, trials, tip };
    path.push((tip = accepted));
  }
}

/* Accepts a draft if u·q < p. After rejected siblings, p is the draft's probability in the residual. */
function byCoins(/** @type {Draft[]} */ drafts, /** @type {number[]} */ rawProbabilities, /** @type {Coin} */ coin) {
  return descend(drafts, (draft, node, tried) => {
    const rest = tried.reduce((mass, sibling) => mass - rawProbabilities[sibling], 1),
      u = coin(node);
    const p = !tried.length
      ? rawProbabilities[node]
      : draft.q < 1
        ? (draft.behind ?? draft.p)
        : rest > 0
          ? Math.min(1, rawProbabilities[node] / rest)
          : rawProbabilities[node];
    return { p, q: draft.q, u, chance: Math.min(1, p / draft.q), accepted: u * draft.q < p };
  });
}

/* Returns a rule that accepts a draft if the target sampled the same token there. */
function createSampleRule(/** @type {Record<number, { token: number; piece: string }>} */ draws) {
  return (/** @type {Draft[]} */ drafts, /** @type {number[]} */ rawProbabilities) =>
    acceptOnly(drafts, rawProbabilities, (draft) => draws[draft.parent] || firstSiblingOf(drafts, draft).target.sample);
}

/* Returns the target's samples by parent: in sample and match, the committed tokens. */
function targetDraws(/** @type {Cycle} */ cycle) {
  const accepted = cycle.drafts.filter((draft) => draft.status === "accepted"),
    entries = accepted.map(
      (draft) => /** @type {[number, { token: number, piece: string }]} */ ([draft.parent, draft]),
    );
  if (cycle.targetToken)
    entries.push([accepted.length ? cycle.drafts.indexOf(accepted[accepted.length - 1]) : -1, cycle.targetToken]);
  return Object.fromEntries(entries.map(([parent, { token, piece }]) => [parent, { token, piece }]));
}

const byFirstChoice = (/** @type {Draft[]} */ drafts, /** @type {number[]} */ rawProbabilities) =>
  acceptOnly(drafts, rawProbabilities, (draft) => firstSiblingOf(drafts, draft).target.top[0]);

/** Accepts at each position only the token that `sampleOf` returns. @param {Draft[]} drafts
 * @param {number[]} rawProbabilities @param {(draft: Draft) => { token: number; piece: string }} sampleOf */
function acceptOnly(drafts, rawProbabilities, sampleOf) {
  const accept = (/** @type {Draft} */ draft, /** @type {number} */ node) => {
    const sample = sampleOf(draft);
    return {
      p: rawProbabilities[node],
      q: draft.q,
      sample,
      accepted: sample.token === draft.token,
    };
  };
  return descend(drafts, accept, true);
}

/* Accepts the deepest path on which each token's probability reaches the threshold. */
function byThreshold(/** @type {Draft[]} */ drafts, /** @type {number[]} */ rawProbabilities) {
  const limits = drafts.map((draft) => typicalThreshold(firstSiblingOf(drafts, draft).target)),
    plausible = new Set([-1]),
    level = (/** @type {number} */ node) => (node < 0 ? 0 : drafts[node].level);
  drafts.forEach((draft, node) => {
    if (plausible.has(draft.parent) && rawProbabilities[node] >= limits[node]) plausible.add(node);
  });
  const deepest = [...plausible].reduce((best, node) => (level(node) > level(best) ? node : best), -1),
    accepted = new Set();
  for (let node = deepest; node >= 0; node = drafts[node].parent) accepted.add(node);
  return descend(
    drafts,
    ({ q }, node) => ({
      p: rawProbabilities[node],
      q,
      limit: limits[node],
      accepted: accepted.has(node),
    }),
    true,
  );
}

/* Accepts the longest block (prefix) whose coin is below its chance h, from the longest down. */
function byBlock(/** @type {Draft[]} */ drafts, /** @type {number[]} */ rawProbabilities, /** @type {Coin} */ coin) {
  const weights = weightsOf(drafts),
    order = /** @type {number[]} */ ([]),
    trials = /** @type {Record<number, Trial>} */ ({}),
    last = drafts.filter((draft) => draft.parent !== null).length - 1;
  let blockLength = last + 1;
  for (; blockLength > 0; blockLength--) {
    const node = blockLength - 1,
      { p, q } = drafts[node],
      h = node === last ? weights[blockLength] : Number(chanceOfBlock(drafts[node])),
      u = coin(node);
    trials[node] = { p, q, u, h, chance: h, accepted: u < h };
    order.push(node);
    if (u < h) break;
  }
  const path = Array.from({ length: blockLength }, (_, node) => node);
  return { path, order, trials, tip: blockLength - 1, weight: weights[blockLength] };
}

/* Returns block verification's weights of a chain's prefixes, from the empty one on. */
function weightsOf(/** @type {Draft[]} */ drafts) {
  const weights = [1];
  drafts.forEach((draft, i) => weights.push(Math.min(1, (weights[i] * draft.p) / draft.q)));
  return weights;
}

/* Returns the recorded verdict in the form that `judge` returns. */
export function recordedVerdict(/** @type {Cycle} */ cycle, /** @type {string} */ rule) {
  const { drafts } = cycle,
    accepted = (/** @type {Draft} */ draft) => draft.status === "accepted",
    trials = /** @type {Record<number, Trial>} */ ({});
  const path = selectNodes(drafts, accepted),
    tip = path.length ? path[path.length - 1] : -1;
  const order =
    rule === BLOCK_VERIFICATION
      ? selectNodes(drafts, (draft) => draft.u != null).reverse()
      : selectNodes(drafts, (draft) => draft.status !== "discarded").sort(
          (a, b) => drafts[a].level - drafts[b].level || a - b,
        );
  for (const node of order) {
    const draft = drafts[node],
      { p, q, u, h } = draft,
      distribution = firstSiblingOf(drafts, draft).target;
    trials[node] = { p, q, accepted: rule === BLOCK_VERIFICATION ? Number(u) < Number(h) : accepted(draft) };
    if (rule === BLOCK_VERIFICATION) Object.assign(trials[node], { u, h, chance: h });
    else if (u != null) Object.assign(trials[node], { u, chance: Math.min(1, p / q) });
    else if (rule === SAMPLE_AND_MATCH) trials[node].sample = targetDraws(cycle)[draft.parent];
    else if (rule === SHARED_NOISE && distribution) trials[node].sample = distribution.sample;
    else if (rule === TYPICAL_ACCEPTANCE && distribution) trials[node].limit = typicalThreshold(distribution);
  }
  return { rule, k: Infinity, path, order, trials, tip, weight: weightsOf(drafts)[path.length] };
}

/** Returns each draft's state: "accepted", "rejected", "discarded", or "out" if it is beyond K. @returns {State[]} */
export function statesOf(/** @type {Cycle} */ cycle, /** @type {Verdict} */ verdict) {
  const { path, trials, tip, rule, k } = verdict;
  return cycle.drafts.map((draft, node) => {
    if (draft.level > k) return "out";
    if (path.includes(node)) return "accepted";
    return (rule === BLOCK_VERIFICATION ? draft.parent === tip : node in trials) ? "rejected" : "discarded";
  });
}
