/* The sample: how far what was drawn lies from the target, after one token, two and three. */

import { h, s, text, line, rect, svg } from "#page/race/kit.js";
import { words, sentences, niceStep } from "#page/race/text.js";
import {
  FALSE_ALARM,
  sampleAt,
  isRed,
  checksOf,
  count,
  roughly,
  figure,
} from "#page/lossless/reading.js";
import { note } from "#page/lossless/signs.js";

export function sampledTexts(W, level) {
  function paintSampled(certificate, asked) {
    const P = W.sampled,
      sample = sampleAt(certificate, asked),
      exact = certificate.mistake && certificate.closed.error !== null ? certificate.exact : null,
      { sampled } = checksOf(certificate, asked),
      draws = count(sample ? sample[0] : 0),
      box = h("div", {}),
      notes = [];
    const [, , g, degrees, tail, impossible] = sample ? sample[1][sample[1].length - 1] : [];
    const p =
      tail < FALSE_ALARM
        ? P.tiny
        : tail < 1
          ? words(P.chance, { p: tail < 0.005 ? figure(tail) : tail.toFixed(2) })
          : P.usual;
    const result = !sample
      ? "–"
      : g === null
        ? words(P.ruled_out, { n: count(impossible), draws })
        : words(P.figure, { g: count(g), degrees, chance: p });
    if (exact)
      notes.push(
        words(P.exact, { paths: count(exact.paths), tv: figure(exact.tv[2]) }),
        exact.needed && words(P.needed, { needed: roughly(exact.needed) }),
      );
    level(
      "sampled",
      sampled,
      words(P.title, { draws }),
      result,
      P.lead,
      box,
      note(sentences(notes)),
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
      g = svg(width, 134, W.sampled.aria);
    found.forEach(([tv, band, ...more], i) => {
      const y = 18 + i * 32,
        red = isRed([tv, band, ...more]),
        at = x(tv);
      g.append(
        text(0, y + 4, W.sampled.rows[i], "sd-k"),
        line(left, y, width, y, "sd-grid"),
        rect(left, y - 9, x(band) - left, 18, { class: "sd-f-pla" }),
      );
      if (exact) g.append(line(x(exact.tv[i]), y - 12, x(exact.tv[i]), y + 12, "sd-mean"));
      g.append(
        red
          ? s("path", { d: `M${at - 6} ${y - 6}l12 12m0 -12l-12 12`, class: "sd-cross" })
          : s("circle", { cx: at, cy: y, r: 6, class: "sd-f-acc sd-fine" }),
        text(Math.max(at, exact ? x(exact.tv[i]) : 0) + 13, y + 4, tv.toFixed(3), "sd-b"),
      );
    });
    g.append(line(left, 104, width, 104, "sd-ax"));
    const step = niceStep(most, room / 70);
    for (let v = 0; v <= most; v += step)
      g.append(text(x(v), 121, v.toFixed(step < 0.01 ? 3 : 2), "", "middle"));
    return g;
  }

  return paintSampled;
}
