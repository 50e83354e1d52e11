/* Asks what another coin, K or rule would change in a cycle. */

import { html, createChoice } from "#page/race/html.js";
import { clamp } from "#page/race/format.js";
import { fillText, joinSentences, formatPiece } from "#page/race/text.js";
import { SHARED_NOISE } from "#page/race/run.js";
import { SAMPLE_AND_MATCH, RULES, whatIsMissing } from "#page/step/judge.js";
import { formatFigure } from "#page/step/marks.js";

const DRAG_PX = 6; // a touch becomes a drag when the finger has moved this far

export function createQuestions(/** @type {StepPage} */ page, /** @type {() => any} */ focusedNode) {
  const { texts, part, view } = page;

  function paint() {
    paintNotation();
    paintCoin();
    paintShorter();
    paintRule();
  }

  function paintNotation() {
    pressNotation(view.notation);
    part.notes.textContent = texts.notation[view.notation].hint;
    part.klabel.textContent = texts.notation[view.notation].k;
  }

  const countTokens = (/** @type {number} */ n) => (n === 1 ? texts.what_if.one : fillText(texts.what_if.many, { n }));
  const setEnabled = (/** @type {Part} */ input, /** @type {boolean} */ on) => {
    input.disabled = !on;
    input.closest(".sd-ask")?.toggleAttribute("data-off", !on);
  };

  function paintCoin() {
    const current = page.current(),
      { verdict, cycle, changed } = current,
      labels = texts.what_if,
      node = view.coin ?? focusedNode(),
      trial = node === null ? null : verdict.trials[node],
      canAsk = trial && trial.u != null && !whatIsMissing(cycle, verdict.rule);
    setEnabled(part.coin, Boolean(canAsk));
    if (!canAsk) {
      part.coinvalue.textContent = "–";
      part.coinanswer.textContent = cycle.served
        ? texts.lacks.server
        : node === null
          ? labels.coin_where
          : trial && trial.u == null
            ? labels.coin_none
            : texts.lacks[whatIsMissing(cycle, verdict.rule) ?? ""] || labels.coin_where;
      return;
    }
    view.coin = node;
    part.coin.value = trial.u;
    part.coinvalue.textContent = trial.u.toFixed(2);
    const piece = "“" + formatPiece(cycle.drafts[node].piece) + "”",
      chance = formatFigure(trial.chance),
      wasMoved = changed && view.choice.coins && view.choice.coins[node] != null,
      values = { x: piece, r: chance, tokens: countTokens(current.gained) };
    part.coinanswer.textContent = fillText(
      trial.chance >= 1
        ? labels.coin_sure
        : trial.chance <= 0
          ? labels.coin_never
          : !wasMoved
            ? trial.accepted
              ? labels.coin_below
              : labels.coin_above
            : trial.accepted
              ? isNextCoinFresh(node)
                ? labels.coin_next
                : labels.coin_stays
              : labels.coin_goes,
      values,
    );
  }

  function isNextCoinFresh(/** @type {number} */ node) {
    const { verdict, cycle } = page.current(),
      next = verdict.order[verdict.order.indexOf(node) + 1];
    return next != null && cycle.drafts[next].u == null;
  }

  function paintShorter() {
    const current = page.current(),
      { cycle, verdict, gained } = current,
      labels = texts.what_if,
      depth = Math.max(0, ...cycle.drafts.map((draft) => draft.level)),
      missing = whatIsMissing(cycle, verdict.rule),
      k = view.choice.k ?? depth;
    setEnabled(part.k, depth > 1 && !missing);
    part.k.max = Math.max(1, depth);
    part.k.value = k || 1;
    part.kvalue.textContent = String(k || "–");
    const dropped = cycle.drafts.filter((draft) => draft.level > k).length,
      values = { tokens: countTokens(gained), was: cycle.gained, saved: dropped };
    part.kanswer.textContent =
      depth < 2
        ? labels.k_short
        : missing
          ? texts.lacks[missing]
          : view.choice.k == null
            ? labels.k_same
            : fillText(
                current.targetToken && current.targetToken.state === "bonus"
                  ? labels.k_bonus
                  : gained === cycle.gained
                    ? labels.k_equal
                    : labels.k_other,
                values,
              );
  }

  function paintRule() {
    const { cycle, gained, verdict } = page.current(),
      labels = texts.what_if,
      ranRule = page.rule(),
      reasons = /** @type {string[]} */ ([]);
    for (const option of part.rule.options) {
      // sample and match needs samples that do not depend on the draft; with shared noise they do
      const noiseReason = ranRule === SHARED_NOISE && option.value === SAMPLE_AND_MATCH && "tied";
      const reason = cycle.drafts.length
        ? (cycle.served || option.value !== ranRule) && (noiseReason || whatIsMissing(cycle, option.value))
        : "nothing";
      option.disabled = Boolean(reason);
      if (reason && !reasons.includes(reason)) reasons.push(reason);
    }
    part.rule.value = cycle.served ? "" : verdict.rule;
    setEnabled(part.rule, cycle.drafts.length > 0 && !cycle.served);
    const answer = cycle.served
      ? ""
      : view.choice.rule == null
        ? labels.rule_same
        : joinSentences(
            fillText(labels.rule_gives, { tokens: countTokens(gained), was: cycle.gained }),
            labels.rules[verdict.rule],
          );
    part.ruleanswer.textContent = joinSentences(
      answer,
      reasons.map((reason) => texts.lacks[reason]),
    );
  }

  /* Asks how this cycle ends with the choices in `change`. Drops a rule or K that changes nothing. */
  function askQuestion(/** @type {any} */ change) {
    page.pauseAnd(() => {
      view.choice = { ...view.choice, ...change };
      if (view.choice.rule === page.rule()) delete view.choice.rule;
      if (
        view.choice.k != null &&
        view.choice.k >= Math.max(...page.current().cycle.drafts.map((draft) => draft.level))
      )
        delete view.choice.k;
      page.draw();
    });
  }

  function askCoin(/** @type {number} */ u) {
    const node = (view.step = Number(view.coin));
    askQuestion({ coins: { ...view.choice.coins, [node]: u } });
  }

  function dragCoin(/** @type {any} */ event) {
    const strip = event.target.closest("[data-coin]");
    if (!strip || part.coin.disabled || event.button) return;
    const { left, width } = strip.getBoundingClientRect(),
      highest = Number(part.coin.max),
      { cycle } = page.current(),
      drag = new AbortController();
    let isDragging = event.pointerType !== "touch"; // a finger may be starting to scroll
    const moveCoin = (/** @type {PointerEvent} */ { clientX }) => {
      isDragging ||= Math.abs(clientX - event.clientX) > DRAG_PX;
      if (page.current().cycle !== cycle) drag.abort();
      else if (isDragging) askCoin(clamp((clientX - left) / width, 0, highest));
    };
    addEventListener("pointermove", moveCoin, drag); // `drag` has the option `signal`
    for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => drag.abort(), drag);
    event.preventDefault(); // otherwise a drag would select text
    moveCoin(event);
  }

  const pressNotation = createChoice(
    part.notation,
    ["plain", "lev", "chen"].map((name) => [name, texts.notation[name].name]),
    (name) => {
      view.notation = name;
      page.draw();
    },
  );
  part.rule.append(...RULES.map((name) => html("option", { value: name }, texts.what_if.names[name])));
  part.right.addEventListener("pointerdown", dragCoin);
  part.coin.oninput = () => askCoin(+part.coin.value);
  part.k.oninput = () => askQuestion({ k: +part.k.value });
  part.rule.onchange = () => askQuestion({ rule: part.rule.value, coins: view.choice.coins });
  return { paint };
}
