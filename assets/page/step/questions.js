/* The questions beside a cycle: its notation, and what if the coin, the length or the rule had been another. */

import { html, createChoice } from "#page/race/html.js";
import { clamp } from "#page/race/format.js";
import { fillText, joinSentences, formatPiece } from "#page/race/text.js";
import { SHARED_NOISE } from "#page/race/run.js";
import { SAMPLE_AND_MATCH, RULES, whatIsMissing } from "#page/step/judge.js";
import { formatFigure } from "#page/step/marks.js";

const SLIP = 6; // px of a finger that mean a drag

export function createQuestions(page, focus) {
  const { W, part, S } = page;

  function paint() {
    paintNotation();
    paintCoin();
    paintShorter();
    paintRule();
  }

  function paintNotation() {
    pressNotation(S.notation);
    part.notes.textContent = W.notation[S.notation].hint;
    part.klabel.textContent = W.notation[S.notation].k;
  }

  const tokens = (n) => (n === 1 ? W.what_if.one : fillText(W.what_if.many, { n }));
  const enable = (input, on) => {
    input.disabled = !on;
    input.closest(".sd-ask").toggleAttribute("data-off", !on);
  };

  function paintCoin() {
    const now = page.now(),
      { verdict, cycle, touched } = now,
      A = W.what_if,
      node = S.coin ?? focus(),
      trial = node === null ? null : verdict.trials[node],
      askable = trial && trial.u != null && !whatIsMissing(cycle, verdict.rule);
    enable(part.coin, Boolean(askable));
    if (!askable) {
      part.coinvalue.textContent = "–";
      part.coinanswer.textContent = cycle.served
        ? W.lacks.server
        : node === null
          ? A.coin_where
          : trial && trial.u == null
            ? A.coin_none
            : W.lacks[whatIsMissing(cycle, verdict.rule) ?? ""] || A.coin_where;
      return;
    }
    S.coin = node;
    part.coin.value = trial.u;
    part.coinvalue.textContent = trial.u.toFixed(2);
    const x = "“" + formatPiece(cycle.drafts[node].piece) + "”",
      r = formatFigure(trial.chance),
      moved = touched && S.choice.coins && S.choice.coins[node] != null,
      values = { x, r, tokens: tokens(now.gained) };
    part.coinanswer.textContent = fillText(
      trial.chance >= 1
        ? A.coin_sure
        : trial.chance <= 0
          ? A.coin_never
          : !moved
            ? trial.kept
              ? A.coin_below
              : A.coin_above
            : trial.kept
              ? isNextFresh(node)
                ? A.coin_next
                : A.coin_stays
              : A.coin_goes,
      values,
    );
  }

  function isNextFresh(node) {
    const { verdict, cycle } = page.now(),
      next = verdict.order[verdict.order.indexOf(node) + 1];
    return next != null && cycle.drafts[next].u == null;
  }

  function paintShorter() {
    const now = page.now(),
      { cycle, verdict, gained } = now,
      A = W.what_if,
      deep = Math.max(0, ...cycle.drafts.map((draft) => draft.level)),
      why = whatIsMissing(cycle, verdict.rule),
      k = S.choice.k ?? deep;
    enable(part.k, deep > 1 && !why);
    part.k.max = Math.max(1, deep);
    part.k.value = k || 1;
    part.kvalue.textContent = String(k || "–");
    const saved = cycle.drafts.filter((draft) => draft.level > k).length,
      values = { tokens: tokens(gained), was: cycle.gained, saved };
    part.kanswer.textContent =
      deep < 2
        ? A.k_short
        : why
          ? W.lacks[why]
          : S.choice.k == null
            ? A.k_same
            : fillText(
                now.own && now.own.state === "bon"
                  ? A.k_bonus
                  : gained === cycle.gained
                    ? A.k_equal
                    : A.k_other,
                values,
              );
  }

  function paintRule() {
    const { cycle, gained, verdict } = page.now(),
      A = W.what_if,
      mine = page.rule(),
      missing = [];
    for (const option of part.rule.options) {
      // its draft knows the only draws that a trace holds
      const tied = mine === SHARED_NOISE && option.value === SAMPLE_AND_MATCH && "tied";
      const why = cycle.drafts.length
        ? (cycle.served || option.value !== mine) && (tied || whatIsMissing(cycle, option.value))
        : "nothing";
      option.disabled = Boolean(why);
      if (why && !missing.includes(why)) missing.push(why);
    }
    part.rule.value = cycle.served ? "" : verdict.rule;
    enable(part.rule, cycle.drafts.length > 0 && !cycle.served);
    const values = cycle.served
      ? ""
      : S.choice.rule == null
        ? A.rule_same
        : joinSentences(
            fillText(A.rule_gives, { tokens: tokens(gained), was: cycle.gained }),
            A.rules[verdict.rule],
          );
    part.ruleanswer.textContent = joinSentences(
      values,
      missing.map((why) => W.lacks[why]),
    );
  }

  /* A question is about this cycle as it was: what equals the recorded choice is no question. */
  function ask(change) {
    page.byHand(() => {
      S.choice = { ...S.choice, ...change };
      if (S.choice.rule === page.rule()) delete S.choice.rule;
      if (
        S.choice.k != null &&
        S.choice.k >= Math.max(...page.now().cycle.drafts.map((draft) => draft.level))
      )
        delete S.choice.k;
      page.draw();
    });
  }

  function askCoin(u) {
    const node = S.coin;
    S.step = node;
    ask({ coins: { ...S.choice.coins, [node]: u } });
  }

  /* The drawing of the coin can be dragged, too; each move draws it anew. */
  function drag(event) {
    const strip = event.target.closest("[data-coin]");
    if (!strip || part.coin.disabled || event.button) return;
    const { left, width } = strip.getBoundingClientRect(),
      most = Number(part.coin.max),
      { cycle } = page.now(),
      moves = new AbortController();
    let begun = event.pointerType !== "touch"; // a finger may be about to scroll
    const toss = ({ clientX }) => {
      begun ||= Math.abs(clientX - event.clientX) > SLIP;
      if (page.now().cycle !== cycle) moves.abort();
      else if (begun) askCoin(clamp((clientX - left) / width, 0, most));
    };
    addEventListener("pointermove", toss, moves);
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, () => moves.abort(), moves);
    event.preventDefault(); // no text is selected meanwhile
    toss(event);
  }

  const pressNotation = createChoice(
    part.notation,
    ["plain", "lev", "chen"].map((name) => [name, W.notation[name].name]),
    (name) => {
      S.notation = name;
      page.draw();
    },
  );
  part.rule.append(...RULES.map((name) => html("option", { value: name }, W.what_if.names[name])));
  part.right.addEventListener("pointerdown", drag);
  part.coin.oninput = () => askCoin(+part.coin.value);
  part.k.oninput = () => ask({ k: +part.k.value });
  part.rule.onchange = () => ask({ rule: part.rule.value, coins: S.choice.coins });
  return { paint };
}
