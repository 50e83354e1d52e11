/* Greedy text: token by token the same as plain decoding's, or where it parts. */

import { h, chip } from "#page/race/kit.js";
import { words, sentences } from "#page/race/text.js";
import { NEAR, figure } from "#page/lossless/reading.js";
import { note } from "#page/lossless/signs.js";

export function greedyText(W, PW, level) {
  function paintGreedy(certificate) {
    const G = W.greedy,
      { equal, of, start, gap } = certificate.greedy,
      passed = equal === of,
      at = passed ? -1 : equal - start,
      notes = [];
    const row = (pieces, spoken) =>
      h(
        "div",
        { class: "sd-chips" },
        start ? "… " : null,
        pieces.map((piece, i) =>
          chip(
            PW,
            piece,
            spoken && i === at ? "rej" : "pla",
            "span",
            !spoken ? G.plain : at < 0 || i < at ? G.same : i === at ? G.other : G.behind,
          ),
        ),
        start + pieces.length < of ? " …" : null,
      );
    if (gap !== null)
      notes.push(
        words(G.gap, { gap: figure(gap) }),
        certificate.mistake ? "" : gap > NEAR ? G.far : G.near,
      );
    level(
      "greedy",
      passed,
      G.title,
      words(passed ? G.equal : G.differs, { of, n: equal + 1 }),
      G.lead,
      h(
        "div",
        { class: "sd-diff" },
        h("span", { class: "sd-sub" }, G.plain),
        row(certificate.greedy.plain, false),
        h("span", { class: "sd-sub" }, G.speculative),
        row(certificate.greedy.speculative, true),
      ),
      note(sentences(notes)),
    );
  }

  return paintGreedy;
}
