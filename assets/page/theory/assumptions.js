/* Two things that the formulas assume, as the run has them: one acceptance rate for every position, and what
 * verification costs by its rows. */

import { text, line } from "#page/race/kit.js";
import { words, sentences, fixed } from "#page/race/text.js";
import { wilson } from "#page/theory/formulas.js";
import { path, dot, diamond, rows, ticks, stepsTo } from "#page/theory/axes.js";

export function assumptions({ W, part, frame, here: ofRun, reports }) {
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

  /* Points of this run, and those that the bench recorded for drafts of fixed length. */
  function paintChecks(here) {
    const mine = here ? here.checks.filter((one) => one.n > 1 || here.checks.length === 1) : [],
      bench = benchChecks();
    if (!mine.length && !bench.length) {
      part.checkssub.textContent = W.checks.none;
      return part.checks.replaceChildren();
    }
    const A = frame("checks", 200, W.checks.aria, { left: 38, bottom: 40, top: 20 }),
      { g } = A,
      all = [...mine, ...bench],
      last = Math.max(6, ...all.map((one) => one.rows)),
      most = Math.max(2, ...all.map((one) => one.cost)) * 1.08;
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
    if (bench.length)
      g.append(
        path([[x(1), y(1)], ...bench.map((one) => [x(one.rows), y(one.cost)])], "sd-line-b"),
      );
    for (const one of bench) g.append(dot(x(one.rows), y(one.cost), 4, "sd-dot-b"));
    for (const one of mine)
      g.append(
        diamond(x(one.rows), y(one.cost), "sd-th-you"),
        text(x(one.rows), y(one.cost) - 12, fixed(one.cost), "sd-th-mine", "middle"),
      );
    part.checks.replaceChildren(g);
    part.checkssub.textContent = sentences(
      here && W.checks.mine,
      bench.length && words(W.checks.bench, { cores: reports[0].machine.cores }),
    );
  }

  /* The middle verify cost at each K of a fixed draft, from the first report. */
  function benchChecks() {
    const at = {};
    for (const row of reports.length ? reports[0].rows : [])
      if (row.drafter === "draft_model" && row.verify_cost != null)
        (at[row.k + 1] = at[row.k + 1] || []).push(row.verify_cost);
    return Object.entries(at).map(([rows, costs]) => ({
      rows: +rows,
      cost: costs.sort((x, y) => x - y)[costs.length >> 1],
    }));
  }

  return { positions: () => paintPositions(ofRun()), checks: () => paintChecks(ofRun()) };
}
