/* Reads p and q at a draft's position from a trace; chooses the rows of a chart. */

import { BLOCK_VERIFICATION } from "#page/race/run.js";

export const MAX_ROWS = 6; // tokens with a row of their own in a chart; all others share one row

/* Returns the factor of p in a residual. */
export const prefixWeightOf = (/** @type {Verdict} */ { rule, weight }) => (rule === BLOCK_VERIFICATION ? weight : 1);

/* Returns `complete`, the tokens with both p and q; `partial`, the tokens with only p or only q; and `rest`, the sums
 * of p, q and min(p, q) over all tokens that are not complete. Each p, save in `partial`, is multiplied by `weight`. */
export function distributionsOf(/** @type {Draft} */ draft, weight = 1) {
  const target = draft.target,
    drafter = draft.draft,
    rows = new Map(),
    listSameTokens = Boolean(target && target.sample); // older traces have no samples, and their lists differ
  const addRow = (/** @type {number} */ token, /** @type {string} */ piece) =>
    rows.has(token) ||
    rows.set(token, {
      token,
      piece,
      p: probabilityIn(target, token, listSameTokens),
      q: probabilityIn(drafter, token, listSameTokens),
    });
  addRow(draft.token, draft.piece);
  for (const distribution of [target, drafter])
    for (const entry of distribution ? distribution.top : []) addRow(entry.token, entry.piece);
  Object.assign(rows.get(draft.token), { p: draft.p, q: draft.q });
  const allRows = [...rows.values()],
    complete = allRows.filter((row) => row.p != null && row.q != null),
    sum = (/** @type {Row[]} */ list, /** @type {(row: Row) => number} */ of) =>
      list.reduce((total, row) => total + of(row), 0);
  for (const row of complete) row.p *= weight;
  const rest = {
    p: Math.max(0, weight - sum(complete, (row) => row.p)),
    q: Math.max(0, 1 - sum(complete, (row) => row.q)),
    min: 0,
  };
  const beta = weight === 1 && draft.overlap != null ? draft.overlap : null,
    overlap = sum(complete, (row) => Math.min(row.p, row.q));
  rest.min = beta == null ? Math.min(rest.p, rest.q) : Math.min(rest.p, rest.q, Math.max(0, beta - overlap));
  return {
    complete,
    partial: allRows.filter((row) => !complete.includes(row)),
    rest,
    overlap: overlap + rest.min,
    surplus: sum(complete, (row) => Math.max(0, row.p - row.q)) + rest.p - rest.min,
  };
}

/** @param {Distribution|null|undefined} distribution @param {number} token @param {boolean} listSameTokens */
function probabilityIn(distribution, token, listSameTokens) {
  const entry = distribution && distribution.top.find((candidate) => candidate.token === token);
  return entry ? entry.prob : distribution && (listSameTokens || distribution.rest < 1e-6) ? 0 : null;
}

/* Beside a test, nothing is drawn yet. */
export const rankByTarget = (/** @type {Row} */ { p }) => p || 0;
export const rankDrawnFirst =
  (/** @type {Candidate | null} */ drawn) =>
  (/** @type {Row} */ { token, p, q }) =>
    drawn && token === drawn.token ? 2 : Math.max(p || 0, q || 0);

/** Chooses the rows of a chart: the drafted token, the others that `rank` puts highest, and the rest.
 * @param {Draft} draft @param {(row: Row) => number} rank @param {number} [weight] @param {number} [most] */
export function rowsToShow(draft, rank, weight = 1, most = MAX_ROWS) {
  const distributions = distributionsOf(draft, weight),
    allRows = [...distributions.complete, ...distributions.partial],
    first = allRows.find((row) => row.token === draft.token);
  const others = allRows.filter((row) => row !== first).sort((a, b) => rank(b) - rank(a)),
    shown = [first, ...others.slice(0, most - 1)],
    folded = others.slice(most - 1).filter((row) => row.p != null && row.q != null);
  const rest = { ...distributions.rest };
  for (const row of folded) {
    rest.p += row.p;
    rest.q += row.q;
    rest.min += Math.min(row.p, row.q);
  }
  for (const row of shown)
    if (row.p == null || row.q == null) {
      rest.p -= row.p || 0;
      rest.q -= row.q || 0;
    }
  return { shown, rest: { ...rest, p: Math.max(0, rest.p), q: Math.max(0, rest.q) } };
}
