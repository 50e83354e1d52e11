/* The time axes of the timeline and of the curve of tokens. */

import { EPS, isOver, written, shownLanes } from "#page/race/run.js";
import { marksOf } from "#page/race/text.js";
import { text, line } from "#page/race/kit.js";

/**
 * Marks of an axis of milliseconds, as many as `count` in what is seen of it at once.
 * @param {any} g
 * @param {{ span: number, window?: number, x: (at: number) => number, width: number, y: number, top?: number | null,
 *   count: number }} axis
 */
export function axis(g, { span, window = span, x, width, y, top = null, count }) {
  marksOf(0, span, window, count).forEach(({ at, label }, i, all) => {
    const here = x(at);
    if (top != null) g.append(line(here, top, here, top + 4, "sd-ax"));
    g.append(
      text(
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
export function axisEnd(run, end) {
  const [A, ...others] = shownLanes(run),
    known = Math.max(end, A.end, ...others.map((lane) => lane.end), EPS);
  if (isOver(run)) return known;
  const wanted = (lane) =>
    (lane.started && lane.started.params && lane.started.params.max_tokens) || 0;
  return Math.max(
    known,
    ...others
      .filter((lane) => lane.cycles.length && !lane.finished)
      .map((lane) => (lane.end * wanted(lane)) / written(lane, lane.cycles.length)),
  );
}
