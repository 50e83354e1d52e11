/* Draws the speed-up by K, as curves and as a table. */

import { html, createBarCell, createHeadRow, createRow } from "#page/race/html.js";
import { svgText, svgLine } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed, clamp } from "#page/race/format.js";
import { expectedTokens, bestK } from "#page/theory/formulas.js";
import { formatTimes, range, formatSmall } from "#page/theory/format.js";
import { svgPath, svgDot, svgDiamond, drawTicks } from "#page/theory/axes.js";

export const LARGEST_K = 16, // tokens of the longest draft
  ALPHAS = [0.5, 0.6, 0.7, 0.8, 0.9]; // acceptance rates of the grey curves

/** @param {TheoryPage} page */
export function createCurves({
  texts,
  part,
  settings,
  widths,
  createFrame,
  speedAxis,
  measured,
  checkCost,
  speedupAt,
  findBestK,
}) {
  function paintCurves() {
    const isWide = widths.curves > 560,
      frame = createFrame("curves", isWide ? 360 : 340, texts.curves.aria, {
        right: isWide ? 62 : 52,
      }),
      { chart } = frame,
      ks = range(1, LARGEST_K);
    const highestOwn = Math.max(...ks.map((k) => speedupAt(k)), settings.usesRun ? measured().speedup : 0),
      highest = Math.max(...ks.map((k) => speedupAt(k, ALPHAS[ALPHAS.length - 1]))),
      y = speedAxis(frame, Math.max(2, highestOwn * 1.1, Math.min(highest * 1.06, highestOwn * 2.2)), settings.k < 9),
      x = (/** @type {number} */ k) => frame.left + ((k - 1) / (LARGEST_K - 1)) * frame.plotWidth;
    drawTicks(
      frame,
      ks.filter((k) => isWide || k % 2 || k === settings.k).map((k) => [x(k), k, k === settings.k ? "sd-b" : ""]),
      texts.curves.axis,
    );
    const label = (/** @type {number} */ alpha) => "α " + toFixed(alpha, alpha === settings.alpha ? 2 : 1),
      ownY = y(speedupAt(LARGEST_K)),
      usedHeights = [ownY];
    for (const alpha of ALPHAS.filter((other) => Math.abs(other - settings.alpha) > 0.035)) {
      const points = ks.map((k) => [x(k), y(speedupAt(k, alpha))]).filter(([, pointY]) => pointY >= frame.top),
        [, endY] = points[points.length - 1];
      if (points.length < LARGEST_K) continue;
      chart.append(svgPath(points, "sd-th-bend"));
      const k = bestK(alpha, settings.c, checkCost, settings.o, LARGEST_K);
      if (k) chart.append(svgDot(x(k), y(speedupAt(k, alpha)), 3.5, "sd-dot-b"));
      let labelY = endY;
      for (const other of usedHeights.sort((a, b) => b - a)) if (Math.abs(other - labelY) < 13) labelY = other - 13;
      usedHeights.push(labelY);
      chart.append(svgText(frame.width - frame.right + 8, labelY + 4, label(alpha)));
    }
    chart.append(
      svgPath(
        ks.map((k) => [x(k), y(speedupAt(k))]),
        "sd-line-a",
      ),
      svgText(frame.width - frame.right + 8, ownY + 4, label(settings.alpha), "sd-b"),
    );
    paintPoints(frame, x, y);
    part.curves.replaceChildren(chart);
    const { k, c, v, o } = settings,
      sum = `${k} × ${toFixed(c, 3)} + ${toFixed(v)} + ${toFixed(o, 3)} = ${toFixed(k * c + v + o)}`;
    part.longer.replaceChildren(
      html("b", {}, fillText(texts.longer.cost, { sum, tokens: toFixed(expectedTokens(settings.alpha, k)) })),
      " ",
      joinSentences(sayNext(k), texts.longer.wins),
    );
  }

  /** Marks the current and the best K.
   * @param {Frame} frame @param {Scale} x @param {Scale} y */
  function paintPoints({ chart, floor, left, plotWidth }, x, y) {
    const best = findBestK(),
      current = speedupAt(settings.k),
      pointX = x(settings.k),
      pointY = y(current),
      label = settings.usesRun
        ? fillText(texts.curves.here, {
            times: formatTimes(current),
            measured: formatTimes(measured().speedup),
          })
        : formatTimes(current),
      alignsEnd = pointX > left + Math.max(plotWidth - 170, plotWidth / 2);
    if (best) chart.append(svgDot(x(best), y(speedupAt(best)), 4.5, "sd-dot-b"));
    if (best && Math.abs(best - settings.k) > 1)
      chart.append(
        svgText(
          clamp(x(best), left + 40, left + plotWidth - 36),
          y(speedupAt(best)) - 12,
          fillText(texts.curves.best, { k: best }),
          "sd-b",
          "middle",
        ),
      );
    chart.append(
      svgLine(pointX, pointY, pointX, floor, "sd-th-drop"),
      svgDot(pointX, pointY, 7, "sd-th-you"),
      svgText(pointX + (alignsEnd ? -12 : 12), pointY + 20, label, "sd-th-mine sd-b", alignsEnd ? "end" : "start"),
    );
    const measuredY = settings.usesRun ? y(measured().speedup) : pointY;
    if (Math.abs(measuredY - pointY) > 14) chart.append(svgDiamond(pointX, measuredY, "sd-th-real")); // else they touch
  }

  function paintTable() {
    const best = findBestK(),
      ks = range(1, LARGEST_K).filter((k) => k <= 10 || k === settings.k || k === best),
      highest = Math.max(...ks.map((k) => speedupAt(k)));
    const tagsOf = (/** @type {number} */ k) =>
      [
        k === settings.k ? (settings.usesRun ? texts.table.mine : texts.table.set) : null,
        k === best ? texts.table.best : null,
      ]
        .filter(Boolean)
        .join(", ");
    const row = (/** @type {number} */ k) =>
      createRow(
        [String(k), tagsOf(k) ? html("span", { class: "sd-th-tag" }, tagsOf(k)) : null],
        [
          toFixed(expectedTokens(settings.alpha, k)),
          toFixed(k * settings.c + checkCost(k) + settings.o),
          formatTimes(speedupAt(k)),
          createBarCell(speedupAt(k) / highest, k === best),
        ],
        k === best ? "sd-th-best" : null,
      );
    part.table.replaceChildren(
      createHeadRow([...Object.values(texts.table.heads), html("td")]),
      html("tbody", {}, ks.map(row)),
    );
    part.tablesub.textContent = best
      ? joinSentences(fillText(texts.table.sub, { k: best }), best < LARGEST_K && sayNext(best))
      : texts.table.none;
  }

  /* Says what one draft more than `k` would give and cost. */
  function sayNext(/** @type {number} */ k) {
    const gained = settings.alpha ** (k + 1),
      cost = settings.c + checkCost(k + 1) - checkCost(k),
      values = {
        next: k + 1,
        brings: formatSmall(gained),
        costs: formatSmall(cost),
        rate: cost ? formatSmall(gained / cost) : "∞",
        now: toFixed(speedupAt(k)),
      };
    const verdict = fillText(gained > cost * speedupAt(k) ? texts.longer.pays : texts.longer.loses, values);
    return fillText(texts.longer.draft, { ...values, verdict });
  }

  return { curves: paintCurves, table: paintTable };
}
