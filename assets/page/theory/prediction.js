/* The speed-up of the run as the formulas predict it, beside the one that was measured, and what lies between. */

import { svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { expectedTokens, speedup, wilson } from "#page/theory/formulas.js";
import { formatTimes } from "#page/theory/format.js";

export function createPrediction({ W, part, room, here: ofRun }) {
  function paintMeasured() {
    const M = W.measured,
      here = ofRun();
    if (!here) {
      part.measured.replaceChildren();
      part.measuredsay.textContent = M.none;
      return;
    }
    const [low, high] = wilson(here.accepted, here.judged).map((alpha) =>
      speedup(alpha, here.k, here.c, here.v, here.o),
    );
    const formula = speedup(here.alpha, here.k, here.c, here.v, here.o),
      costs = { c: toFixed(here.c), v: toFixed(here.v), o: toFixed(here.o) };
    const bars = [
      [
        M.free,
        expectedTokens(here.alpha, here.k),
        fillText(M.free_note, { alpha: toFixed(here.alpha), k: here.k }),
        "sd-th-pale",
      ],
      [M.formula, formula, fillText(M.formula_note, costs), "sd-f-target", [low, high]],
      [
        M.accounted,
        here.accounted,
        fillText(M.accounted_note, { tau: toFixed(here.tau) }),
        "sd-f-target",
      ],
      [M.measured, here.measured, M.measured_note, "sd-th-you"],
      [
        M.perfect,
        speedup(1, here.k, 0, here.v, here.o),
        fillText(M.perfect_note, { k: here.k, v: costs.v, o: costs.o }),
        "sd-th-pale",
      ],
    ];
    part.measured.replaceChildren(measuredBars(bars));
    part.measuredsay.textContent = explain(here, formula, low, high);
  }

  function measuredBars(bars) {
    const high = 54,
      width = room.measured,
      g = svgRoot(width, bars.length * high + 18, W.measured.aria),
      most = Math.max(...bars.map(([, value, , , reach]) => (reach ? reach[1] : value))),
      x = (v) => (v / most) * (width - 62);
    bars.forEach(([name, value, note, cls, reach], i) => {
      const y = i * high,
        low = y + 21;
      g.append(
        svgText(0, y + 14, name, i === bars.length - 1 ? "sd-b" : "sd-k"),
        svgRect(0, low, x(value), 17, { class: cls }),
        svgText(x(value) + 8, y + 34, formatTimes(value), "sd-b"),
      );
      if (width > 420) g.append(svgText(width, y + 14, note, "", "end"));
      if (reach)
        g.append(
          svgLine(x(reach[0]), low + 23, x(reach[1]), low + 23, "sd-th-whisker"),
          ...reach.map((v) => svgLine(x(v), low + 19, x(v), low + 27, "sd-th-whisker")),
        );
      g.append(svgLine(x(1), low - 2, x(1), low + 19, "sd-th-plain"));
    });
    g.append(svgText(x(1), bars.length * high + 10, W.measured.plain, "", "middle"));
    return g;
  }

  /* What the formula leaves out, step by step down to the clock. */
  function explain(here, formula, low, high) {
    const M = W.measured,
      inside = here.measured >= low && here.measured <= high,
      gap = here.accounted - here.measured,
      values = {
        measured: formatTimes(here.measured),
        low: toFixed(low),
        high: toFixed(high),
        n: here.judged,
      };
    const positions = here.accounted - formula,
      parts = [fillText(inside ? M.inside : M.outside, values)];
    parts.push(
      fillText(
        Math.abs(positions) < 0.02
          ? M.even
          : here.share < 0.98
            ? M.shorter
            : here.varied
              ? M.varied
              : M.uneven,
        {
          by: formatTimes(Math.abs(positions)),
          way: positions < 0 ? M.less : M.more,
          share: toFixed(here.share * 100, 0),
        },
      ),
    );
    parts.push(
      fillText(Math.abs(gap) < 0.02 * here.measured ? M.closes : M.open, {
        by: formatTimes(Math.abs(gap)),
        way: gap > 0 ? M.slower_than : M.faster_than,
      }),
    );
    return joinSentences(parts);
  }

  return { measured: paintMeasured };
}
