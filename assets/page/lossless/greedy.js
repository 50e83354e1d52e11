/* Greedy text: token by token the same as plain decoding's, or where it parts. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { NEAR_TIE } from "#page/lossless/reading.js";
import { formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createGreedyText(W, PW, level) {
  function paintGreedy(certificate) {
    const G = W.greedy,
      { equal, of, start, gap } = certificate.greedy,
      passed = equal === of,
      at = passed ? -1 : equal - start,
      notes = [];
    const row = (pieces, spoken) =>
      html(
        "div",
        { class: "sd-chips" },
        start ? "… " : null,
        pieces.map((piece, i) =>
          createChip(
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
        fillText(G.gap, { gap: formatFigure(gap) }),
        certificate.mistake ? "" : gap > NEAR_TIE ? G.far : G.near,
      );
    level(
      "greedy",
      passed,
      G.title,
      fillText(passed ? G.equal : G.differs, { of, n: equal + 1 }),
      G.lead,
      html(
        "div",
        { class: "sd-diff" },
        html("span", { class: "sd-sub" }, G.plain),
        row(certificate.greedy.plain, false),
        html("span", { class: "sd-sub" }, G.speculative),
        row(certificate.greedy.speculative, true),
      ),
      createNote(joinSentences(notes)),
    );
  }

  return paintGreedy;
}
