/* A cycle of a server taken apart: what there is, and what it does not tell. */

import { h } from "#page/race/kit.js";
import { fill, words } from "#page/race/text.js";
import { figure, mark, note, title } from "#page/step/marks.js";

/* `row` draws the target's row. */
export function served({ W, PW, now, passTime }, row) {
  const V = W.served;

  /* Of the draft and of the pass. */
  function sentence(step, n) {
    return [words(!n ? V.plain : step === "draft" ? V.draft : V.check, { n, time: passTime() })];
  }

  function judged(node) {
    const draft = now().cycle.drafts[node],
      { kept } = now().verdict.trials[node],
      told = { n: node + 1, verdict: h("b", {}, kept ? W.judge.keep : W.judge.reject) };
    if (!draft.piece) return fill(V.unnamed, told);
    return fill(draft.p == null ? V.bare : V.p, {
      ...told,
      x: mark(kept ? "acc" : "rej", draft.piece),
      p: draft.p == null ? "" : figure(draft.p),
    });
  }

  /* Beside a judgement: the target's row, as far as it is told, and a list of what is not. */
  function evidence(draft, width) {
    const known = draft.target && draft.target.top.length;
    return [
      [
        title(V.row),
        known ? row(width, draft) : note(draft.piece ? W.no_laws : PW.server.unnamed_tip),
      ],
      [
        title(W.position.test),
        h(
          "ul",
          { class: "sd-untold" },
          Object.values(V.untold).map((line) => h("li", {}, line)),
        ),
      ],
    ];
  }

  function ownEvidence(own, width) {
    return [
      [title(W.own.row), own.distribution ? row(width) : note(W.no_laws)],
      [title(V.replaced), h("p", {}, V.replaced_lead)],
    ];
  }

  return { sentence, judged, evidence, ownEvidence };
}
