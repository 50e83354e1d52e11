/* The two figures that follow the playhead, each with its small chart: the speed-up and the acceptance rate. */

import {
  EPS,
  speculativeOf,
  plainOf,
  isOver,
  wasStopped,
  isAtEnd,
  isServed,
} from "#page/race/run.js";
import { wasMachineBusy, figuresAt } from "#page/race/measure.js";
import { html, setProperty } from "#page/race/html.js";
import { svg, svgLine, svgText, svgRoot } from "#page/race/svg.js";
import { toFixed, clamp } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { timeAxisEnd } from "#page/race/axes.js";

export const MIN_TOKENS = 16; // tokens; a ratio of fewer says nothing
const SPARK = 48; // px: below this height a chart is a line alone
const MOST = 240; // points of a line

/* The ratio so far, once it means something. On the way to a gain, a loss is the noise of the first tokens. */
export function speedupSoFar(run, F) {
  if (!F.speedup || F.a.written < MIN_TOKENS) return null;
  const gains = isOver(run) && (figuresAt(run, Infinity).speedup || 0) >= 1;
  return gains && F.speedup < 1 ? null : F.speedup;
}

/* Passes of the target that plain decoding would have needed beyond those that there were. */
export const countSavedPasses = (F) => F.a.tokens - F.a.k;

