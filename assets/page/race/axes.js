/* Draws the time axes of the timeline and of the curve of tokens. */

import { EPS, isOver, lanesOf } from "#page/race/run.js";
import { countTokens } from "#page/race/measure.js";
import { ticksOf } from "#page/race/format.js";
import { svgText, svgLine } from "#page/race/svg.js";

/**
 * Appends the ticks of a time axis to `chart`. The axis is `span` ms long. Only `window` ms of it are visible at once;
 * these get about `count` ticks. If `top` is set, each tick also gets a short line. Returns the labels.
 * @param {any} chart @param {{ span: number, window?: number, x: (at: number) => number, width: number, y: number,
 *   top?: number | null, count: number }} axis
 */
export function drawTimeAxis(chart, { span, window = span, x, width, y, top = null, count }) {
  return ticksOf(0, span, window, count).flatMap(({ at, label }, i, ticks) => {
    const tickX = x(at);
    if (top != null) chart.append(svgLine(tickX, top, tickX, top + 4, "sd-ax"));
    if (i && tickX > width - 26 && tickX < 64 + x(ticks[i - 1].at)) return []; // it would overlap the one before
    const text = svgText(
      tickX,
      y,
      label + (i === ticks.length - 1 || top != null ? " ms" : ""),
      "",
      tickX < 8 ? "start" : tickX > width - 26 ? "end" : "middle",
    );
    chart.append(text);
    return [text];
  });
}

/* Returns the end of the time axis in ms. Until the run is over, estimates when plain lane and peer will end. */
export function timeAxisEnd(/** @type {Run} */ run, /** @type {number} */ end) {
  const [speculative, ...others] = lanesOf(run),
    endMs = Math.max(end, speculative.endMs, ...others.map((lane) => lane.endMs), EPS);
  if (isOver(run)) return endMs;
  /** @param {Lane} lane */
  const maxTokens = (lane) => (lane.started && lane.started.params && lane.started.params.max_tokens) || 0;
  return Math.max(
    endMs,
    ...others
      .filter((lane) => lane.cycles.length && !lane.finished)
      .map((lane) => (lane.endMs * maxTokens(lane)) / countTokens(lane, lane.cycles.length)),
  );
}
