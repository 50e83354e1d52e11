/* What the formulas assume, as the run has it: one acceptance rate for every position. */

import { text, line } from "#page/race/kit.js";
import { words, fixed } from "#page/race/text.js";
import { wilson } from "#page/theory/formulas.js";
import { dot, rows, ticks } from "#page/theory/axes.js";

export function assumptions({ W, part, frame, here: ofRun }) {
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
    rows(
      A,
      [0, 0.5, 1].map((v) => [y(v), String(v), v ? "" : "sd-ax"]),
    );
    g.append(
      line(A.left, y(here.alpha), A.left + A.wide, y(here.alpha), "sd-dots"),
      text(A.left + A.wide + 6, y(here.alpha) + 4, "α " + fixed(here.alpha), "sd-b"),
    );
    here.alphas.forEach((alpha, i) => {
      const [low, high] = wilson(here.acceptedAt[i], here.judgedAt[i]);
      g.append(
        line(x(i), y(low), x(i), y(high), "sd-th-whisker"),
        ...[low, high].map((v) => line(x(i) - 5, y(v), x(i) + 5, y(v), "sd-th-whisker")),
        dot(x(i), y(alpha), 4.5, "sd-dot-a"),
      );
      if (step > 50) g.append(text(x(i) + 9, y(alpha) + 4, fixed(alpha), "sd-b"));
    });
    ticks(
      A,
      here.judgedAt.map((n, i) => [
        x(i),
        step > 58 ? words(W.positions.tick, { i: i + 1, n }) : i + 1,
      ]),
      W.positions.axis,
    );
    part.positions.replaceChildren(g);
  }

  return { positions: () => paintPositions(ofRun()) };
}
