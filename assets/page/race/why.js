/* Why it can be faster, in one line, with what a pass cost in this run. */

import { speculativeOf, plainOf, isServed, isOver, replayEnd } from "#page/race/run.js";
import { figuresAt, wasMachineBusy } from "#page/race/measure.js";
import { formatDuration, toFixed } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";

const CHEAP = 1.35; // passes: up to here a check costs about what one token costs

const ENGLISH = /^(embedded|tuned|smollm2)(:|$)/, // the models that know no other language
  OTHER = /[^\p{Script=Latin}\P{L}]/u; // a letter of another script

/* Of a whole run its totals; of one that goes on, what is known so far. A run that lost says why in its verdict;
 * a figure of a busy machine is not explained. */
export function explainSpeed(W, run, t) {
  const A = speculativeOf(run);
  if (isServed(run)) return "";
  if (
    ENGLISH.test((run.header.models || {}).family || "embedded") &&
    OTHER.test(run.header.prompt || "")
  )
    return W.why.english;
  const F = figuresAt(run, isOver(run) ? Infinity : t),
    one = plainOf(run) && F.b.k ? F.b.passing / F.b.k : 0;
  const checks = A.cycles.slice(0, F.a.k).filter((cycle) => cycle.check && cycle.drafts.length),
    guesses = checks.reduce((sum, cycle) => sum + cycle.drafts.length, 0);
  if (isOver(run) && t >= replayEnd(run) && F.speedup && (F.speedup < 0.98 || wasMachineBusy(run)))
    return "";
  if (!one || !F.a.checking) return W.why.known;
  const values = {
    n: Math.round(guesses / checks.length),
    one: formatDuration(one),
    check: formatDuration(F.a.checking / F.a.checks),
    times: toFixed(F.v, 1),
  };
  return fillText((F.v || 0) <= CHEAP ? W.why.cheap : W.why.dear, values);
}
