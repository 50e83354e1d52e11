/* A cycle of a server taken apart: what there is, and what it does not tell. */

import { html } from "#page/race/html.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { formatFigure, createMark, createNote, createTitle } from "#page/step/marks.js";

/* `row` draws the target's row. */
export function createServerViews({ W, PW, now, passTime }, row) {
  const V = W.served;

  /* Of the draft and of the pass. */
  function sentence(step, n) {
    return [fillText(!n ? V.plain : step === "draft" ? V.draft : V.check, { n, time: passTime() })];
  }

  function judged(node) {
    const draft = now().cycle.drafts[node],
      { kept } = now().verdict.trials[node],
      told = { n: node + 1, verdict: html("b", {}, kept ? W.judge.keep : W.judge.reject) };
    if (!draft.piece) return fillTemplate(V.unnamed, told);
    return fillTemplate(draft.p == null ? V.bare : V.p, {
      ...told,
      x: createMark(kept ? "acc" : "rej", draft.piece),
      p: draft.p == null ? "" : formatFigure(draft.p),
    });
  }

  /* Beside a judgement: the target's row, as far as it is told, and a list of what is not. */
  function evidence(draft, width) {
    const known = draft.target && draft.target.top.length;
    return [
      [
        createTitle(V.row),
        known ? row(width, draft) : createNote(draft.piece ? W.no_laws : PW.server.unnamed_tip),
      ],
      [
        createTitle(W.position.test),
        html(
          "ul",
          { class: "sd-untold" },
          Object.values(V.untold).map((line) => html("li", {}, line)),
        ),
      ],
    ];
  }

  function ownEvidence(own, width) {
    return [
      [createTitle(W.own.row), own.distribution ? row(width) : createNote(W.no_laws)],
      [createTitle(V.replaced), html("p", {}, V.replaced_lead)],
    ];
  }

  return { sentence, judged, evidence, ownEvidence };
}
