/* What the charts and tables of this page are made of. `room` holds the widths of the charts, by name. */

import { h, s, text, line, rect, svg, table } from "#page/race/kit.js";
import { fixed, clamp, niceStep, duration } from "#page/race/text.js";

export const times = (x, digits = 2) => fixed(x, digits) + "×";
export const byId = (list, id) => list.find((one) => one.id === id);
export const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
export const milliseconds = (seconds) => duration(seconds * 1000);
export const gigabytes = (bytes) =>
  bytes >= 1e13
    ? fixed(bytes / 1e12, 1) + " TB"
    : fixed(bytes / 1e9, bytes >= 1e11 ? 0 : bytes >= 1e9 ? 1 : 2) + " GB";
export const path = (points, cls) =>
  s("path", {
    d: "M" + points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L"),
    class: cls,
    fill: "none",
  });
export const diamond = (x, y, cls) => s("path", { d: `M${x} ${y - 7}l7 7l-7 7l-7-7z`, class: cls });
export const dot = (x, y, r, cls) => s("circle", { cx: x, cy: y, r, class: cls });

export const barCell = (share, strong) =>
  h(
    "td",
    { class: "sd-th-bar" },
    h("i", {
      style: `width:${(clamp(share, 0, 1) * 100).toFixed(1)}%`,
      class: strong ? "sd-th-strong" : null,
    }),
  );
/* Wider than a phone: it scrolls by itself, by keyboard too. */
export const plainTable = (heads, rows) =>
  h(
    "div",
    { class: "sd-th-scroll", tabindex: "0" },
    table("sd-th-table", Object.values(heads), rows),
  );

/* The axes of a chart: lines across it at [y, label, class], labels below it at [x, label, class], and its name. */
export function rows(A, marks) {
  for (const [y, label, cls] of marks)
    A.g.append(
      line(A.left, y, A.left + A.wide, y, cls || "sd-grid"),
      text(A.left - 8, y + 4, label, "", "end"),
    );
}
export function ticks(A, marks, name) {
  for (const [x, label, cls] of marks)
    A.g.append(text(x, A.floor + 18, String(label), cls || "", "middle"));
  A.g.append(text(A.left + A.wide / 2, A.height - 4, name, "", "middle"));
}
/* About `count` round numbers from 0 on. */
export const stepsTo = (most, count) =>
  range(0, Math.floor(most / niceStep(most, count) + 1e-9)).map((i) => i * niceStep(most, count));

export function axes(W, room) {
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
      g: svg(width, height, label),
    };
  }

  /* Speed-ups upwards from 0, with what is slower than plain decoding shaded. */
  function speedAxis(A, most, aside) {
    const y = (value) => A.floor - (value / most) * A.tall,
      step = niceStep(most, 5);
    A.g.append(rect(A.left, y(1), A.wide, A.floor - y(1), { class: "sd-th-shade" }));
    rows(
      A,
      stepsTo(most, 5).map((v) => [y(v), fixed(v, step < 1 ? 1 : 0) + "×"]),
    );
    A.g.append(line(A.left, y(1), A.left + A.wide, y(1), "sd-th-one"));
    if (A.floor - y(1) > 26)
      A.g.append(
        text(
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
