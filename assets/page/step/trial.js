/* The test that a draft takes: where its coin fell, or what a rule without a coin asks of it. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { formatApart, clamp } from "#page/race/format.js";
import { FIRST_CHOICE, SAMPLE_AND_MATCH } from "#page/step/judge.js";
import { formatFigure, createMark, createNote, createFormula } from "#page/step/marks.js";

export function createTrials({ W, S, now, isGreedy }) {
  const P = W.position,
    letters = () => W.notation[S.notation];

  const verdictOf = (draft, trial, ...lead) =>
    html(
      "p",
      { class: "sd-so" },
      ...lead,
      createMark(trial.kept ? "acc" : "rej", draft.piece),
      " ",
      html("b", {}, trial.kept ? P.stays : P.goes),
    );

  const pin = (x, label, width) => [
    svgLine(x, 22, x, 74, "sd-pin"),
    svg("circle", { cx: x, cy: 19, r: 5, class: "sd-dot-a" }),
    svgText(clamp(x, 34, width - 34), 8, label, "sd-b", "middle"),
  ];

  /* A strip from 0 to 1, green where the token stays, hatched where it goes, and the pin where the coin fell. */
  function coin(draft, trial, width) {
    const H = createHatch(),
      r = trial.chance,
      { u } = trial,
      g = svgRoot(width, 96, P.coin_aria, H.defs),
      [us, rs] = formatApart(u, r);
    g.dataset.coin = ""; // `questions.js` lets it be dragged
    g.append(
      svgRect(0, 44, width * r, 26, { class: "sd-f-acc sd-o-acc" }),
      svgRect(width * r, 44, width * (1 - r), 26, { fill: H.fill, class: "sd-s-rej" }),
      svgText(0, 88, "0"),
      svgText(width, 88, "1", "", "end"),
    );
    if (r > 0.04 && r < 0.96) g.append(svgText(width * r, 88, rs, "sd-b", "middle"));
    if (width * r > 50) g.append(svgText(8, 61, P.keep, "sd-on"));
    if (width * (1 - r) > 76)
      g.append(
        svgRect(width - 54, 48, 48, 18, { class: "sd-f-rej", rx: 3 }),
        svgText(width - 10, 61, P.reject, "sd-on", "end"),
      );
    g.append(svg("g", { class: "sd-drop" }, pin(width * u, "u = " + us, width)));
    const ratio =
      trial.h != null
        ? fillText(P.formula_block, { h: formatFigure(trial.h) })
        : `${letters().ratio} = ${formatFigure(trial.p)} / ${formatFigure(trial.q)} = ${formatFigure(trial.p / trial.q)}`;
    return [
      g,
      verdictOf(draft, trial, fillText(P.so, { u: us, sign: trial.kept ? "<" : "≥", r: rs }), " "),
      createFormula(ratio),
      createNote(trial.h != null ? P.note_block : isGreedy() ? P.note_is_greedy : P.note_greedy),
    ];
  }

  /* The test of a rule without a coin. */
  function plainTest(draft, trial, width) {
    if (trial.limit != null)
      return [
        threshold(trial, width),
        verdictOf(draft, trial),
        createFormula(
          fillText(P.formula_typical, {
            name: letters().p_short,
            p: formatFigure(trial.p),
            sign: trial.kept ? "≥" : "<",
            limit: formatFigure(trial.limit),
          }),
        ),
        createNote(P.note_typical),
      ];
    const { rule } = now().verdict,
      first = rule === FIRST_CHOICE,
      wanted = trial.sample
        ? html(
            "p",
            { class: "sd-so" },
            ...fillTemplate(first ? P.first : P.sample, {
              x: createMark(trial.kept ? "acc" : "res", trial.sample.piece),
            }),
          )
        : null;
    return [
      wanted,
      verdictOf(draft, trial),
      createNote(first ? P.note_first : rule === SAMPLE_AND_MATCH ? P.note_match : P.note_noise),
    ].filter(Boolean);
  }

  function threshold(trial, width) {
    const most = Math.max(trial.p, trial.limit) * 1.25,
      x = (v) => (v / most) * width,
      H = createHatch(),
      g = svgRoot(width, 96, P.test, H.defs),
      at = x(trial.limit);
    g.append(
      svgRect(0, 44, at, 26, { fill: H.fill, class: "sd-s-rej" }),
      svgRect(at, 44, width - at, 26, { class: "sd-f-acc sd-o-acc" }),
      svgText(0, 88, "0"),
      svgText(at, 88, formatFigure(trial.limit), "sd-b", "middle"),
      svgText(width, 88, formatFigure(most), "", "end"),
    );
    g.append(...pin(x(trial.p), letters().p_short + " " + formatFigure(trial.p), width));
    return g;
  }

  /* By the coin where there is one. */
  return (draft, trial, width) => (trial.u != null ? coin : plainTest)(draft, trial, width);
}
