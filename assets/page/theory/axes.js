/* Draws the axes, marks and tables that the charts of the tab Theory share. */

import { html, createTable } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { clamp, niceStep, toFixed } from "#page/race/format.js";
import { range } from "#page/theory/format.js";

export const svgPath = (points, cls) =>
  svg("path", {
    d: "M" + points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L"),
    class: cls,
    fill: "none",
  });
export const svgDiamond = (x, y, cls) =>
  svg("path", { d: `M${x} ${y - 7}l7 7l-7 7l-7-7z`, class: cls });
export const svgDot = (x, y, r, cls) => svg("circle", { cx: x, cy: y, r, class: cls });

export const createBarCell = (share, strong) =>
  html(
    "td",
    { class: "sd-th-bar" },
    html("i", {
      style: `width:${(clamp(share, 0, 1) * 100).toFixed(1)}%`,
      class: strong ? "sd-th-strong" : null,
    }),
  );
/* Wider than a phone: it scrolls by itself, by keyboard too. */
export const createScrollTable = (heads, rows) =>
  html(
    "div",
    { class: "sd-th-scroll", tabindex: "0" },
    createTable("sd-th-table", Object.values(heads), rows),
  );

/* The axes of a chart: lines across it at [y, label, class], labels below it at [x, label, class], and its name. */
export function drawRows(A, marks) {
  for (const [y, label, cls] of marks)
    A.g.append(
      svgLine(A.left, y, A.left + A.wide, y, cls || "sd-grid"),
      svgText(A.left - 8, y + 4, label, "", "end"),
    );
}
export function drawTicks(A, marks, name) {
  for (const [x, label, cls] of marks)
    A.g.append(svgText(x, A.floor + 18, String(label), cls || "", "middle"));
  A.g.append(svgText(A.left + A.wide / 2, A.height - 4, name, "", "middle"));
}
/* About `count` round numbers from 0 on. */
export const stepsTo = (most, count) =>
  range(0, Math.floor(most / niceStep(most, count) + 1e-9)).map((i) => i * niceStep(most, count));

export function createAxes(W, room) {
  function frame(name, height, label, { left = 34, right = 14, top = 14, bottom = 44 } = {}) {
    const width = room[name];
    return {
      width,
      height,
      left,
      right,
      top,
      wide: width - left - right,
      tall: height - top - bottom,
      floor: height - bottom,
      g: svgRoot(width, height, label),
    };
  }

  /* Speed-ups upwards from 0, with what is slower than plain decoding shaded. */
  function speedAxis(A, most, aside) {
    const y = (value) => A.floor - (value / most) * A.tall,
      step = niceStep(most, 5);
    A.g.append(svgRect(A.left, y(1), A.wide, A.floor - y(1), { class: "sd-th-shade" }));
    drawRows(
      A,
      stepsTo(most, 5).map((v) => [y(v), toFixed(v, step < 1 ? 1 : 0) + "×"]),
    );
    A.g.append(svgLine(A.left, y(1), A.left + A.wide, y(1), "sd-th-one"));
    if (A.floor - y(1) > 26)
      A.g.append(
        svgText(
          aside ? A.left + A.wide - 10 : A.left + 10,
          A.floor - 9,
          W.slower,
          "",
          aside ? "end" : "start",
        ),
      );
    return y;
  }

  return { frame, speedAxis };
}
