/* Shows both greedy texts, token by token, and where they first differ. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { NEAR_TIE } from "#page/lossless/reading.js";
import { formatFigure } from "#page/lossless/format.js";
import { createNote } from "#page/lossless/stamps.js";

/** @param {LosslessTexts} texts @param {PlayerTexts} playerTexts @param {SetCheck} setCheck */
export function createGreedyText(texts, playerTexts, setCheck) {
  function paintGreedy(/** @type {Certificate} */ certificate) {
    const labels = texts.greedy,
      { equal: equalCount, of: length, start: firstShown, gap: logitGap } = certificate.greedy,
      passed = equalCount === length,
      rest = length - firstShown - certificate.greedy.plain.length,
      differsAt = passed ? -1 : equalCount - firstShown,
      notes = [];
    const createTokens = (/** @type {string[]} */ pieces, /** @type {boolean} */ isSpeculative) =>
      html(
        "div",
        { class: "sd-chips" },
        firstShown ? "… " : null,
        pieces.map((piece, i) =>
          createChip(
            playerTexts,
            piece,
            isSpeculative && i === differsAt ? "rejected" : "plain",
            "span",
            !isSpeculative
              ? labels.plain
              : differsAt < 0 || i < differsAt
                ? labels.same
                : i === differsAt
                  ? labels.other
                  : labels.after,
          ),
        ),
        rest > 0 && fillText(labels.rest, { n: rest }),
      );
    if (logitGap !== null)
      notes.push(
        fillText(labels.gap, { gap: formatFigure(logitGap) }),
        certificate.mistake ? "" : logitGap > NEAR_TIE ? labels.far : labels.near,
      );
    setCheck(
      "greedy",
      passed,
      labels.title,
      fillText(passed ? labels.equal : labels.differs, { of: length, n: equalCount + 1 }),
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
