/* Tokens over time, a line for each lane. */

import { EPS, isOver, written, atEnd, shownLanes } from "#page/race/run.js";
import { duration, words, niceStep } from "#page/race/text.js";
import { s, text, line, svg } from "#page/race/kit.js";
import { axis, axisEnd } from "#page/race/axes.js";

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
export function curve(W, part, S) {
  function drawCurve(F, end) {
    const box = part.curve,
      width = S.room.curve,
      height = 224,
      left = 28,
      bottom = 26,
      [A, B, P] = shownLanes(S.run);
    if (!width) return;
    const tokens = (lane) => written(lane, lane.cycles.length),
      asked = B || A,
      wanted = (asked.started && asked.started.params && asked.started.params.max_tokens) || 0;
    const last = axisEnd(S.run, end),
      most = Math.max(4, ...shownLanes(S.run).map(tokens), isOver(S.run) ? 0 : wanted);
    const x = (v) => left + (v / last) * (width - left - 10),
      y = (n) => height - bottom - (n / most) * (height - bottom - 18),
      g = svg(
        width,
        height,
        W.charts.curve_aria,
        s(
          "desc",
          {},
          shownLanes(S.run)
            .map(
              (lane) =>
                `${W.lane[lane.name] || lane.name}: ` +
                words(W.lane.clock, { tokens: tokens(lane) }) +
                ", " +
                duration(lane.end),
            )
            .join("; "),
        ),
      );
    const step = niceStep(most, 4);
    for (let n = 0; n <= most + EPS; n += step)
      g.append(
        line(left, y(n), width, y(n), "sd-grid"),
        text(left - 6, y(n) + 4, String(n), "", "end"),
      );
    axis(g, { span: last, x, width, y: height - 8, count: S.room.gantt > 500 ? 9 : 5 });
    for (const [lane, cls] of [
      [B, "sd-line-b"],
      [P, "sd-line-c"],
      [A, "sd-line-a"],
    ])
      if (lane)
        g.append(
          s("path", { d: stairs(lane, last, x, y), class: "sd-ghost-line" }),
          s("path", { d: stairs(lane, S.t, x, y), class: cls }),
        );
    curveKey(g, width - 112, height - bottom - 6, B, P);
    if (B && !P && F.a.tokens + F.b.tokens && !atEnd(S)) nowLabels(g, F, x, y, width);
    box.replaceChildren(g);
  }

  /* The lines are told apart by a key, below them at the right: names beside them would run into the lines. */
  function curveKey(g, x, bottom, plain, peer) {
    const rows = [
      ["sd-line-a", W.charts.speculative],
      peer && ["sd-line-c", W.charts.peer],
      plain && ["sd-line-b", W.charts.plain],
    ].filter(Boolean);
    rows.forEach(([cls, name], i) => {
      const y = bottom - (rows.length - i) * 17 + 9;
      g.append(line(x, y, x + 24, y, cls), text(x + 31, y + 4, name));
    });
  }

  function stairs(lane, until, x, y) {
    let d = `M${x(0).toFixed(1)} ${y(written(lane, 0)).toFixed(1)}`,
      at = 0;
    lane.cycles.every((cycle, i) => {
      if (cycle.at > until + EPS) return false;
      d += `H${x(cycle.at).toFixed(1)}V${y(written(lane, i + 1)).toFixed(1)}`;
      at = cycle.at;
      return true;
    });
    return until > at && at < lane.end ? d + `H${x(Math.min(until, lane.end)).toFixed(1)}` : d;
  }

  function nowLabels(g, F, x, y, width) {
    const at = x(S.t),
      flip = at > width - 40,
      side = flip ? -9 : 9,
      anchor = flip ? "end" : "start",
      ya = y(F.a.written),
      yb = y(F.b.written),
      apart = Math.abs(ya - yb) < 14 ? 8 : 0,
      first = F.a.written >= F.b.written ? -1 : 1;
    g.append(
      line(at, ya, at, yb, "sd-mean"),
      s("circle", { cx: at, cy: ya, r: 3.5, class: "sd-dot-a" }),
      s("circle", { cx: at, cy: yb, r: 3.5, class: "sd-dot-b" }),
    );
    g.append(
      text(at + side, ya + 4 + first * apart, String(F.a.written), "sd-b", anchor),
      text(at + side, yb + 4 - first * apart, String(F.b.written), "", anchor),
    );
  }

  return drawCurve;
}
