/* Computes the verdict of every rule on a cycle, from its probabilities and coins; uses no DOM.
 *
 * The engine's loop and the audit implement the rules, too. This file shares no code with them, so that a test in
 * Node can compare the three. Cycles are those of `../race/log.js`. */

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
const typicalThreshold = ({ entropy }) => Math.min(EPSILON, DELTA * Math.exp(-entropy));

/* Returns what the cycle lacks to be judged by `rule`, as a key of the texts `lacks`; null if it lacks nothing. */
export function whatIsMissing(cycle, rule) {
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

const chanceOfBlock = (draft) => draft.h ?? draft.block;

/* Returns the first of a draft's siblings. Its `target` describes the target's distribution after their parent. */
export const firstSiblingOf = (drafts, draft) => drafts.find((one) => one.parent === draft.parent);

/* Returns the target's probability of each draft before any sibling was tried. For a draft drawn from q the event holds
 * it; for a point mass it is p times the share that is left after earlier siblings that were judged by a coin. */
function rawProbabilities(drafts) {
  const remaining = {};
  return drafts.map((draft) => {
    if (draft.q < 1) return draft.row ?? draft.p;
    const rest = remaining[draft.parent] ?? 1;
    if (draft.u != null) remaining[draft.parent] = rest * (1 - draft.p);
    return draft.p * rest;
  });
}

/* Returns the coin of a draft that was not judged; it is always the same, so that a question has one answer. */
function coinFor(number, node) {
  let x = (number * 0x9e3779b1 + node * 0x85ebca6b + 1) | 0;
  x = Math.imul(x ^ (x >>> 15), x | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}

/* Judges the cycle under another rule, with a shorter draft or with other coins: `choice` is { rule, k, coins },
 * `ranRule` the rule of its run. */
export function judge(cycle, choice, ranRule) {
  const k = choice.k ?? Infinity,
    drafts = cycle.drafts.map((draft) => (draft.level <= k ? draft : { ...draft, parent: null })),
    raw = rawProbabilities(cycle.drafts);
  const coin = (node) =>
    choice.coins && choice.coins[node] != null ? choice.coins[node] : (drafts[node].u ?? coinFor(cycle.number, node));
  const draws = ranRule === SAMPLE_AND_MATCH ? targetDraws(cycle) : {},
    bySample = bySamples(choice.rule === SAMPLE_AND_MATCH ? draws : {});
  const verify = {
    [REJECTION_SAMPLING]: byCoins,
    [SAMPLE_AND_MATCH]: bySample,
    [SHARED_NOISE]: bySample,
    [BLOCK_VERIFICATION]: byBlock,
    [TYPICAL_ACCEPTANCE]: byThreshold,
    [FIRST_CHOICE]: byFirstChoice,
  }[choice.rule];
  return { rule: choice.rule, k, ...verify(drafts, raw, coin) };
}

const selectNodes = (drafts, test) => drafts.flatMap((one, node) => (test(one) ? [node] : []));

/* Walks down the tree: `keep` tries one sibling after another below `tip`, the last accepted token. With `atOnce` all
 * siblings are judged together, so none is rejected before the accepted one. */
function descend(drafts, keep, atOnce = false) {
  const path = [],
    order = [],
    trials = {};
  for (let tip = -1; ;) {
    const tried = [],
      siblings = selectNodes(drafts, (one) => one.parent === tip),
      kept = siblings.find((node) => {
        trials[node] = keep(drafts[node], node, [...tried]);
        tried.push(node);
        return trials[node].accepted;
      });
    if (atOnce && kept !== undefined) for (const node of tried.splice(0, tried.length - 1)) delete trials[node];
    order.push(...tried);
    if (kept === undefined) return { path, order, trials, tip };
    path.push((tip = kept));
  }
}

/* Accepts a draft if u·q < p. After rejected siblings, the p of a point mass is divided by the probability that they
 * left; for a draft drawn from q the event holds this p as `behind`. */
function byCoins(drafts, rawProbabilities, coin) {
  return descend(drafts, (draft, node, tried) => {
    const rest = tried.reduce((remaining, one) => remaining - rawProbabilities[one], 1),
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

/* Accepts the token that the target sampled after the parent: `draws[parent]`, else the `sample` of the event. */
function bySamples(draws) {
  return (drafts, rawProbabilities) =>
    keepWanted(drafts, rawProbabilities, (draft) => draws[draft.parent] || firstSiblingOf(drafts, draft).target.sample);
}

/* Returns the tokens that the target sampled in a run of sample and match, by parent. They are the run's text. */
function targetDraws(cycle) {
  const kept = cycle.drafts.filter((draft) => draft.status === "accepted"),
    entries = kept.map((draft) => [draft.parent, draft]);
  if (cycle.targetToken)
    entries.push([kept.length ? cycle.drafts.indexOf(kept[kept.length - 1]) : -1, cycle.targetToken]);
  return Object.fromEntries(entries.map(([place, { token, piece }]) => [place, { token, piece }]));
}

const byFirstChoice = (drafts, rawProbabilities) =>
  keepWanted(drafts, rawProbabilities, (draft) => firstSiblingOf(drafts, draft).target.top[0]);

/* Accepts at each place the one token that `sampleOf` names. */
function keepWanted(drafts, rawProbabilities, sampleOf) {
  const keep = (draft, node) => {
    const sample = sampleOf(draft);
    return {
      p: rawProbabilities[node],
      q: draft.q,
      sample,
      accepted: sample.token === draft.token,
    };
  };
  return descend(drafts, keep, true);
}

/* Accepts the deepest path on which each token passes the target's threshold. */
function byThreshold(drafts, rawProbabilities) {
  const limits = drafts.map((draft) => typicalThreshold(firstSiblingOf(drafts, draft).target)),
    plausible = new Set([-1]),
    level = (node) => (node < 0 ? 0 : drafts[node].level);
  drafts.forEach((draft, node) => {
    if (plausible.has(draft.parent) && rawProbabilities[node] >= limits[node]) plausible.add(node);
  });
  const deepest = [...plausible].reduce((best, node) => (level(node) > level(best) ? node : best), -1),
    kept = new Set();
  for (let node = deepest; node >= 0; node = drafts[node].parent) kept.add(node);
  return descend(
    drafts,
    ({ q }, node) => ({
      p: rawProbabilities[node],
      q,
      limit: limits[node],
      accepted: kept.has(node),
    }),
    true,
  );
}

/* Accepts the longest block whose coin falls below its h; the coins are tossed from the end. */
function byBlock(drafts, rawProbabilities, coin) {
  const weights = weightsOf(drafts),
    order = [],
    trials = {},
    last = drafts.filter((draft) => draft.parent !== null).length - 1;
  let kept = last + 1;
  for (; kept > 0; kept--) {
    const node = kept - 1,
      { p, q } = drafts[node],
      h = node === last ? weights[kept] : chanceOfBlock(drafts[node]),
      u = coin(node);
    trials[node] = { p, q, u, h, chance: h, accepted: u < h };
    order.push(node);
    if (u < h) break;
  }
  const path = Array.from({ length: kept }, (_, node) => node);
  return { path, order, trials, tip: kept - 1, weight: weights[kept] };
}

/* Returns the weights of a chain's prefixes, the empty one first. */
function weightsOf(drafts) {
  const weights = [1];
  drafts.forEach((draft, i) => weights.push(Math.min(1, (weights[i] * draft.p) / draft.q)));
  return weights;
}

/* Returns the recorded verdict in the shape of `judge`. */
export function recordedVerdict(cycle, rule) {
  const { drafts } = cycle,
    accepted = (draft) => draft.status === "accepted",
    trials = {};
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
    trials[node] = { p, q, accepted: rule === BLOCK_VERIFICATION ? u < h : accepted(draft) };
    if (rule === BLOCK_VERIFICATION) Object.assign(trials[node], { u, h, chance: h });
    else if (u != null) Object.assign(trials[node], { u, chance: Math.min(1, p / q) });
    else if (rule === SAMPLE_AND_MATCH) trials[node].sample = targetDraws(cycle)[draft.parent];
    else if (rule === SHARED_NOISE && distribution) trials[node].sample = distribution.sample;
    else if (rule === TYPICAL_ACCEPTANCE && distribution) trials[node].limit = typicalThreshold(distribution);
  }
  return { rule, k: Infinity, path, order, trials, tip, weight: weightsOf(drafts)[path.length] };
}

/* Returns the state of each draft: accepted, rejected, discarded, or "out", which means not drafted. */
export function statesOf(cycle, verdict) {
  const { path, trials, tip, rule, k } = verdict;
  return cycle.drafts.map((draft, node) => {
    if (draft.level > k) return "out";
    if (path.includes(node)) return "acc";
    return (rule === BLOCK_VERIFICATION ? draft.parent === tip : node in trials) ? "rej" : "dis";
  });
}
