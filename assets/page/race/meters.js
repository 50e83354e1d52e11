/* Draws the speed-up and the acceptance rate up to the replay's current time, each with a small chart. */

import { EPS, speculativeOf, plainOf, isOver, wasStopped, isAtEnd, isServed } from "#page/race/run.js";
import { wasMachineBusy, figuresAt } from "#page/race/measure.js";
import { html, setProperty } from "#page/race/html.js";
import { svg, svgLine, svgText, svgRoot } from "#page/race/svg.js";
import { toFixed, formatTimes, clamp } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { timeAxisEnd } from "#page/race/axes.js";

export const MIN_TOKENS = 16; // a speed-up over fewer tokens is mostly noise
const LABELLED_PX = 40; // a chart of less height gets no labels
const MAX_POINTS = 240; // points in the line of a chart

/* Returns the speed-up so far; null before MIN_TOKENS tokens, or below 1 in a run that ended with a gain. */
export function speedupSoFar(/** @type {Run} */ run, /** @type {Figures} */ figures) {
  if (!figures.speedup || figures.speculative.written < MIN_TOKENS) return null;
  const gains = isOver(run) && (figuresAt(run, Infinity).speedup || 0) >= 1;
  return gains && figures.speedup < 1 ? null : figures.speedup;
}

/** Counts the passes of the target that speculation saved: plain decoding needs one pass per token.
 * @param {Figures} figures */
export const countSavedPasses = (figures) => figures.speculative.tokens - figures.speculative.passes;

/** @param {PlayerTexts} texts @param {HTMLElement} root @param {Parts} part @param {View} view
 * @param {(name: string, label: string) => Part} createTerm */
