/* What a replacement is drawn from: where the target's probability stands above the draft's, scaled to 1. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillTemplate, fillText, formatPiece, shortenPiece } from "#page/race/text.js";
import { formatChance, clamp } from "#page/race/format.js";
import { distributionsOf, rowsToShow } from "#page/step/distributions.js";
import { formatFigure, createMark, createNote, createFormula } from "#page/step/marks.js";

export function createResidualCharts({ W, S, now }) {
  const drawn = () => now().own && now().own.sample;

  /* Both distributions as areas: where they overlap, and which stands higher. */
  function areas(draft, weight, width) {
    const { kept, rest } = rowsToShow(draft, drawn(), weight),
      rows = [...kept.filter((one) => one.p != null && one.q != null), { rest: true, ...rest }],
      wide = width / rows.length,
      zero = 186,
      H = createHatch(),
      g = svgRoot(width, 214, W.own.areas_aria, H.defs);
    const most = Math.max(
        1e-6,
        ...rows.map((one) => (one.rest ? one.p + one.q - one.min : Math.max(one.p, one.q))),
      ),
      y = (v) => (v / most) * 150;
    rows.forEach((one, i) => {
      const x = i * wide + 3,
        w = wide - 6,
        low = one.rest ? one.min : Math.min(one.p, one.q),
        more = one.p - low,
        less = one.q - low;
      g.append(svgRect(x, zero - y(low), w, y(low), { class: "sd-f-acc" }));
      if (more > 5e-4)
        g.append(svgRect(x, zero - y(low + more), w, y(more), { class: "sd-f-res sd-o-res" }));
      if (less > 5e-4)
        g.append(
          svgRect(x, zero - y(low + more + less), w, y(less), { fill: H.fill, class: "sd-s-rej" }),
        );
      const top = zero - y(low + more + less) - 6,
        label =
          more > 0.004 && less > 0.004
            ? "±"
            : more > 0.004
              ? "+" + more.toFixed(2)
              : less > 0.004
                ? "−" + less.toFixed(2)
                : "";
      if (label) g.append(svgText(x + w / 2, top, label, "sd-b", "middle"));
      g.append(
        svgText(
          x + w / 2,
          zero + 17,
          one.rest ? W.rest_short : shortenPiece(one.piece, wide),
          one.rest ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    g.append(svgLine(0, zero, width, zero, "sd-ax"));
    return g;
  }

  /* The two surpluses, which are equal, and the draw from the target's. */
  function surpluses(draft, weight, width, guess) {
    const O = W.own,
      N = W.notation[S.notation],
      distributions = distributionsOf(draft, weight),
      H = createHatch(),
      beta = clamp(distributions.overlap, 0, 1),
      at = beta * width,
      top = weight < 1 ? 0 : 110,
      g = svgRoot(width, top + 84, O.equal_aria, H.defs),
      room = (1 - beta) * width > 34;
    if (weight === 1) {
      g.append(
        svgText(0, 12, N.target, "sd-k"),
        svgRect(0, 18, at, 24, { class: "sd-f-acc" }),
        svgRect(at, 18, width - at, 24, { class: "sd-f-res sd-o-res" }),
        svgText(0, 60, N.draft, "sd-k"),
        svgRect(0, 66, at, 24, { class: "sd-f-acc" }),
        svgRect(at, 66, width - at, 24, { fill: H.fill, class: "sd-s-rej" }),
      );
      if (at > 150)
        g.append(
          svgText(at / 2, 34, N.overlap + " " + formatChance(beta), "sd-on", "middle"),
          svgText(at / 2, 82, fillText(O.kept, { beta: formatChance(beta) }), "sd-on", "middle"),
        );
      if (room)
        g.append(
          svgText((at + width) / 2, 34, formatChance(1 - beta), "sd-on", "middle"),
          svgRect((at + width) / 2 - 17, 70, 34, 16, { class: "sd-f-rej", rx: 3 }),
          svgText((at + width) / 2, 82, formatChance(1 - beta), "sd-on", "middle"),
        );
    }
    drawStrip(g, distributions, width, top);
    const values = drawn()
      ? fillTemplate(O.falls, { own: createMark("res", drawn().piece) })
      : [guess];
    return [
      g,
      html("p", { class: "sd-so" }, ...values),
      weight === 1 ? createNote(whyNotTheWholeRow(draft, beta)) : null,
      createFormula(fillText(O.formula, { residual: weight < 1 ? N.residual_block : N.residual })),
    ].filter(Boolean);
  }

  /* How often the rejected token would come if its replacement were drawn from all of p: kept, or rejected and
   * drawn again. */
  function whyNotTheWholeRow({ p, q, piece }, beta) {
    const values = {
      x: formatPiece(piece),
      p: formatFigure(p),
      wrong: formatFigure(Math.min(p, q) + (1 - beta) * p),
    };
    return fillText(W.own.why, values);
  }

  /* The target's surplus, scaled to 1; the drawn token carries the mark. */
  function drawStrip(g, distributions, width, top) {
    const sample = drawn(),
      parts = distributions.known
        .filter((one) => one.p > one.q)
        .map((one) => ({ ...one, share: (one.p - one.q) / distributions.surplus }))
        .sort((a, b) => b.share - a.share);
    const wide = parts.filter(
        (one) => one.share * width > 16 || (sample && one.token === sample.token),
      ),
      rest = Math.max(0, 1 - wide.reduce((sum, one) => sum + one.share, 0));
    let x = 0;
    g.append(svgText(0, top + 20, W.own.scaled, "sd-k"));
    for (const one of [...wide, { share: rest }]) {
      const w = one.share * width,
        hit = sample && one.token === sample.token;
      if (w < 0.5 && !hit) continue;
      g.append(svgRect(x, top + 40, w, 26, { class: "sd-f-res sd-o-res" }));
      if (w > 40)
        g.append(
          svgText(
            x + 6,
            top + 57,
            one.piece == null ? W.rest_short : shortenPiece(one.piece, w - 8),
            one.piece == null ? "sd-on" : "sd-tk sd-on",
          ),
        );
      if (w > 30)
        g.append(
          svgText(x + w / 2, top + 82, formatChance(one.share), hit ? "sd-b" : "", "middle"),
        );
      if (hit)
        g.append(svg("path", { d: `M${x + w / 2 - 6} ${top + 28}h12l-6 9z`, class: "sd-dot-a" }));
      x += w;
    }
  }

  return { areas, surpluses };
}
