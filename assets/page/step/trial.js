/* The test that a draft takes: where its coin fell, or what a rule without a coin asks of it. */

import { h, s, text, line, rect, svg, hatch } from "#page/race/kit.js";
import { fill, words, apart, clamp } from "#page/race/text.js";
import { FIRST, MATCH } from "#page/step/judge.js";
import { figure, mark, note, formula } from "#page/step/marks.js";

export function trials({ W, S, now, isGreedy }) {
  const P = W.position,
    letters = () => W.notation[S.notation];

  const verdictOf = (draft, trial, ...lead) =>
    h(
      "p",
      { class: "sd-so" },
      ...lead,
      mark(trial.kept ? "acc" : "rej", draft.piece),
      " ",
      h("b", {}, trial.kept ? P.stays : P.goes),
    );

  const pin = (x, label, width) => [
    line(x, 22, x, 74, "sd-pin"),
    s("circle", { cx: x, cy: 19, r: 5, class: "sd-dot-a" }),
    text(clamp(x, 34, width - 34), 8, label, "sd-b", "middle"),
  ];

  /* A strip from 0 to 1, green where the token stays, hatched where it goes, and the pin where the coin fell. */
  function coin(draft, trial, width) {
    const H = hatch(),
      r = trial.chance,
      { u } = trial,
      g = svg(width, 96, P.coin_aria, H.defs),
      [us, rs] = apart(u, r);
    g.dataset.coin = ""; // `questions.js` lets it be dragged
    g.append(
      rect(0, 44, width * r, 26, { class: "sd-f-acc sd-o-acc" }),
      rect(width * r, 44, width * (1 - r), 26, { fill: H.fill, class: "sd-s-rej" }),
      text(0, 88, "0"),
      text(width, 88, "1", "", "end"),
    );
    if (r > 0.04 && r < 0.96) g.append(text(width * r, 88, rs, "sd-b", "middle"));
    if (width * r > 50) g.append(text(8, 61, P.keep, "sd-on"));
    if (width * (1 - r) > 76)
      g.append(
        rect(width - 54, 48, 48, 18, { class: "sd-f-rej", rx: 3 }),
        text(width - 10, 61, P.reject, "sd-on", "end"),
      );
    g.append(s("g", { class: "sd-drop" }, pin(width * u, "u = " + us, width)));
    const ratio =
      trial.h != null
        ? words(P.formula_block, { h: figure(trial.h) })
        : `${letters().ratio} = ${figure(trial.p)} / ${figure(trial.q)} = ${figure(trial.p / trial.q)}`;
    return [
      g,
      verdictOf(draft, trial, words(P.so, { u: us, sign: trial.kept ? "<" : "≥", r: rs }), " "),
      formula(ratio),
      note(trial.h != null ? P.note_block : isGreedy() ? P.note_is_greedy : P.note_greedy),
    ];
  }

  /* The test of a rule without a coin. */
  function plainTest(draft, trial, width) {
    if (trial.limit != null)
      return [
        threshold(trial, width),
        verdictOf(draft, trial),
        formula(
          words(P.formula_typical, {
            name: letters().p_short,
            p: figure(trial.p),
            sign: trial.kept ? "≥" : "<",
            limit: figure(trial.limit),
          }),
        ),
        note(P.note_typical),
      ];
    const { rule } = now().verdict,
      first = rule === FIRST,
      wanted = trial.sample
        ? h(
            "p",
            { class: "sd-so" },
            ...fill(first ? P.first : P.sample, {
              x: mark(trial.kept ? "acc" : "res", trial.sample.piece),
            }),
          )
        : null;
    return [
      wanted,
      verdictOf(draft, trial),
      note(first ? P.note_first : rule === MATCH ? P.note_match : P.note_noise),
    ].filter(Boolean);
  }

  function threshold(trial, width) {
    const most = Math.max(trial.p, trial.limit) * 1.25,
      x = (v) => (v / most) * width,
      H = hatch(),
      g = svg(width, 96, P.test, H.defs),
      at = x(trial.limit);
    g.append(
      rect(0, 44, at, 26, { fill: H.fill, class: "sd-s-rej" }),
      rect(at, 44, width - at, 26, { class: "sd-f-acc sd-o-acc" }),
      text(0, 88, "0"),
      text(at, 88, figure(trial.limit), "sd-b", "middle"),
      text(width, 88, figure(most), "", "end"),
    );
    g.append(...pin(x(trial.p), letters().p_short + " " + figure(trial.p), width));
    return g;
  }

  /* By the coin where there is one. */
  return (draft, trial, width) => (trial.u != null ? coin : plainTest)(draft, trial, width);
}
