/* Sums up a finished run: first what is true on any machine (passes, words), then what the clock said. Uses no DOM. */

import { countLostDrafts, speculativeOf, startedOf, plainOf, serverOf, SHARED_NOISE } from "#page/race/run.js";
import { figuresAt, wasMachineBusy, findDivergence } from "#page/race/measure.js";
import { fillText } from "#page/race/text.js";
import { formatDuration, toFixed } from "#page/race/format.js";

/* Returns the headline, the sentence on the clock ("" without a comparison), whether the machine was too busy for it,
 * whether the run was slower, and a bar for each lane with the name of its colour. The bars show the time per token, so
 * that their ratio is the speed-up at any lengths. */
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
    slowest = Math.max(...lanes.map(([, , totals]) => perToken(totals))),
    isEqualLength = lanes.every(([, , { tokens }]) => tokens === figures.speculative.tokens),
    busy = wasMachineBusy(run);
  return {
    headline: headlineOf(texts, run, figures),
    clock: figures.speedup ? clockOf(labels.clock, figures.speedup, busy) : "",
    busy,
    slower: !busy && Number(figures.speedup) < 0.98,
    rows: lanes.map(([name, lane, totals]) => ({
      name: texts.lane[name],
      fill: name === "plain" ? "line-2" : figures.speedup && figures.speedup < 1 ? "rejected" : "accepted",
      share: slowest ? perToken(totals) / slowest : 0,
      label: fillText(serverOf(lane) ? texts.server.bar : isEqualLength ? labels.bar : labels.bar_each, {
        passes: totals.passes,
        time: formatDuration(lane.endMs),
        each: formatDuration(perToken(totals)),
      }),
    })),
  };
}

/* Says how many passes there were and how many plain decoding needs for as many tokens: one for each. */
function headlineOf(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run, /** @type {Figures} */ figures) {
  const { written: n, passes: ks, tokens: kp } = figures.speculative,
    labels = texts.finish,
    values = { n, ks, kp, m: figures.plain.written };
  if (!plainOf(run)) return fillText(labels.alone, values);
  if (serverOf(speculativeOf(run))) return fillText(texts.server.title, values);
  const { params, rule, lossless } = startedOf(run),
    { at, compared } = findDivergence(run),
    isDrawn = params && params.temperature > 0 && rule !== SHARED_NOISE && lossless !== false && !countLostDrafts(run);
  const agreement = compared && at < 0 ? labels.words : isDrawn ? labels.odds : "";
  return fillText(ks < kp ? (ks === 1 ? labels.passes_one : labels.passes) : labels.none_saved, values) + agreement;
}

function clockOf(/** @type {PlayerTexts["finish"]["clock"]} */ labels, /** @type {number} */ ratio, busy = false) {
  const outcome = busy ? "busy" : ratio >= 1.02 ? "faster" : ratio < 0.98 ? "slower" : "even";
  return fillText(labels[outcome], { times: toFixed(ratio, ratio < 0.98 ? 2 : 1) });
}
