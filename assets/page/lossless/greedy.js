/* Compares greedy text with plain decoding's token by token, and shows where it first differs. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { NEAR_TIE } from "#page/lossless/reading.js";
import { formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

export function createGreedyText(texts, playerTexts, setLevel) {
  function paintGreedy(certificate) {
    const labels = texts.greedy,
      { equal, of: length, start, gap } = certificate.greedy,
      passed = equal === length,
      differsAt = passed ? -1 : equal - start,
      notes = [];
    const createTokens = (pieces, isSpeculative) =>
      html(
        "div",
        { class: "sd-chips" },
        start ? "… " : null,
        pieces.map((piece, i) =>
          createChip(
            playerTexts,
            piece,
            isSpeculative && i === differsAt ? "rej" : "pla",
            "span",
            !isSpeculative
              ? labels.plain
              : differsAt < 0 || i < differsAt
                ? labels.same
                : i === differsAt
                  ? labels.other
                  : labels.behind,
          ),
        ),
        start + pieces.length < length ? " …" : null,
      );
    if (gap !== null)
      notes.push(
        fillText(labels.gap, { gap: formatFigure(gap) }),
        certificate.mistake ? "" : gap > NEAR_TIE ? labels.far : labels.near,
      );
    setLevel(
      "greedy",
      passed,
      labels.title,
      fillText(passed ? labels.equal : labels.differs, { of: length, n: equal + 1 }),
      labels.lead,
      html(
        "div",
        { class: "sd-diff" },
        html("span", { class: "sd-sub" }, labels.plain),
        createTokens(certificate.greedy.plain, false),
        html("span", { class: "sd-sub" }, labels.speculative),
        createTokens(certificate.greedy.speculative, true),
      ),
      createNote(joinSentences(notes)),
    );
  }

  return paintGreedy;
}
