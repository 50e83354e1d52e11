/* Tokens over time, a line for each lane. */

import { EPS, isOver, isAtEnd, lanesOf } from "#page/race/run.js";
import { countTokens } from "#page/race/measure.js";
import { formatDuration, niceStep } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { svg, svgText, svgLine, svgRoot } from "#page/race/svg.js";
import { drawTimeAxis, timeAxisEnd } from "#page/race/axes.js";

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
export function createCurve(W, part, S) {
  function drawCurve(F, end) {
    const box = part.curve,
      width = S.room.curve,
      height = 224,
      left = 28,
      bottom = 26,
      [A, B, P] = lanesOf(S.run);
    if (!width) return;
    const tokens = (lane) => countTokens(lane, lane.cycles.length),
      asked = B || A,
      wanted = (asked.started && asked.started.params && asked.started.params.max_tokens) || 0;
    const last = timeAxisEnd(S.run, end),
      most = Math.max(4, ...lanesOf(S.run).map(tokens), isOver(S.run) ? 0 : wanted);
    const x = (v) => left + (v / last) * (width - left - 10),
      y = (n) => height - bottom - (n / most) * (height - bottom - 18),
      g = svgRoot(
        width,
        height,
        W.charts.curve_aria,
        svg(
          "desc",
          {},
          lanesOf(S.run)
            .map(
              (lane) =>
                `${W.lane[lane.name] || lane.name}: ` +
                fillText(W.lane.clock, { tokens: tokens(lane) }) +
                ", " +
                formatDuration(lane.end),
            )
            .join("; "),
        ),
      );
    const step = niceStep(most, 4);
    for (let n = 0; n <= most + EPS; n += step)
      g.append(
        svgLine(left, y(n), width, y(n), "sd-grid"),
        svgText(left - 6, y(n) + 4, String(n), "", "end"),
      );
    drawTimeAxis(g, { span: last, x, width, y: height - 8, count: S.room.gantt > 500 ? 9 : 5 });
    for (const [lane, cls] of [
      [B, "sd-line-b"],
      [P, "sd-line-c"],
      [A, "sd-line-a"],
    ])
      if (lane)
        g.append(
          svg("path", { d: stairs(lane, last, x, y), class: "sd-ghost-line" }),
          svg("path", { d: stairs(lane, S.t, x, y), class: cls }),
        );
    curveKey(g, width - 112, height - bottom - 6, B, P);
    if (B && !P && F.a.tokens + F.b.tokens && !isAtEnd(S)) nowLabels(g, F, x, y, width);
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
      g.append(svgLine(x, y, x + 24, y, cls), svgText(x + 31, y + 4, name));
    });
  }

  function stairs(lane, until, x, y) {
    let d = `M${x(0).toFixed(1)} ${y(countTokens(lane, 0)).toFixed(1)}`,
      at = 0;
    lane.cycles.every((cycle, i) => {
      if (cycle.at > until + EPS) return false;
      d += `H${x(cycle.at).toFixed(1)}V${y(countTokens(lane, i + 1)).toFixed(1)}`;
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
      svgLine(at, ya, at, yb, "sd-mean"),
      svg("circle", { cx: at, cy: ya, r: 3.5, class: "sd-dot-a" }),
      svg("circle", { cx: at, cy: yb, r: 3.5, class: "sd-dot-b" }),
    );
    g.append(
      svgText(at + side, ya + 4 + first * apart, String(F.a.written), "sd-b", anchor),
      svgText(at + side, yb + 4 - first * apart, String(F.b.written), "", anchor),
    );
  }

  return drawCurve;
}
