/* Shows a cycle of a vLLM or llama.cpp server, and what the server does not report. */

import { html } from "#page/race/html.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { formatFigure, createMark, createNote, createTitle } from "#page/step/marks.js";

/** `drawRow` draws the target's distribution at one position. @param {StepPage} page
 * @param {(width: number, draft?: Draft) => Child} drawRow */
export function createServerViews({ texts, playerTexts, current, passTime }, drawRow) {
  const serverTexts = texts.served;

  /* Writes the sentence of the sub-step draft or check, in a cycle with `n` drafts. */
  function draftSentence(/** @type {Step} */ step, /** @type {number} */ n) {
    return [
      fillText(!n ? serverTexts.plain : step === "draft" ? serverTexts.draft : serverTexts.check, {
        n,
        time: passTime(),
      }),
    ];
  }

  function judgeSentence(/** @type {number} */ node) {
    const draft = current().cycle.drafts[node],
      { accepted } = current().verdict.trials[node],
      values = {
        n: node + 1,
        verdict: html("b", {}, accepted ? texts.judge.keep : texts.judge.reject),
      };
    if (!draft.piece) return fillTemplate(serverTexts.unnamed, values);
    return fillTemplate(draft.p == null ? serverTexts.bare : serverTexts.p, {
      ...values,
      x: createMark(accepted ? "accepted" : "rejected", draft.piece),
      p: draft.p == null ? "" : formatFigure(draft.p),
    });
  }

  function evidence(/** @type {Draft} */ draft, /** @type {number} */ width) {
    const hasRow = draft.target && draft.target.top.length;
    return [
      [
        createTitle(serverTexts.row),
        hasRow ? drawRow(width, draft) : createNote(draft.piece ? texts.no_laws : playerTexts.server.unnamed_tip),
      ],
      [
        createTitle(texts.position.test),
        html(
          "ul",
          { class: "sd-untold" },
          Object.values(serverTexts.untold).map((line) => html("li", {}, line)),
        ),
      ],
    ];
  }

  function targetEvidence(/** @type {any} */ targetToken, /** @type {number} */ width) {
    return [
      [createTitle(texts.own.row), targetToken.distribution ? drawRow(width) : createNote(texts.no_laws)],
      [createTitle(serverTexts.replaced), html("p", {}, serverTexts.replaced_lead)],
    ];
  }

  return { draftSentence, judgeSentence, evidence, targetEvidence };
}
