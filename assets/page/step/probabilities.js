/* Bars of probabilities: what both models believe at a place, and the row that the target's own token comes from. */

import { svgText, svgRect, svgRoot } from "#page/race/svg.js";
import { shortenPiece } from "#page/race/text.js";
import { formatChance } from "#page/race/format.js";
import { UNNAMED } from "#page/race/run.js";
import { MAX_ROWS, rowsToShow } from "#page/step/distributions.js";

const same = (a, b) =>
  a.token === UNNAMED || b.token === UNNAMED ? a.piece === b.piece : a.token === b.token; // a server may tell no ids

export function createProbabilityBars({ W, now }) {
  function bars(draft, width) {
    const { kept, rest } = rowsToShow(draft, (now().own || {}).sample),
      rows = [...kept, { rest: true, ...rest }],
      left = 84,
      high = 33,
      most = Math.max(1e-6, ...rows.flatMap((row) => [row.p || 0, row.q || 0])),
      x = (v) => (v / most) * (width - left - 52);
    const g = svgRoot(width, rows.length * high + 6, W.position.bars_aria);
    rows.forEach((row, i) => {
      const y = i * high,
        cls = i === 0 ? "sd-b" : "sd-k";
      if (i === 0) g.append(svgRect(-8, y - 3, width + 8, high - 1, { rx: 6, class: "sd-f-hot" }));
      g.append(
        svgText(
          0,
          y + 18,
          row.rest ? W.rest : shortenPiece(row.piece, left),
          row.rest ? "" : i ? "sd-tk" : "sd-tk sd-b",
        ),
      );
      for (const [value, cls2, dy] of [
        [row.p, "sd-f-target", 2],
        [row.q, "sd-f-draft sd-s-draft", 14],
      ]) {
        if (value != null)
          g.append(svgRect(left, y + dy, x(value), 11, { class: cls2, "stroke-width": 0.6 }));
        g.append(
          svgText(
            left + (value == null ? 0 : x(value)) + 6,
            y + dy + 10,
            value == null ? "·" : formatChance(value),
            dy === 2 ? cls : i === 0 ? "sd-b" : "",
          ),
        );
      }
    });
    return g;
  }

  /* Drawn from a whole row of the target; or the row of a draft, as a server tells it. */
  function row(width, draft = /** @type {any} */ (null)) {
    const own = draft
        ? {
            distribution: draft.target,
            state: "pla",
            sample: draft.piece ? { token: draft.token, piece: draft.piece, prob: draft.p } : null,
          }
        : now().own,
      O = W.own,
      state = own.state;
    const rows = own.distribution.top.slice(0, MAX_ROWS),
      at = own.sample && rows.findIndex((one) => same(one, own.sample));
    if (own.sample && at < 0) rows.push({ ...own.sample, prob: own.sample.prob ?? 0 });
    const high = 26,
      rest = Math.max(0, 1 - rows.reduce((sum, one) => sum + one.prob, 0)),
      list = [...rows, { piece: null, prob: rest }],
      most = Math.max(...list.map((one) => one.prob)),
      g = svgRoot(width, list.length * high, O.row);
    list.forEach((one, i) => {
      const hit = own.sample && one.piece !== null && same(one, own.sample),
        wide = (one.prob / most) * (width - 84 - 110);
      if (hit)
        g.append(
          svgRect(-8, i * high, width + 8, high - 2, {
            rx: 6,
            class: "sd-f-" + (state === "pla" ? "hot" : state),
          }),
        );
      g.append(
        svgText(
          0,
          i * high + 16,
          one.piece === null ? W.rest : shortenPiece(one.piece, 84),
          one.piece === null ? "" : hit ? "sd-tk sd-on" : "sd-tk",
        ),
        svgRect(84, i * high + 6, wide, 11, {
          class: hit && state !== "pla" ? "sd-f-ink" : "sd-f-target",
        }),
        svgText(
          84 + wide + 6,
          i * high + 16,
          formatChance(one.prob) + (hit ? " " + (draft ? W.served.kept : O.drawn) : ""),
          hit ? "sd-b" + (state === "pla" ? "" : " sd-on") : "",
        ),
      );
    });
    return g;
  }

  return { bars, row };
}
