/* Draws the axes, marks and tables of the tab's charts. */

import { html, createTable } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { niceStep, toFixed } from "#page/race/format.js";
import { range } from "#page/theory/format.js";

export const svgPath = (/** @type {number[][]} */ points, /** @type {string} */ cls) =>
  svg("path", {
    d: "M" + points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L"),
    class: cls,
    fill: "none",
  });
/** @param {number} x @param {number} y @param {string} cls */
export const svgDiamond = (x, y, cls) => svg("path", { d: `M${x} ${y - 7}l7 7l-7 7l-7-7z`, class: cls });
/** @param {number} x @param {number} y @param {number} r @param {string} cls */
export const svgDot = (x, y, r, cls) => svg("circle", { cx: x, cy: y, r, class: cls });

export const createScrollTable = (/** @type {Record<string, string>} */ heads, /** @type {Child} */ rows) =>
  html("div", { class: "sd-th-scroll", tabindex: "0" }, createTable("sd-th-table", Object.values(heads), rows));

/* `drawRows` draws lines at marks [y, label, class]; `drawTicks`, labels below at [x, label, class]. */
export function drawRows(/** @type {Frame} */ frame, /** @type {any[][]} */ marks) {
  for (const [y, label, cls] of marks)
    frame.chart.append(
      svgLine(frame.left, y, frame.left + frame.plotWidth, y, cls || "sd-grid"),
      svgText(frame.left - 8, y + 4, label, "", "end"),
    );
}
/** @param {Frame} frame @param {any[][]} marks @param {string} title */
export function drawTicks(frame, marks, title) {
  for (const [x, label, cls] of marks)
    frame.chart.append(svgText(x, frame.floor + 18, String(label), cls || "", "middle"));
  frame.chart.append(svgText(frame.left + frame.plotWidth / 2, frame.height - 4, title, "", "middle"));
}
/* Returns about `count` round numbers from 0 to `highest`. */
export const stepsTo = (/** @type {number} */ highest, /** @type {number} */ count) =>
  range(0, Math.floor(highest / niceStep(highest, count) + 1e-9)).map((i) => i * niceStep(highest, count));

export function createAxes(/** @type {TheoryTexts} */ texts, /** @type {Record<string, number>} */ widths) {
  /** @param {string} name @param {number} height @param {string} label
   * @param {Partial<Record<"left" | "right" | "top" | "bottom", number>>} [options] */
  function createFrame(name, height, label, { left = 34, right = 14, top = 14, bottom = 44 } = {}) {
    const width = widths[name];
    return {
      width,
      height,
      left,
      right,
      top,
      plotWidth: width - left - right,
      plotHeight: height - top - bottom,
      floor: height - bottom,
      chart: svgRoot(width, height, label),
    };
  }

  /* Draws an axis of speed-ups and shades those below 1. Returns the function that maps a speed-up to y. */
  function speedAxis(/** @type {Frame} */ frame, /** @type {number} */ highest, /** @type {boolean} */ alignRight) {
    const y = (/** @type {number} */ value) => frame.floor - (value / highest) * frame.plotHeight,
      step = niceStep(highest, 5);
    frame.chart.append(svgRect(frame.left, y(1), frame.plotWidth, frame.floor - y(1), { class: "sd-th-shade" }));
    drawRows(
      frame,
      stepsTo(highest, 5).map((value) => [y(value), toFixed(value, step < 1 ? 1 : 0) + "×"]),
    );
    frame.chart.append(svgLine(frame.left, y(1), frame.left + frame.plotWidth, y(1), "sd-th-one"));
    if (frame.floor - y(1) > 26)
      frame.chart.append(
        svgText(
          alignRight ? frame.left + frame.plotWidth - 10 : frame.left + 10,
          frame.floor - 9,
          texts.slower,
          "",
          alignRight ? "end" : "start",
        ),
      );
    return y;
  }

  return { createFrame, speedAxis };
}