export function createMeters(texts, root, part, view, createTerm) {
  const labels = texts.figures,
    sizes = new Map();
  let points = /** @type {MeterPoint[]} */ ([]),
    pointsKey = "",
    lastPaint = /** @type {any} */ (null);
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) sizes.set(target, [contentRect.width, contentRect.height]);
    if (view.run && lastPaint) drawCharts(lastPaint);
  });

  /* Returns what the row of the speed-up shows: label, value, unit, and the key of the label's definition. */
  function speedRow(/** @type {Figures} */ figures) {
    const final = isOver(view.run) && isAtEnd(view) && !wasStopped(view.run),
      ratio = final ? figures.speedup : speedupSoFar(view.run, figures);
    const isOwn = !isServed(view.run), // of a live run its passes are the figure, from its start to after its end
      isUnsure = isOwn && (view.run.header.source === "live" || wasMachineBusy(view.run));
    if (!plainOf(view.run))
      return [labels.speedup, "–", isServed(view.run) ? texts.server.no_plain : labels.no_plain, "speedup"];
    if (final && ratio && !isUnsure) return [labels.speedup, formatTimes(ratio) + "×", "", "speedup"];
    if (ratio && !isUnsure) return [labels.so_far, formatTimes(ratio) + "×", "", "speedup"];
    if (!isOwn) return [labels.so_far, "–", "", "speedup"];
    return [
      labels.saved,
      String(countSavedPasses(figures)),
      fillText(labels.saved_of, {
        m: figures.speculative.tokens,
        k: figures.speculative.passes,
      }),
      "saved",
    ];
  }

  function alphaRow(/** @type {Figures} */ figures) {
    const judged = figures.speculative.judged
      ? fillText(figures.speculative.trees ? labels.levels : labels.judged, {
          a: figures.speculative.accepted,
          b: figures.speculative.judged,
        })
      : "";
    return [
      labels.alpha,
      figures.alpha == null ? "–" : toFixed(100 * figures.alpha, 0) + "%",
      figures.reported ? judged : texts.server.untold,
      "alpha",
    ];
  }

  function build() {
    observer.disconnect();
    part.figures.replaceChildren(
      ...["speedup", "alpha"].map((name) => {
        const chart = html("div", { class: "sd-chart sd-mini" }),
          tag = name === "speedup" ? html("span", { class: "sd-tag" }, texts.lossy) : null;
        observer.observe(chart);
        const row = html(
          "div",
          { class: name === "speedup" ? "sd-hero" : null },
          html("dt", {}, createTerm(name, ""), tag),
          html("dd", {}),
          html("dd", {}, chart),
        );
        return Object.assign(row, { chart });
      }),
    );
  }

  function paint(/** @type {Figures} */ figures, /** @type {number} */ replayEnd) {
    if (!part.figures.firstChild) build();
    [speedRow(figures), alphaRow(figures)].forEach(([label, value, unit, meaning], i) => {
      const [dt, dd] = /** @type {Iterable<Part>} */ (part.figures.children[i].children),
        term = /** @type {Part} */ (dt.firstChild);
      setProperty(term, "textContent", label);
      term.definition = texts.define[meaning];
      if (dd.painted !== (dd.painted = value + unit))
        dd.replaceChildren(value, ...(unit ? [html("small", {}, unit)] : []));
    });
    lastPaint = { figures, replayEnd };
    drawCharts(lastPaint);
  }

  function updatePoints() {
    const run = view.run,
      lanes = [speculativeOf(run), plainOf(run)].filter(Boolean);
    const key = [run.header.run, isOver(run), ...lanes.map((lane) => lane.cycles.length)].join();
    if (key === pointsKey) return;
    pointsKey = key;
    const ends = lanes.flatMap((lane) => lane.cycles.map((cycle) => cycle.endMs)).sort((a, b) => a - b),
      every = Math.ceil(ends.length / MAX_POINTS);
    points = ends
      .filter((_, i) => i % every === 0 || i === ends.length - 1)
      .map((endMs) => {
        const figures = figuresAt(run, endMs);
        return { endMs, speedup: speedupSoFar(run, figures), alpha: figures.alpha, saved: countSavedPasses(figures) };
      });
  }

  function drawCharts(/** @type {{ figures: Figures, replayEnd: number }} */ { figures, replayEnd }) {
    updatePoints();
    const name = speedRow(figures)[3] === "saved" ? "saved" : "speedup",
      highest = Math.max(2, ...points.map((point) => point[name] || 0)) * 1.12,
      [speed, alpha] = /** @type {Iterable<Part>} */ (part.figures.children);
    drawMeter(speed.chart, replayEnd, {
      name,
      top: highest,
      marks: name === "saved" ? [] : [[1, "1×"]],
      label: name === "saved" ? texts.charts.saved_aria : texts.charts.speed_aria,
    });
    drawMeter(alpha.chart, replayEnd, {
      name: "alpha",
      top: 1.08,
      marks: [
        [0.5, "50%"],
        [1, "100%"],
      ],
      label: texts.charts.alpha_aria,
    });
    alpha.hidden = !figures.reported && Boolean(speculativeOf(view.run).finished);
  }

  /** Draws one figure over time: a line up to the replay's current time, and a pale line after it. @param {Part} box
   * @param {number} replayEnd @param {MeterLook} look */
  function drawMeter(box, replayEnd, { name, top: highest, marks, label }) {
    const [width, height] = sizes.get(box) || [0, 0];
    if (!width || !height) return;
    const isLow = height < LABELLED_PX,
      left = isLow ? 2 : 40,
      right = 6,
      span = timeAxisEnd(view.run, replayEnd);
    const x = (/** @type {number} */ ms) => left + (ms / span) * (width - left - right),
      y = (/** @type {number} */ v) => height - 2 - (clamp(v, 0, highest) / highest) * (height - 6);
    const chart = svgRoot(width, height, label, svg("desc", {}, describe(name)));
    chart.append(svgLine(left, height - 1.5, width - right, height - 1.5, "sd-ax"));
    for (const [value, mark] of marks) {
      chart.append(svgLine(left, y(value), width - right, y(value), value === 1 ? "sd-dots" : "sd-grid"));
      if (!isLow) chart.append(svgText(left - 6, y(value) + 4, mark, "", "end"));
    }
    const seen = points.filter((point) => point.endMs <= view.timeMs + EPS);
    chart.append(
      svg("path", { d: path(points, name, x, y), class: "sd-ghost-line" }),
      svg("path", { d: path(seen, name, x, y), class: "sd-line-a" }),
      svgLine(x(Math.min(view.timeMs, span)), 2, x(Math.min(view.timeMs, span)), height - 2, "sd-now"),
    );
    const now = seen.at(-1);
    if (now && now[name] != null)
      chart.append(svg("circle", { cx: x(now.endMs), cy: y(now[name]), r: 3.5, class: "sd-dot-a" }));
    box.replaceChildren(chart);
  }

  /* Describes a chart to screen readers by its first, middle and last value. */
  function describe(/** @type {MeterLook["name"]} */ name) {
    const measured = points.filter((point) => point[name] != null),
      samples = [0, 0.5, 1].map((share) => measured[Math.round(share * (measured.length - 1))]);
    return [...new Set(samples)]
      .filter(Boolean)
      .map((point) => toFixed(Number(point[name])) + (name === "speedup" ? "×" : ""))
      .join(", ");
  }

  return paint;
}

/** Returns the path of a line through the points, with gaps where a point has no value. @param {MeterPoint[]} points
 * @param {MeterLook["name"]} name @param {Scale} x @param {Scale} y */
function path(points, name, x, y) {
  let d = "",
    command = "M";
  for (const point of points) {
    if (point[name] == null) {
      command = "M";
      continue;
    }
    d += command + x(point.endMs).toFixed(1) + " " + y(point[name]).toFixed(1);
    command = "L";
  }
  return d || "M0 0";
}
