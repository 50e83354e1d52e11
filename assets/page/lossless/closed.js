/* The closed form: the distribution that the rule writes, token by token, beside the target's. */

import { html, createLegend } from "#page/race/html.js";
import { svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillText, joinSentences, shortenPiece } from "#page/race/text.js";
import { formatChance } from "#page/race/format.js";
import { EXACT, isExact } from "#page/lossless/reading.js";
import { formatRoughly, formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createClosedForm(W, level) {
  function paintClosed(certificate) {
    const C = W.closed,
      { error, overlap, needed } = certificate.closed,
      passed = isExact(certificate),
      box = html("div", {});
    level(
      "closed",
      passed,
      C.title,
      error === null ? C.no_law : fillText(C.error, { error: formatFigure(error) }),
      C.lead,
      createLegend(["sd-i-target", C.target], [passed ? "sd-i-good" : "sd-i-rej", C.written]),
      box,
      createNote(
        joinSentences(
          fillText(C.overlap, { beta: formatChance(overlap) }),
          needed && fillText(C.needed, { needed: formatRoughly(needed) }),
        ),
      ),
    );
    box.append(bars(certificate.closed, box.clientWidth));
  }

  function bars({ rows, rest }, width) {
    const all = [...rows, ...(Math.max(...rest) > 1e-6 ? [[null, ...rest]] : [])],
      wide = width / all.length,
      zero = 150,
      H = createHatch(),
      g = svgRoot(width, 176, W.closed.aria, H.defs);
    const most = Math.max(...all.flatMap(([, p, distribution]) => [p, distribution || 0])),
      y = (v) => (v / most) * 118,
      thick = Math.min(34, wide * 0.34);
    all.forEach(([piece, p, distribution], i) => {
      const middle = (i + 0.5) * wide,
        off = distribution === null ? 0 : distribution - p,
        same = Math.abs(off) <= EXACT;
      g.append(svgRect(middle - thick - 1, zero - y(p), thick, y(p), { class: "sd-f-target" }));
      if (distribution !== null)
        g.append(
          svgRect(
            middle + 1,
            zero - y(distribution),
            thick,
            y(distribution),
            same ? { class: "sd-f-acc sd-o-acc" } : { fill: H.fill, class: "sd-s-rej" },
          ),
        );
      if (Math.abs(off) >= 0.0005)
        g.append(
          svgText(
            middle,
            zero - y(Math.max(p, distribution)) - 7,
            (off > 0 ? "+" : "−") + Math.abs(off).toFixed(Math.abs(off) < 0.005 ? 3 : 2),
            "sd-b",
            "middle",
          ),
        );
      g.append(
        svgText(
          middle,
          zero + 17,
          piece === null ? W.closed.rest : shortenPiece(piece, wide),
          piece === null ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    g.append(svgLine(0, zero, width, zero, "sd-ax"));
    return g;
  }

  return paintClosed;
}