export function createMeters(W, root, part, S, term) {
  const U = W.figures,
    rooms = new Map();
  let points = [],
    known = "",
    last = /** @type {any} */ (null);
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries)
      rooms.set(target, [contentRect.width, contentRect.height]);
    if (S.run && last) drawCharts(last);
  });

  /* Its name, its value, and what is said beside it. */
  function speedRow(F) {
    const final = isOver(S.run) && isAtEnd(S) && !wasStopped(S.run),
      ratio = final ? F.speedup : speedupSoFar(S.run, F);
    const busy = final && wasMachineBusy(S.run),
      passes = fillText(U.saved_unit, { n: countSavedPasses(F) });
    root.toggleAttribute("data-busy", busy);
    if (!plainOf(S.run))
      return [U.speedup, "–", isServed(S.run) ? W.server.no_plain : U.no_plain, "speedup"];
    if (busy) return [U.busy, toFixed(F.speedup) + "×", "", "speedup"];
    if (final && ratio) return [U.speedup, "", "", "speedup"]; // the scene says it, large
    if (ratio) return [U.so_far, toFixed(ratio, 1) + "×", isServed(S.run) ? "" : passes, "speedup"];
    if (isServed(S.run)) return [U.so_far, "–", "", "speedup"];
    return [
      U.saved,
      String(countSavedPasses(F)),
      fillText(U.saved_of, { n: F.a.written, k: F.a.k }),
      "saved",
    ];
  }

  function alphaRow(F) {
    const judged = F.a.judged
      ? fillText(F.a.trees ? U.levels : U.judged, { a: F.a.accepted, b: F.a.judged })
      : "";
    return [
      U.alpha,
      F.alpha == null ? "–" : toFixed(100 * F.alpha, 0) + " %",
      F.told ? judged : W.server.untold,
      "alpha",
    ];
  }

  function build() {
    sizes.disconnect();
    part.figures.replaceChildren(
      ...["speedup", "alpha"].map((name) => {
        const chart = html("div", { class: "sd-chart sd-mini" }),
          tag = name === "speedup" ? html("span", { class: "sd-tag" }, W.lossy) : null;
        sizes.observe(chart);
        const row = html(
          "div",
          { class: name === "speedup" ? "sd-hero" : null },
          html("dt", {}, term(name, ""), tag),
          html("dd", {}),
          html("dd", {}, chart),
        );
        return Object.assign(row, { chart });
      }),
    );
  }

  function paint(F, end) {
    if (!part.figures.firstChild) build();
    [speedRow(F), alphaRow(F)].forEach(([label, value, unit, meaning], i) => {
      const [dt, dd] = part.figures.children[i].children;
      setProperty(dt.firstChild, "textContent", label);
      dt.firstChild.definition = W.define[meaning];
      if (dd.told !== (dd.told = value + unit))
        dd.replaceChildren(value, ...(unit ? [html("small", {}, unit)] : []));
    });
    last = { F, end };
    drawCharts(last);
  }

  /* Both figures at every end of a cycle: once a run, not once a drawing. */
  function courses() {
    const run = S.run,
      lanes = [speculativeOf(run), plainOf(run)].filter(Boolean);
    const key = [run.header.run, isOver(run), ...lanes.map((lane) => lane.cycles.length)].join();
    if (key === known) return;
    known = key;
    const ends = lanes
        .flatMap((lane) => lane.cycles.map((cycle) => cycle.at))
        .sort((a, b) => a - b),
      every = Math.ceil(ends.length / MOST);
    points = ends
      .filter((_, i) => i % every === 0 || i === ends.length - 1)
      .map((at) => {
        const F = figuresAt(run, at);
        return { at, speedup: speedupSoFar(run, F), alpha: F.alpha };
      });
  }

  function drawCharts({ F, end }) {
    courses();
    const top = Math.max(2, ...points.map((one) => one.speedup || 0)) * 1.12,
      [speed, alpha] = part.figures.children;
    drawOne(speed.chart, end, {
      name: "speedup",
      top,
      marks: [[1, "1×"]],
      label: W.charts.speed_aria,
      blank: speedRow(F)[3] === "saved", // another figure stands above it
    });
    drawOne(alpha.chart, end, {
      name: "alpha",
      top: 1.08,
      marks: [
        [0.5, "50 %"],
        [1, "100 %"],
      ],
      label: W.charts.alpha_aria,
    });
    alpha.hidden = !F.told && Boolean(speculativeOf(S.run).finished);
  }

  /* One course against the lanes' clock: what has been is a line, what comes is pale. */
  function drawOne(box, end, { name, top, marks, label, blank = false }) {
    const [width, height] = rooms.get(box) || [0, 0];
    if (!width || !height) return;
    const spark = height < SPARK,
      left = spark ? 2 : 40,
      right = 6,
      span = timeAxisEnd(S.run, end);
    const x = (t) => left + (t / span) * (width - left - right),
      y = (v) => height - 2 - (clamp(v, 0, top) / top) * (height - 6);
    const g = svgRoot(width, height, label, svg("desc", {}, told(name)));
    g.append(svgLine(left, height - 1.5, width - right, height - 1.5, "sd-ax"));
    if (blank) return box.replaceChildren(g);
    for (const [at, mark] of marks) {
      g.append(svgLine(left, y(at), width - right, y(at), at === 1 ? "sd-dots" : "sd-grid"));
      if (!spark) g.append(svgText(left - 6, y(at) + 4, mark, "", "end"));
    }
    const seen = points.filter((one) => one.at <= S.t + EPS);
    g.append(
      svg("path", { d: path(points, name, x, y), class: "sd-ghost-line" }),
      svg("path", { d: path(seen, name, x, y), class: "sd-line-a" }),
      svgLine(x(Math.min(S.t, span)), 2, x(Math.min(S.t, span)), height - 2, "sd-now"),
    );
    const now = seen.at(-1);
    if (now && now[name] != null)
      g.append(svg("circle", { cx: x(now.at), cy: y(now[name]), r: 3.5, class: "sd-dot-a" }));
    box.replaceChildren(g);
  }

  /* For who cannot see it: its beginning, its middle and its end. */
  function told(name) {
    const known = points.filter((one) => one[name] != null),
      some = [0, 0.5, 1].map((share) => known[Math.round(share * (known.length - 1))]);
    return [...new Set(some)]
      .filter(Boolean)
      .map((one) => toFixed(one[name]) + (name === "speedup" ? "×" : ""))
      .join(", ");
  }

  return paint;
}

/* A line through the points that have a value; it breaks where there is none. */
function path(points, name, x, y) {
  let d = "",
    pen = "M";
  for (const one of points) {
    if (one[name] == null) {
      pen = "M";
      continue;
    }
    d += pen + x(one.at).toFixed(1) + " " + y(one[name]).toFixed(1);
    pen = "L";
  }
  return d || "M0 0";
}
