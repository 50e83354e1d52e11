/* The speed-up by draft length K, as curves and as a table, and why not a longer draft. */

import { html, createHeadRow, createRow } from "#page/race/html.js";
import { svgText, svgLine } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed, clamp } from "#page/race/format.js";
import { expectedTokens, bestK } from "#page/theory/formulas.js";
import { formatTimes, range } from "#page/theory/format.js";
import { svgPath, svgDot, svgDiamond, createBarCell, drawTicks } from "#page/theory/axes.js";

export const LARGEST_K = 16, // the longest draft
  BENDS = [0.5, 0.6, 0.7, 0.8, 0.9]; // acceptance rates of the grey curves

export function createCurves({ W, part, S, room, frame, speedAxis, here, cost, gain, best }) {
  function paintCurves() {
    const roomy = room.curves > 560,
      A = frame("curves", roomy ? 420 : 372, W.curves.aria, { right: roomy ? 62 : 40 }),
      { g } = A,
      ks = range(1, LARGEST_K);
    const own = Math.max(...ks.map((k) => gain(k)), S.mine ? here().measured : 0),
      highest = Math.max(...ks.map((k) => gain(k, BENDS[BENDS.length - 1]))),
      y = speedAxis(A, Math.max(2, own * 1.1, Math.min(highest * 1.06, own * 2.2)), S.k < 9),
      x = (k) => A.left + ((k - 1) / (LARGEST_K - 1)) * A.wide;
    drawTicks(
      A,
      ks.filter((k) => roomy || k % 2 || k === S.k).map((k) => [x(k), k, k === S.k ? "sd-b" : ""]),
      W.curves.axis,
    );
    const label = (alpha) => (roomy ? "α " : "") + toFixed(alpha, alpha === S.alpha ? 2 : 1),
      taken = [y(gain(LARGEST_K))];
    for (const alpha of BENDS.filter((one) => Math.abs(one - S.alpha) > 0.035)) {
      const points = ks.map((k) => [x(k), y(gain(k, alpha))]).filter(([, at]) => at >= A.top),
        [, at] = points[points.length - 1];
      if (points.length < LARGEST_K) continue;
      g.append(svgPath(points, "sd-th-bend"));
      const k = bestK(alpha, S.c, cost, S.o, LARGEST_K);
      if (k) g.append(svgDot(x(k), y(gain(k, alpha)), 3.5, "sd-dot-b"));
      if (taken.every((other) => Math.abs(other - at) > 13)) {
        taken.push(at);
        g.append(svgText(A.width - A.right + 8, at + 4, label(alpha)));
      }
    }
    g.append(
      svgPath(
        ks.map((k) => [x(k), y(gain(k))]),
        "sd-line-a",
      ),
      svgText(A.width - A.right + 8, taken[0] + 4, label(S.alpha), "sd-b"),
    );
    paintPoints(A, x, y);
    part.curves.replaceChildren(g);
  }

  /* Past the best K the curve falls away to the right of the point, before it to the left: there is room for words. */
  function paintPoints({ g, floor, left, wide }, x, y) {
    const k = best(),
      now = gain(S.k),
      at = x(S.k),
      low = y(now),
      name = S.mine
        ? fillText(W.curves.here, {
            times: formatTimes(now),
            measured: formatTimes(here().measured),
          })
        : formatTimes(now),
      climbs = S.k < k || at > left + wide - 130,
      rising = climbs && at > left + (S.mine ? 250 : 130),
      down = climbs && !rising ? 24 : -12, // a curve that climbs leaves room below it at the right
      side = rising ? -12 : 12,
      beside = k ? (x(k) - at) * Math.sign(side) : 0;
    if (k) g.append(svgDot(x(k), y(gain(k)), 4.5, "sd-dot-b"));
    if (k && Math.abs(k - S.k) > 1 && (beside < 0 || beside > (S.mine ? 220 : 80)))
      g.append(
        svgText(
          clamp(x(k), left + 40, left + wide - 36),
          y(gain(k)) - 12,
          fillText(W.curves.best, { k }),
          "sd-b",
          "middle",
        ),
      );
    g.append(
      svgLine(at, low, at, floor, "sd-th-drop"),
      svgDot(at, low, 7, "sd-th-you"),
      svgText(at + side, low + down, name, "sd-th-mine sd-b", rising ? "end" : "start"),
    );
    if (S.mine) g.append(svgDiamond(at, y(here().measured), "sd-th-real"));
  }

  function paintTable() {
    const top = best(),
      ks = range(1, LARGEST_K).filter((k) => k <= 10 || k === S.k || k === top),
      most = Math.max(...ks.map((k) => gain(k)));
    const tags = (k) =>
      [k === S.k ? (S.mine ? W.table.mine : W.table.set) : null, k === top ? W.table.best : null]
        .filter(Boolean)
        .join(", ");
    const row = (k) =>
      createRow(
        [String(k), tags(k) ? html("span", { class: "sd-th-tag" }, tags(k)) : null],
        [
          toFixed(expectedTokens(S.alpha, k)),
          toFixed(k * S.c + cost(k) + S.o),
          formatTimes(gain(k)),
          createBarCell(gain(k) / most, k === top),
        ],
        k === top ? "sd-th-best" : null,
      );
    part.table.replaceChildren(
      createHeadRow([...Object.values(W.table.heads), html("td")]),
      html("tbody", {}, ks.map(row)),
    );
    part.tablesub.textContent = top
      ? joinSentences(fillText(W.table.sub, { k: top }), whyNotLonger(top))
      : W.table.none;
  }

  /* One more draft than the best K: what it would bring, what it would cost. */
  function whyNotLonger(k) {
    if (k >= LARGEST_K) return "";
    const brings = S.alpha ** (k + 1),
      costs = S.c + cost(k + 1) - cost(k);
    return fillText(W.table.why, {
      next: k + 1,
      brings: toFixed(brings),
      costs: toFixed(costs),
      rate: toFixed(brings / costs),
      now: toFixed(gain(k)),
    });
  }

  return { curves: paintCurves, table: paintTable };
}
