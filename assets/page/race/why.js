/* Why it can be faster, in one line, with what a pass cost in this run. */

import {
  speculative,
  plain,
  isServed,
  isOver,
  figuresAt,
  horizon,
  isBusy,
} from "#page/race/run.js";
import { duration, words, fixed } from "#page/race/text.js";

const CHEAP = 1.35; // passes: up to here a check costs about what one token costs

const ENGLISH = /^(embedded|tuned|smollm2)(:|$)/, // the models that know no other language
  OTHER = /[^\p{Script=Latin}\P{L}]/u; // a letter of another script

/* Of a whole run its totals; of one that goes on, what is known so far. A run that lost says why in its verdict;
 * a figure of a busy machine is not explained. */
export function why(W, run, t) {
  const A = speculative(run);
  if (isServed(run)) return "";
  if (
    ENGLISH.test((run.header.models || {}).family || "embedded") &&
    OTHER.test(run.header.prompt || "")
  )
    return W.why.english;
  const F = figuresAt(run, isOver(run) ? Infinity : t),
    one = plain(run) && F.b.k ? F.b.passing / F.b.k : 0;
  const checks = A.cycles.slice(0, F.a.k).filter((cycle) => cycle.check && cycle.drafts.length),
    guesses = checks.reduce((sum, cycle) => sum + cycle.drafts.length, 0);
  if (isOver(run) && t >= horizon(run) && F.speedup && (F.speedup < 0.98 || isBusy(run))) return "";
  if (!one || !F.a.checking) return W.why.known;
  const values = {
    n: Math.round(guesses / checks.length),
    one: duration(one),
    check: duration(F.a.checking / F.a.checks),
    times: fixed(F.v, 1),
  };
  const name = (F.v || 0) <= CHEAP ? "cheap" : "dear";
  return words(W.why[values.n === 1 ? `${name}_one` : name], values);
}
