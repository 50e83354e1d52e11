/* The closed form: the distribution that the rule writes, token by token, beside the target's. */

import { h, text, line, rect, svg, hatch, legend } from "#page/race/kit.js";
import { words, sentences, short, chance } from "#page/race/text.js";
import { EXACT, isExact, roughly, figure } from "#page/lossless/reading.js";
import { note } from "#page/lossless/signs.js";

export function closedForm(W, level) {
  function paintClosed(certificate) {
    const C = W.closed,
      { error, overlap, needed } = certificate.closed,
      passed = isExact(certificate),
      box = h("div", {});
    level(
      "closed",
      passed,
      C.title,
      error === null ? C.no_law : words(C.error, { error: figure(error) }),
      C.lead,
      legend(["sd-i-target", C.target], [passed ? "sd-i-good" : "sd-i-rej", C.written]),
      box,
      note(
        sentences(
          words(C.overlap, { beta: chance(overlap) }),
          needed && words(C.needed, { needed: roughly(needed) }),
        ),
      ),
    );
    box.append(bars(certificate.closed, box.clientWidth));
  }

  function bars({ rows, rest }, width) {
    const all = [...rows, ...(Math.max(...rest) > 1e-6 ? [[null, ...rest]] : [])],
      wide = width / all.length,
      zero = 150,
      H = hatch(),
      g = svg(width, 176, W.closed.aria, H.defs);
    const most = Math.max(...all.flatMap(([, p, distribution]) => [p, distribution || 0])),
      y = (v) => (v / most) * 118,
      thick = Math.min(34, wide * 0.34);
    all.forEach(([piece, p, distribution], i) => {
      const middle = (i + 0.5) * wide,
        off = distribution === null ? 0 : distribution - p,
        same = Math.abs(off) <= EXACT;
      g.append(rect(middle - thick - 1, zero - y(p), thick, y(p), { class: "sd-f-target" }));
      if (distribution !== null)
        g.append(
          rect(
            middle + 1,
            zero - y(distribution),
            thick,
            y(distribution),
            same ? { class: "sd-f-acc sd-o-acc" } : { fill: H.fill, class: "sd-s-rej" },
          ),
        );
      if (Math.abs(off) >= 0.0005)
        g.append(
          text(
            middle,
            zero - y(Math.max(p, distribution)) - 7,
            (off > 0 ? "+" : "−") + Math.abs(off).toFixed(Math.abs(off) < 0.005 ? 3 : 2),
            "sd-b",
            "middle",
          ),
        );
      g.append(
        text(
          middle,
          zero + 17,
          piece === null ? W.closed.rest : short(piece, wide),
          piece === null ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    g.append(line(0, zero, width, zero, "sd-ax"));
    return g;
  }

  return paintClosed;
}
