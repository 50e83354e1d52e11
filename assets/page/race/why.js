/* Explains in one line why speculation can be faster, using how long the passes of this run took. */

import { speculativeOf, isServed, isOver, replayEnd } from "#page/race/run.js";
import { figuresAt, wasMachineBusy, outcomeOf } from "#page/race/measure.js";
import { formatDuration, toFixed } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";

export const MAX_CHEAP_PASSES = 1.35; // a check is called cheap if it takes at most this many times a plain pass

const ENGLISH_MODELS = /^(embedded|tuned|smollm2)(:|$)/, // these models were trained on little but English
  OTHER_SCRIPT = /[^\p{Script=Latin}\P{L}]/u; // a letter that is not Latin

/* Uses the times of a finished run, and before its end says only what is true of any: times so far are few, and another
 * program may disturb them. Returns "" for a server's run, or if the line would contradict the final sentence. */
export function explainSpeed(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run, /** @type {number} */ timeMs) {
  const speculative = speculativeOf(run);
  if (isServed(run)) return "";
  if (!isOver(run)) return texts.why.known;
  const figures = figuresAt(run, Infinity),
    plainPassMs = figures.plain.passes ? figures.plain.endMs / figures.plain.passes : 0; // as in v
  const checks = speculative.cycles
      .slice(0, figures.speculative.passes)
      .filter((cycle) => cycle.check && cycle.drafts.length),
    draftCount = checks.reduce((sum, cycle) => sum + cycle.drafts.length, 0);
  if (wasMachineBusy(run)) return timeMs < replayEnd(run) ? texts.why.known : "";
  if (timeMs >= replayEnd(run) && (outcomeOf(figures.speedup) || "faster") !== "faster") return "";
  if (!plainPassMs || !figures.speculative.checkMs) return texts.why.known;
  const values = {
    n: Math.round(draftCount / checks.length),
    one: formatDuration(plainPassMs),
    check: formatDuration(figures.speculative.checkMs / figures.speculative.checks),
    times: toFixed(Number(figures.v), 1),
  };
  const name = (figures.v || 0) <= MAX_CHEAP_PASSES ? "cheap" : "dear";
  return fillText(texts.why[values.n === 1 ? `${name}_one` : name], values);
}

/* Says how long a prompt in another script is for a model that was trained on little but English; "" for the others. */
export function noteOnScript(/** @type {PlayerTexts} */ texts, /** @type {Run} */ { header: { prompt = "", models } }) {
  return ENGLISH_MODELS.test(models?.family || "embedded") && OTHER_SCRIPT.test(prompt)
    ? fillText(texts.meta.english, { n: [...prompt].length, bytes: new TextEncoder().encode(prompt).length })
    : "";
}
