/* How many drafts of a cycle are kept: the distribution, the sum behind it, and the acceptance rate that pays. */

import { html } from "#page/race/html.js";
import { svgText, svgLine, svgRect } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import {
  expectedAccepted,
  acceptedDistribution,
  throughput,
  breakEven,
} from "#page/theory/formulas.js";
import { range } from "#page/theory/format.js";
import { drawTicks } from "#page/theory/axes.js";

export function createKeptDrafts({ W, part, S, frame, here: ofRun, cost }) {
  function paintKept(here) {
    const A = frame("kept", 210, W.kept.aria, { left: 30, bottom: 40, top: 20 }),
      { g } = A,
      chances = acceptedDistribution(S.alpha, S.k),
      seen =
        S.mine && here.keptOf.length
          ? chances.map(
              (_, n) => here.keptOf.filter((kept) => kept === n).length / here.keptOf.length,
            )
          : null;
    const most = Math.max(...chances, ...(seen || [])),
      step = A.wide / chances.length,
      x = (n) => A.left + (n + 0.5) * step,
      y = (v) => A.floor - (v / most) * A.tall,
      wide = Math.min(44, step * 0.68);
    g.append(svgLine(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"));
    chances.forEach((chance, n) => {
      g.append(
        svgRect(x(n) - wide / 2, y(chance), wide, A.floor - y(chance), {
          class: n === S.k ? "sd-f-bon sd-o-bon" : "sd-f-acc sd-o-acc",
        }),
      );
      if (step > 30)
        g.append(
          svgText(x(n), y(Math.max(chance, seen ? seen[n] : 0)) - 7, toFixed(chance), "", "middle"),
        );
      if (seen)
        g.append(
          svgLine(x(n) - wide / 2 - 2, y(seen[n]), x(n) + wide / 2 + 2, y(seen[n]), "sd-th-seen"),
        );
    });
    drawTicks(
      A,
      chances.map((_, n) => [x(n), n, n === S.k ? "sd-b" : ""]),
      W.kept.axis,
    );
    part.kept.replaceChildren(g);
    part.keptsub.textContent = fillText(seen ? W.kept.sub_seen : W.kept.sub, {
      k: S.k,
      n: here ? here.keptOf.length : 0,
    });
  }

  function paintRecursion(here) {
    const R = W.recursion,
      shown = range(Math.max(0, S.k - 3), S.k)
        .reverse()
        .map((j) => `E_${j} = ${toFixed(expectedAccepted(S.alpha, S.k, j))}`),
      first = expectedAccepted(S.alpha, S.k),
      values = { n: S.k, p: toFixed(S.alpha), first: toFixed(first), tokens: toFixed(first + 1) };
    const chain = shown.join("  →  ") + (S.k > 3 ? "  →  …  →  E_0 = " + toFixed(first) : ""),
      ms = here ? here.passMs : null,
      unit = ms ? ms / 1000 : 1;
    const rate = throughput(S.alpha, S.k, S.c * unit, (S.v + S.o) * unit),
      speeds = {
        ...values,
        draft: ms ? formatDuration(S.c * ms) : toFixed(S.c, 3),
        verify: ms ? formatDuration((S.v + S.o) * ms) : toFixed(S.v + S.o),
        rate: ms
          ? fillText(R.per_second, { rate: toFixed(rate, 0) })
          : fillText(R.per_pass, { rate: toFixed(rate) }),
      };
    part.recursion.replaceChildren(
      ...[
        fillText(R.rule, values),
        chain,
        fillText(R.closed, values),
        fillText(R.tokens, values),
        fillText(R.throughput, speeds),
      ].map((row) => html("p", {}, lowered(row))),
    );
    const v = cost(1),
      need = breakEven(S.c, v, S.o),
      B = W.break_even,
      about = {
        c: toFixed(S.c, 3),
        v: toFixed(v),
        o: toFixed(S.o, 3),
        need: toFixed(need),
        alpha: toFixed(S.alpha),
      };
    part.breakeven.textContent = joinSentences(
      fillText(need > 1 ? B.never : S.alpha > need ? B.pays : B.loses, about),
      fillText(B.free, about),
    );
  }

  /* What stands behind an underscore is an index. */
  const lowered = (row) =>
    row.split(/_(\d+|\w(?:\+1)?)/).map((piece, i) => (i % 2 ? html("sub", {}, piece) : piece));

  return { kept: () => paintKept(ofRun()), recursion: () => paintRecursion(ofRun()) };
}
