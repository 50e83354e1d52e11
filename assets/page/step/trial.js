/* Draws a draft's test: where its coin fell, or a condition without a coin. */

import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { formatApart, clamp } from "#page/race/format.js";
import { FIRST_CHOICE, SAMPLE_AND_MATCH } from "#page/step/judge.js";
import { formatFigure, formatRatio, createMark, createNote, createFormula } from "#page/step/marks.js";

export function createTrials(/** @type {StepPage} */ { texts, view, current, isGreedy }) {
  const labels = texts.position,
    notation = () => texts.notation[view.notation];

  const createVerdict = (/** @type {Draft} */ draft, /** @type {Trial} */ trial) =>
    html(
      "p",
      { class: "sd-so" },
      createMark(trial.accepted ? "accepted" : "rejected", draft.piece),
      " ",
      html("b", {}, trial.accepted ? labels.stays : labels.goes),
    );

  const createPin = (/** @type {number} */ x, /** @type {Child} */ label, /** @type {number} */ width) => [
    svgLine(x, 22, x, 74, "sd-pin"),
    svg("circle", { cx: x, cy: 19, r: 5, class: "sd-dot-a" }),
    svgText(clamp(x, 34, width - 34), 8, label, "sd-b", "middle"),
  ];

  function drawCoin(/** @type {Trial} */ trial, /** @type {number} */ width) {
    const hatch = createHatch(),
      { u, chance } = trial,
      isBlock = trial.h != null,
      chart = svgRoot(width, 96, labels.coin_aria, hatch.defs),
      [uText, chanceText] = formatApart(u, chance);
    chart.dataset.coin = ""; // marks the chart for `questions.js`, which lets the visitor drag the coin
    chart.append(
      svgRect(0, 44, width * chance, 26, { class: "sd-f-accepted sd-o-accepted" }),
      svgRect(width * chance, 44, width * (1 - chance), 26, {
        fill: hatch.fill,
        class: "sd-s-rejected",
      }),
      svgText(0, 88, "0"),
      svgText(width, 88, "1", "", "end"),
    );
    if (chance > 0.04 && chance < 0.96) chart.append(svgText(width * chance, 88, chanceText, "sd-b", "middle"));
    if (width * chance > 50) chart.append(svgText(8, 61, labels.keep, "sd-on"));
    if (width * (1 - chance) > 76)
      chart.append(
        svgRect(width - 54, 48, 48, 18, { class: "sd-f-rejected", rx: 3 }),
        svgText(width - 10, 61, labels.reject, "sd-on", "end"),
      );
    chart.append(svg("g", { class: "sd-drop" }, createPin(width * u, "u = " + uText, width)));
    const [p, q, r] = formatRatio(trial.p, trial.q),
      formula = isBlock
        ? fillText(labels.formula_block, { h: formatFigure(trial.h) })
        : fillText(notation().ratio, { p, q, r, chance: formatFigure(chance) });
    const note = isBlock ? labels.note_block : isGreedy() ? labels.note_is_greedy : null;
    return [chart, createFormula(formula), ...(note ? [createNote(note)] : [])];
  }

  function drawPlainTest(/** @type {Draft} */ draft, /** @type {Trial} */ trial, /** @type {number} */ width) {
    if (trial.limit != null)
      return [
        drawThreshold(trial, width),
        createVerdict(draft, trial),
        createFormula(
          fillText(labels.formula_typical, {
            name: notation().p_short,
            p: formatFigure(trial.p),
            sign: trial.accepted ? "≥" : "<",
            limit: formatFigure(trial.limit),
          }),
        ),
        createNote(labels.note_typical),
      ];
    const { rule } = current().verdict,
      isFirstChoice = rule === FIRST_CHOICE,
      wantedToken = trial.sample
        ? html(
            "p",
            { class: "sd-so" },
            ...fillTemplate(isFirstChoice ? labels.first : labels.sample, {
              x: createMark(trial.accepted ? "accepted" : "resampled", trial.sample.piece),
            }),
          )
        : null;
    return [
      wantedToken,
      createVerdict(draft, trial),
      createNote(isFirstChoice ? labels.note_first : rule === SAMPLE_AND_MATCH ? labels.note_match : labels.note_noise),
    ].filter(Boolean);
  }

  function drawThreshold(/** @type {Trial} */ trial, /** @type {number} */ width) {
    const highest = Math.max(trial.p, trial.limit) * 1.25,
      x = (/** @type {number} */ v) => (v / highest) * width,
      hatch = createHatch(),
      chart = svgRoot(width, 96, labels.test, hatch.defs),
      limitX = x(trial.limit);
    chart.append(
      svgRect(0, 44, limitX, 26, { fill: hatch.fill, class: "sd-s-rejected" }),
      svgRect(limitX, 44, width - limitX, 26, { class: "sd-f-accepted sd-o-accepted" }),
      svgText(0, 88, "0"),
      svgText(limitX, 88, formatFigure(trial.limit), "sd-b", "middle"),
      svgText(width, 88, formatFigure(highest), "", "end"),
    );
    chart.append(...createPin(x(trial.p), notation().p_short + " " + formatFigure(trial.p), width));
    return chart;
  }

  return (/** @type {Draft} */ draft, /** @type {Trial} */ trial, /** @type {number} */ width) =>
    trial.u != null ? drawCoin(trial, width) : drawPlainTest(draft, trial, width);
}
