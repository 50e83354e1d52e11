/* The time axes of the timeline and of the curve of tokens. */

import { EPS, isOver, lanesOf } from "#page/race/run.js";
import { countTokens } from "#page/race/measure.js";
import { ticksOf } from "#page/race/format.js";
import { svgText, svgLine } from "#page/race/svg.js";

/**
 * Marks of an axis of milliseconds, as many as `count` in what is seen of it at once.
 * @param {any} g
 * @param {{ span: number, window?: number, x: (at: number) => number, width: number, y: number, top?: number | null,
 *   count: number }} drawTimeAxis
 */
export function drawTimeAxis(g, { span, window = span, x, width, y, top = null, count }) {
  ticksOf(0, span, window, count).forEach(({ at, label }, i, all) => {
    const here = x(at);
    if (top != null) g.append(svgLine(here, top, here, top + 4, "sd-ax"));
    g.append(
      svgText(
        here,
        y,
        label + (i === all.length - 1 || top != null ? " ms" : ""),
        "",
        here < 8 ? "start" : here > width - 26 ? "end" : "middle",
      ),
    );
  });
}

/* The whole time axis; while a run goes on, as long as it will probably be. */
export function timeAxisEnd(run, end) {
  const [A, ...others] = lanesOf(run),
    known = Math.max(end, A.end, ...others.map((lane) => lane.end), EPS);
  if (isOver(run)) return known;
  const wanted = (lane) =>
    (lane.started && lane.started.params && lane.started.params.max_tokens) || 0;
  return Math.max(
    known,
    ...others
      .filter((lane) => lane.cycles.length && !lane.finished)
      .map((lane) => (lane.end * wanted(lane)) / countTokens(lane, lane.cycles.length)),
  );
}
