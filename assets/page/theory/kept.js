/* How many drafts of a cycle are kept: the distribution, the sum behind it, and the acceptance rate that pays. */

import { h, text, line, rect } from "#page/race/kit.js";
import { words, sentences, fixed, duration } from "#page/race/text.js";
import {
  expectedAccepted,
  acceptedDistribution,
  throughput,
  breakEven,
} from "#page/theory/formulas.js";
import { range, ticks } from "#page/theory/axes.js";

export function keptDrafts({ W, part, S, frame, here: ofRun, cost }) {
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
    g.append(line(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"));
    chances.forEach((chance, n) => {
      g.append(
        rect(x(n) - wide / 2, y(chance), wide, A.floor - y(chance), {
          class: n === S.k ? "sd-f-bon sd-o-bon" : "sd-f-acc sd-o-acc",
        }),
      );
      if (step > 30)
        g.append(
          text(x(n), y(Math.max(chance, seen ? seen[n] : 0)) - 7, fixed(chance), "", "middle"),
        );
      if (seen)
        g.append(
          line(x(n) - wide / 2 - 2, y(seen[n]), x(n) + wide / 2 + 2, y(seen[n]), "sd-th-seen"),
        );
    });
    ticks(
      A,
      chances.map((_, n) => [x(n), n, n === S.k ? "sd-b" : ""]),
      W.kept.axis,
    );
    part.kept.replaceChildren(g);
    part.keptsub.textContent = words(seen ? W.kept.sub_seen : W.kept.sub, {
      k: S.k,
      n: here ? here.keptOf.length : 0,
    });
  }

  function paintRecursion(here) {
    const R = W.recursion,
      shown = range(Math.max(0, S.k - 3), S.k)
        .reverse()
        .map((j) => `E_${j} = ${fixed(expectedAccepted(S.alpha, S.k, j))}`),
      first = expectedAccepted(S.alpha, S.k),
      values = { n: S.k, p: fixed(S.alpha), first: fixed(first), tokens: fixed(first + 1) };
    const chain = shown.join("  →  ") + (S.k > 3 ? "  →  …  →  E_0 = " + fixed(first) : ""),
      ms = here ? here.passMs : null,
      unit = ms ? ms / 1000 : 1;
    const rate = throughput(S.alpha, S.k, S.c * unit, (S.v + S.o) * unit),
      speeds = {
        ...values,
        draft: ms ? duration(S.c * ms) : fixed(S.c, 3),
        verify: ms ? duration((S.v + S.o) * ms) : fixed(S.v + S.o),
        rate: ms
          ? words(R.per_second, { rate: fixed(rate, 0) })
          : words(R.per_pass, { rate: fixed(rate) }),
      };
    part.recursion.replaceChildren(
      ...[
        words(R.rule, values),
        chain,
        words(R.closed, values),
        words(R.tokens, values),
        words(R.throughput, speeds),
      ].map((row) => h("p", {}, lowered(row))),
    );
    const v = cost(1),
      need = breakEven(S.c, v, S.o),
      B = W.break_even,
      about = {
        c: fixed(S.c, 3),
        v: fixed(v),
        o: fixed(S.o, 3),
        need: fixed(need),
        alpha: fixed(S.alpha),
      };
    part.breakeven.textContent = sentences(
      words(need > 1 ? B.never : S.alpha > need ? B.pays : B.loses, about),
      words(B.free, about),
    );
  }

  /* What stands behind an underscore is an index. */
  const lowered = (row) =>
    row.split(/_(\d+|\w(?:\+1)?)/).map((piece, i) => (i % 2 ? h("sub", {}, piece) : piece));

  return { kept: () => paintKept(ofRun()), recursion: () => paintRecursion(ofRun()) };
}
