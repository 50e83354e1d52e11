/* The sample: how far what was drawn lies from the target, after one token, two and three. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { niceStep } from "#page/race/format.js";
import { FALSE_ALARM, sampleAt, isImplausible, checksOf } from "#page/lossless/reading.js";
import { formatCount, formatRoughly, formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createSampled(W, level) {
  function paintSampled(certificate, asked) {
    const P = W.sampled,
      sample = sampleAt(certificate, asked),
      exact = certificate.mistake && certificate.closed.error !== null ? certificate.exact : null,
      { sampled } = checksOf(certificate, asked),
      draws = formatCount(sample ? sample[0] : 0),
      box = html("div", {}),
      notes = [];
    const [, , g, degrees, tail, impossible] = sample ? sample[1][sample[1].length - 1] : [];
    const p =
      tail < FALSE_ALARM
        ? P.tiny
        : tail < 1
          ? fillText(P.chance, { p: tail < 0.005 ? formatFigure(tail) : tail.toFixed(2) })
          : P.usual;
    const result = !sample
      ? "–"
      : g === null
        ? fillText(P.ruled_out, { n: formatCount(impossible), draws })
        : fillText(P.figure, { g: formatCount(g), degrees, chance: p });
    if (exact)
      notes.push(
        fillText(P.exact, { paths: formatCount(exact.paths), tv: formatFigure(exact.tv[2]) }),
        exact.needed && fillText(P.needed, { needed: formatRoughly(exact.needed) }),
      );
    level(
      "sampled",
      sampled,
      fillText(P.title, { draws }),
      result,
      P.lead,
      box,
      createNote(joinSentences(notes)),
    );
    if (sample) box.append(distances(sample[1], exact, box.clientWidth));
  }

  function distances(found, exact, width) {
    const left = 96,
      room = width - left - 56,
      most =
        Math.max(0.02, ...found.flatMap(([tv, band]) => [tv, band]), ...(exact ? exact.tv : [])) *
        1.08,
      x = (v) => left + (v / most) * room,
      g = svgRoot(width, 134, W.sampled.aria);
    found.forEach(([tv, band, ...more], i) => {
      const y = 18 + i * 32,
        red = isImplausible([tv, band, ...more]),
        at = x(tv);
      g.append(
        svgText(0, y + 4, W.sampled.rows[i], "sd-k"),
        svgLine(left, y, width, y, "sd-grid"),
        svgRect(left, y - 9, x(band) - left, 18, { class: "sd-f-pla" }),
      );
      if (exact) g.append(svgLine(x(exact.tv[i]), y - 12, x(exact.tv[i]), y + 12, "sd-mean"));
      g.append(
        red
          ? svg("path", { d: `M${at - 6} ${y - 6}l12 12m0 -12l-12 12`, class: "sd-cross" })
          : svg("circle", { cx: at, cy: y, r: 6, class: "sd-f-acc sd-fine" }),
        svgText(Math.max(at, exact ? x(exact.tv[i]) : 0) + 13, y + 4, tv.toFixed(3), "sd-b"),
      );
    });
    g.append(svgLine(left, 104, width, 104, "sd-ax"));
    const step = niceStep(most, room / 70);
    for (let v = 0; v <= most; v += step)
      g.append(svgText(x(v), 121, v.toFixed(step < 0.01 ? 3 : 2), "", "middle"));
    return g;
  }

  return paintSampled;
}
