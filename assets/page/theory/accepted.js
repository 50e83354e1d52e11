/* Shows how many drafts a cycle accepts, and the break-even α. */

import { html } from "#page/race/html.js";
import { svgText, svgLine, svgRect } from "#page/race/svg.js";
import { fillText } from "#page/race/text.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import { expectedAccepted, acceptedDistribution, throughput, breakEven } from "#page/theory/formulas.js";
import { range } from "#page/theory/format.js";
import { drawTicks } from "#page/theory/axes.js";

/** @param {TheoryPage} page */
export function createAcceptedDrafts({ texts, part, settings, createFrame, measured: measuredRun, checkCost }) {
  function paintAccepted(/** @type {Measured} */ measured) {
    const frame = createFrame("kept", 210, texts.kept.aria, { left: 30, bottom: 40, top: 20 }),
      { chart } = frame,
      chances = acceptedDistribution(settings.alpha, settings.k),
      observed =
        settings.usesRun && measured.acceptedCounts.length
          ? chances.map(
              (_, n) => measured.acceptedCounts.filter((count) => count === n).length / measured.acceptedCounts.length,
            )
          : null;
    const highest = Math.max(...chances, ...(observed || [])),
      step = frame.plotWidth / chances.length,
      x = (/** @type {number} */ n) => frame.left + (n + 0.5) * step,
      y = (/** @type {number} */ chance) => frame.floor - (chance / highest) * frame.plotHeight,
      barWidth = Math.min(44, step * 0.68);
    chart.append(svgLine(frame.left, frame.floor, frame.left + frame.plotWidth, frame.floor, "sd-ax"));
    chances.forEach((chance, n) => {
      chart.append(
        svgRect(x(n) - barWidth / 2, y(chance), barWidth, frame.floor - y(chance), {
          class: n === settings.k ? "sd-f-bonus sd-o-bonus" : "sd-f-accepted sd-o-accepted",
        }),
      );
      if (step > 30)
        chart.append(svgText(x(n), y(Math.max(chance, observed ? observed[n] : 0)) - 7, toFixed(chance), "", "middle"));
      if (observed)
        chart.append(
          svgLine(x(n) - barWidth / 2 - 2, y(observed[n]), x(n) + barWidth / 2 + 2, y(observed[n]), "sd-th-seen"),
        );
    });
    drawTicks(
      frame,
      chances.map((_, n) => [x(n), n, n === settings.k ? "sd-b" : ""]),
      texts.kept.axis,
    );
    part.kept.replaceChildren(chart);
    part.keptsub.textContent = fillText(observed ? texts.kept.sub_seen : texts.kept.sub, {
      k: settings.k,
      n: measured ? measured.acceptedCounts.length : 0,
    });
  }

  function paintRecursion(/** @type {Measured} */ measured) {
    const labels = texts.recursion,
      equations = range(Math.max(0, settings.k - 3), settings.k)
        .reverse()
        .map((j) => `E_${j} = ${toFixed(expectedAccepted(settings.alpha, settings.k, j))}`),
      meanAccepted = expectedAccepted(settings.alpha, settings.k),
      values = {
        n: settings.k,
        p: toFixed(settings.alpha),
        first: toFixed(meanAccepted),
        tokens: toFixed(meanAccepted + 1),
      };
    const chain = equations.join("  →  ") + (settings.k > 3 ? "  →  …  →  E_0 = " + toFixed(meanAccepted) : ""),
      ms = measured ? measured.passMs : null,
      unit = ms ? ms / 1000 : 1;
    const rate = throughput(settings.alpha, settings.k, settings.c * unit, (settings.v + settings.o) * unit),
      speeds = {
        ...values,
        draft: ms ? formatDuration(settings.c * ms) : toFixed(settings.c, 3),
        verify: ms ? formatDuration((settings.v + settings.o) * ms) : toFixed(settings.v + settings.o),
        rate: ms
          ? fillText(labels.per_second, { rate: toFixed(rate, 0) })
          : fillText(labels.per_pass, { rate: toFixed(rate) }),
      };
    part.recursion.replaceChildren(
      ...[
        fillText(labels.rule, values),
        chain,
        fillText(labels.closed, values),
        fillText(labels.tokens, values),
        fillText(labels.throughput, speeds),
      ].map((row) => html("p", {}, createSubscripts(row))),
    );
    part.breakeven.textContent = fillText(texts.break_even, {
      need: toFixed(breakEven(settings.c, checkCost(1), settings.o)),
      alpha: toFixed(settings.alpha),
    });
  }

  const createSubscripts = (/** @type {string} */ row) =>
    row.split(/_(\d+|\w(?:\+1)?)/).map((piece, i) => (i % 2 ? html("sub", {}, piece) : piece));

  return { kept: () => paintAccepted(measuredRun()), recursion: () => paintRecursion(measuredRun()) };
}
