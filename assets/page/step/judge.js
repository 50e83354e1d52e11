/* What decides: the verdict of every rule on a cycle, from its probabilities and coins, without a document.
 *
 * This is the rules' third form, beside the engine's loop and the audit. It shares no code with them, so that Node
 * can hold it against them. A cycle is one of `../race/run.js`. */

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
  DELTA = 0.3; // of typical acceptance, as in the engine
const typicalThreshold = ({ entropy }) => Math.min(EPSILON, DELTA * Math.exp(-entropy));

/* What a question needs and this cycle does not hold, as the name of a sentence; null if it can be answered. */
export function whatIsMissing(cycle, rule) {
  const { drafts, tree } = cycle;
  if (cycle.served) return "server";
  if (rule === REJECTION_SAMPLING) return null;
  if (rule === BLOCK_VERIFICATION)
    return tree ? "tree" : drafts.every((draft) => chanceOfBlock(draft) != null) ? null : "block";
  const heads = drafts.filter((draft) => firstSiblingOf(drafts, draft) === draft);
  if (rule === SAMPLE_AND_MATCH || rule === SHARED_NOISE)
    return heads.every((draft) => draft.target && draft.target.sample) ? null : "sample";
  return heads.every((draft) => draft.target && draft.target.top.length) ? null : "laws";
}

const chanceOfBlock = (draft) => draft.h ?? draft.block;

/* The first of the guesses for a place: its `target` is the target's own row there. */
export const firstSiblingOf = (drafts, draft) => drafts.find((one) => one.parent === draft.parent);

/* The target's probability of each draft before any sibling was tried. Only a coin takes a sibling off; of one that was
 * drawn the event tells it. */
function rawProbabilities(drafts) {
  const remaining = {};
  return drafts.map((draft) => {
    if (draft.q < 1) return draft.row ?? draft.p;
    const rest = remaining[draft.parent] ?? 1;
    if (draft.u != null) remaining[draft.parent] = rest * (1 - draft.p);
    return draft.p * rest;
  });
}

/* A coin for a draft that nobody judged: always the same one, so that a question has one answer. */
function coinFor(number, node) {
  let x = (number * 0x9e3779b1 + node * 0x85ebca6b + 1) | 0;
  x = Math.imul(x ^ (x >>> 15), x | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}

/* The cycle under another rule, with a shorter draft or with other coins: `choice` is { rule, k, coins }, `ran`
 * the rule of its run. */
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

/* Walks down the tree: `keep` tries one guess after another, in a place where `tip` is the last token kept. Where all
 * guesses are looked at `together`, none is rejected before the one that is kept. */
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

/* Kept while u·q < p. A rejected sibling that is a point mass leaves the others its share of p; behind those that were
 * drawn the event tells what is left. */
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

/* What the target drew is kept: in this very run, where `known` tells it by place, else with the noise of the place. */
function bySamples(draws) {
  return (drafts, rawProbabilities) =>
    keepWanted(drafts, rawProbabilities, (draft) => draws[draft.parent] || firstSiblingOf(drafts, draft).target.sample);
}

/* The target's own draws in a run of sample and match, by place: they are the text. */
function targetDraws(cycle) {
  const kept = cycle.drafts.filter((draft) => draft.status === "accepted"),
    entries = kept.map((draft) => [draft.parent, draft]);
  if (cycle.targetToken)
    entries.push([kept.length ? cycle.drafts.indexOf(kept[kept.length - 1]) : -1, cycle.targetToken]);
  return Object.fromEntries(entries.map(([place, { token, piece }]) => [place, { token, piece }]));
}

const byFirstChoice = (drafts, rawProbabilities) =>
  keepWanted(drafts, rawProbabilities, (draft) => firstSiblingOf(drafts, draft).target.top[0]);

/* A place keeps the one token that is wanted there. */
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

/* The deepest path whose every token the target finds plausible. */
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

/* The longest block whose coin falls below its h; the coins are tossed from the end. */
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

/* Of the prefixes of a chain, the empty one first. */
function weightsOf(drafts) {
  const weights = [1];
  drafts.forEach((draft, i) => weights.push(Math.min(1, (weights[i] * draft.p) / draft.q)));
  return weights;
}

/* What really happened, in the same shape. */
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

/* Accepted, rejected, discarded, or out: never drafted. */
export function statesOf(cycle, verdict) {
  const { path, trials, tip, rule, k } = verdict;
  return cycle.drafts.map((draft, node) => {
    if (draft.level > k) return "out";
    if (path.includes(node)) return "acc";
    return (rule === BLOCK_VERIFICATION ? draft.parent === tip : node in trials) ? "rej" : "dis";
  });
}
