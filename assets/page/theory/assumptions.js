/* Two things that the formulas assume, as the run has them: one acceptance rate for every position, and what
 * verification costs by its rows. */

import { text, line } from "#page/race/kit.js";
import { words, fixed } from "#page/race/text.js";
import { wilson } from "#page/theory/formulas.js";
import { dot, diamond, rows, ticks, stepsTo } from "#page/theory/axes.js";

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

  function paintChecks(here) {
    const mine = here ? here.checks.filter((one) => one.n > 1 || here.checks.length === 1) : [];
    part.checkssub.textContent = mine.length ? W.checks.mine : W.checks.none;
    if (!mine.length) return part.checks.replaceChildren();
    const A = frame("checks", 200, W.checks.aria, { left: 38, bottom: 40, top: 20 }),
      { g } = A,
      last = Math.max(6, ...mine.map((one) => one.rows)),
      most = Math.max(2, ...mine.map((one) => one.cost)) * 1.08;
    const x = (n) => A.left + ((n - 1) / (last - 1)) * (A.wide - 20) + 6,
      y = (v) => A.floor - (v / most) * A.tall;
    rows(
      A,
      stepsTo(most, 4).map((v) => [y(v), fixed(v, 1)]),
    );
    ticks(
      A,
      [1, ...stepsTo(last, 8).slice(1)].map((n) => [x(n), n]),
      W.checks.axis,
    );
    g.append(
      line(x(1), y(1), x(last), y(1), "sd-th-one"),
      text(x(last), y(1) + 16, W.checks.free, "", "end"),
    );
    for (const one of mine)
      g.append(
        diamond(x(one.rows), y(one.cost), "sd-th-you"),
        text(x(one.rows), y(one.cost) - 12, fixed(one.cost), "sd-th-mine", "middle"),
      );
    part.checks.replaceChildren(g);
  }

  return { positions: () => paintPositions(ofRun()), checks: () => paintChecks(ofRun()) };
}
