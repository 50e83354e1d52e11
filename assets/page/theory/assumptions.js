/* What the formulas assume, as the run has it: one acceptance rate for every position. */

import { svgText, svgLine } from "#page/race/svg.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { wilson } from "#page/theory/formulas.js";
import { svgDot, drawRows, drawTicks } from "#page/theory/axes.js";

export function createAssumptions({ W, part, frame, here: ofRun }) {
  function paintPositions(here) {
    part.positionssub.textContent = here
      ? here.tree
        ? W.positions.sub_tree
        : W.positions.sub
      : W.measured.none;
    if (!here) return part.positions.replaceChildren();
    const A = frame("positions", 190, W.positions.aria, { left: 30, bottom: 40, right: 66 }),
      { g } = A,
      n = here.alphas.length,
      step = A.wide / Math.max(n, 3),
      x = (i) => A.left + (i + 0.5) * step,
      y = (v) => A.floor - v * A.tall;
    drawRows(
      A,
      [0, 0.5, 1].map((v) => [y(v), String(v), v ? "" : "sd-ax"]),
    );
    g.append(
      svgLine(A.left, y(here.alpha), A.left + A.wide, y(here.alpha), "sd-dots"),
      svgText(A.left + A.wide + 6, y(here.alpha) + 4, "α " + toFixed(here.alpha), "sd-b"),
    );
    here.alphas.forEach((alpha, i) => {
      const [low, high] = wilson(here.acceptedAt[i], here.judgedAt[i]);
      g.append(
        svgLine(x(i), y(low), x(i), y(high), "sd-th-whisker"),
        ...[low, high].map((v) => svgLine(x(i) - 5, y(v), x(i) + 5, y(v), "sd-th-whisker")),
        svgDot(x(i), y(alpha), 4.5, "sd-dot-a"),
      );
      if (step > 50) g.append(svgText(x(i) + 9, y(alpha) + 4, toFixed(alpha), "sd-b"));
    });
    drawTicks(
      A,
      here.judgedAt.map((n, i) => [
        x(i),
        step > 58 ? fillText(W.positions.tick, { i: i + 1, n }) : i + 1,
      ]),
      W.positions.axis,
    );
    part.positions.replaceChildren(g);
  }

  return { positions: () => paintPositions(ofRun()) };
}
