/* Draws how the number of written tokens grows over time, one line per lane. */

import { EPS, isOver, lanesOf } from "#page/race/run.js";
import { countTokens } from "#page/race/measure.js";
import { formatDuration, niceStep } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { svg, svgText, svgLine, svgRoot } from "#page/race/svg.js";
import { drawTimeAxis, timeAxisEnd } from "#page/race/axes.js";

export function createCurve(/** @type {PlayerTexts} */ texts, /** @type {Parts} */ part, /** @type {View} */ view) {
  function drawCurve(/** @type {number} */ end) {
    const box = part.curve,
      width = view.widths.curve,
      height = 224,
      left = 28,
      bottom = 26,
      [speculative, plain, peer] = lanesOf(view.run);
    if (!width) return;
    const tokensOf = (/** @type {Lane} */ lane) => countTokens(lane, lane.cycles.length),
      anyLane = plain || speculative,
      limit = (anyLane.started && anyLane.started.params && anyLane.started.params.max_tokens) || 0;
    const endMs = timeAxisEnd(view.run, end),
      maxTokens = Math.max(4, ...lanesOf(view.run).map(tokensOf), isOver(view.run) ? 0 : limit);
    const x = (/** @type {number} */ ms) => left + (ms / endMs) * (width - left - 10),
      y = (/** @type {number} */ tokens) => height - bottom - (tokens / maxTokens) * (height - bottom - 18),
      chart = svgRoot(
        width,
        height,
        texts.charts.curve_aria,
        svg(
          "desc",
          {},
          lanesOf(view.run)
            .map(
              (lane) =>
                `${texts.lane[lane.name] || lane.name}: ` +
                fillText(texts.lane.clock, { tokens: tokensOf(lane) }) +
                ", " +
                formatDuration(lane.endMs),
            )
            .join("; "),
        ),
      );
    const step = niceStep(maxTokens, 4);
    for (let tokens = 0; tokens <= maxTokens + EPS; tokens += step)
      chart.append(
        svgLine(left, y(tokens), width, y(tokens), "sd-grid"),
        svgText(left - 6, y(tokens) + 4, String(tokens), "", "end"),
      );
    drawTimeAxis(chart, {
      span: endMs,
      x,
      width,
      y: height - 8,
      count: width > 500 ? 9 : 5,
    });
    for (const [lane, cls] of /** @type {[Lane | undefined, string][]} */ ([
      [plain, "sd-line-b"],
      [peer, "sd-line-c"],
      [speculative, "sd-line-a"],
    ]))
      if (lane)
        chart.append(
          svg("path", { d: stairPath(lane, endMs, x, y), class: "sd-ghost-line" }),
          svg("path", { d: stairPath(lane, view.timeMs, x, y), class: cls }),
        );
    drawLegend(chart, width - 112, height - bottom - 6, Boolean(plain), Boolean(peer));
    box.replaceChildren(chart);
  }

  /** Draws the legend at the lower right, because lane names beside the lines would overlap the lines.
   * @param {Element} chart @param {number} lineX @param {number} bottomY @param {boolean} plain
   * @param {boolean} peer */
  function drawLegend(chart, lineX, bottomY, plain, peer) {
    const rows = [
      ["sd-line-a", texts.charts.speculative],
      ...(peer ? [["sd-line-c", texts.charts.peer]] : []),
      ...(plain ? [["sd-line-b", texts.charts.plain]] : []),
    ];
    rows.forEach(([cls, name], i) => {
      const rowY = bottomY - (rows.length - i) * 17 + 9;
      chart.append(svgLine(lineX, rowY, lineX + 24, rowY, cls), svgText(lineX + 31, rowY + 4, name));
    });
  }

  /** @param {Lane} lane @param {number} until @param {Scale} x @param {Scale} y */
  function stairPath(lane, until, x, y) {
    let d = `M${x(0).toFixed(1)} ${y(countTokens(lane, 0)).toFixed(1)}`,
      lastMs = 0;
    lane.cycles.every((cycle, i) => {
      if (cycle.endMs > until + EPS) return false;
      d += `H${x(cycle.endMs).toFixed(1)}V${y(countTokens(lane, i + 1)).toFixed(1)}`;
      lastMs = cycle.endMs;
      return true;
    });
    return until > lastMs && lastMs < lane.endMs ? d + `H${x(Math.min(until, lane.endMs)).toFixed(1)}` : d;
  }

  return drawCurve;
}
