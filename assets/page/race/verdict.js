/* Sums up a finished run by its passes and words, then by its clock; a loss by its clock first. Uses no DOM. */

import {
  countLostDrafts,
  speculativeOf,
  startedOf,
  plainOf,
  serverOf,
  isServed,
  wasStopped,
  SHARED_NOISE,
} from "#page/race/run.js";
import { figuresAt, wasMachineBusy, findDivergence, outcomeOf } from "#page/race/measure.js";
import { fillText } from "#page/race/text.js";
import { formatDuration, formatTimes } from "#page/race/format.js";
import { MIN_TOKENS } from "#page/race/meters.js";

/* Says whether speculation was ahead when a run was stopped: "slower", "even" or "faster"; "" unless both lanes were
 * still running and had written enough. */
export function placeAtStop(/** @type {Run} */ run, /** @type {Figures} */ figures) {
  const { speculative, plain, speedup } = figures;
  const isComparable =
    wasStopped(run) &&
    !isServed(run) &&
    !isInactive(run, figures) &&
    ![speculativeOf(run), plainOf(run)].some((lane) => lane?.finished) &&
    Math.min(speculative.written, plain.written) >= MIN_TOKENS;
  return isComparable ? outcomeOf(speedup) : "";
}

/* Returns the headline, the sentence on the clock (or ""), whether the machine was too busy for it, and a bar for each
 * lane with the name of its colour. The bars show the time per token, so that their ratio is the speed-up. */
export function summarize(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run) {
  const figures = figuresAt(run, Infinity),
    lanes = /** @type {["speculative" | "plain", Lane, LaneFigures][]} */ (
      [
        ["speculative", speculativeOf(run), figures.speculative],
        ["plain", plainOf(run), figures.plain],
      ].filter(([, lane]) => lane)
    ),
    labels = texts.finish;
  const perToken = (/** @type {LaneFigures} */ { endMs, tokens }) => endMs / Math.max(1, tokens),
    place = placeAtStop(run, figures),
    largest = Math.max(...lanes.map(([, , totals]) => perToken(totals))),
    isEqualLength = lanes.every(([, , { tokens }]) => tokens === figures.speculative.tokens),
    busy = wasMachineBusy(run),
    inactive = isInactive(run, figures),
    outcome = inactive ? "" : outcomeOf(figures.speedup),
    isLoss = outcome === "slower",
    fill = inactive || outcome === "even" || (isLoss && busy) ? "line-2" : isLoss ? "rejected" : "accepted";
  const barTextOf = (/** @type {Lane} */ lane) =>
    serverOf(lane) ? texts.server.bar : isEqualLength ? labels.bar : labels.bar_each;
  return {
    headline: headlineOf(texts, run, figures, place),
    clock:
      place || !outcome || (isLoss && !busy)
        ? ""
        : fillText(labels.clock[busy ? "busy" : outcome], {
            times: formatTimes(Number(figures.speedup)),
          }),
    busy,
    rows: lanes.map(([name, lane, totals]) => ({
      name: texts.lane[name],
      fill: name === "plain" ? "line-2" : fill,
      share: largest ? perToken(totals) / largest : 0,
      label: fillText(barTextOf(lane), {
        passes: totals.passes,
        time: formatDuration(lane.endMs),
        each: formatDuration(perToken(totals)),
      }),
    })),
  };
}

/* Returns whether nothing was drafted, so that both lanes did the same work. */
export const isInactive = (
  /** @type {Run} */ run,
  /** @type {Figures} */ { speculative: { drafted, passes, tokens } },
) => plainOf(run) && !serverOf(speculativeOf(run)) && !drafted && passes === tokens;

/** @param {PlayerTexts} texts @param {Run} run @param {Figures} figures @param {string} place */
function headlineOf(texts, run, figures, place) {
  const { written: n, passes: ks, tokens: kp } = figures.speculative,
    labels = texts.finish,
    outcome = outcomeOf(figures.speedup),
    values = { n, ks, kp, m: figures.plain.written, times: formatTimes(1 / Number(figures.speedup)) };
  if (place) return fillText(labels.stopped, { ...values, place: texts.say.place[place] });
  if (!plainOf(run)) return fillText(labels.alone, values);
  if (isInactive(run, figures)) return fillText(labels.inactive, values);
  const beforePasses = outcome === "slower" ? fillText(labels.slower, values) : "";
  if (serverOf(speculativeOf(run))) return beforePasses || fillText(texts.server.title, values);
  const passes = fillText(ks < kp ? (ks === 1 ? labels.passes_one : labels.passes) : labels.none_saved, values);
  if (beforePasses) return beforePasses + labels.then + passes;
  const { params, rule, lossless } = startedOf(run),
    { at, compared } = findDivergence(run),
    isDrawn = params && params.temperature > 0 && rule !== SHARED_NOISE && lossless !== false && !countLostDrafts(run);
  return passes + (compared && at < 0 ? labels.words : isDrawn ? labels.odds : "");
}
