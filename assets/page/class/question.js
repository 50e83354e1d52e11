/* Writes a question to the class: its text, its choices, and the explanation of its answer. */

import { html } from "#page/race/html.js";
import { isCoinDecided } from "#page/race/cycle.js";
import { formatApart, formatChance } from "#page/race/format.js";
import { fillTemplate, fillText, formatPiece, makeVisible } from "#page/race/text.js";

/* Returns the chance that a draft is accepted, from its probabilities p (target) and q (drafter). */
const acceptChance = (/** @type {number} */ p, /** @type {number} */ q) => (q > p ? p / q : 1);
// Returns the quarter in which the chance lies, from 0 to 3. Adds 1e-9, because 0.3/0.4 is below ¾ in floating point.
/** @param {number} p @param {number} q */
export const quarterOfChance = (p, q) => Math.min(3, Math.floor(4 * acceptChance(p, q) + 1e-9));

const MIN_DISTANCE = 0.02, // between a chance that is asked about and the edge of a quarter
  ROUNDING = 0.1; // the chance of p and q with two digits differs from theirs by less than that
/** Returns how far the chance is from the nearest edge between two quarters. @param {number} p @param {number} q */
const edgeDistance = (p, q) => Math.min(...[0.25, 0.5, 0.75].map((edge) => Math.abs(acceptChance(p, q) - edge)));
/** Writes p and q with so many digits that these give the same quarter. @param {number} p @param {number} q */
export const formatChances = (p, q) =>
  [p, q].map((chance) => (edgeDistance(p, q) > ROUNDING ? formatChance(chance) : chance.toPrecision(3)));

const isJudged = (/** @type {Draft} */ { state }) => state === "rejected" || state === "accepted",
  isClear = (/** @type {Draft} */ draft) =>
    isJudged(draft) && edgeDistance(Number(draft.p), Number(draft.q)) >= MIN_DISTANCE,
  isToss = (/** @type {Draft} */ draft) => isClear(draft) && isCoinDecided(draft),
  isWordToss = (/** @type {Draft} */ draft) => isToss(draft) && /\p{L}/u.test(draft.piece),
  isRejected = (/** @type {Draft} */ draft) => isClear(draft) && draft.state === "rejected";

/** Returns the draft of a cycle to ask about: preferably a word that a random draw decides. None whose chance is about
 * the edge of a quarter. @param {Cycle} cycle */
export const draftToAsk = ({ drafts }) =>
  [isWordToss, isToss, isRejected, isClear].map((isFit) => drafts.find(isFit)).find(Boolean);

/** Returns the first cycle with such a draft, or else with any verdict. @param {Cycle[]} cycles */
export const cycleToAsk = (cycles) =>
  [isWordToss, isToss, isClear, isJudged]
    .map((isFit) => cycles.find(({ check, drafts }) => check && drafts.some(isFit)))
    .find(Boolean);

const BEFORE = 28; // characters
/** Returns the last words before a draft. @param {Lane} lane @param {Cycle} cycle @param {Draft} draft */
function textBefore({ prefill, cycles }, { number, drafts }, { parent }) {
  const path = [];
  for (let i = parent; i >= 0; i = drafts[i].parent) path.unshift(drafts[i].text);
  const written = [prefill?.texts, ...cycles.slice(0, number - 1).map(({ texts }) => texts), path].flat().join("");
  return written.length > BEFORE
    ? written
        .slice(-BEFORE)
        .replace(/^\S*\s+/, "… ")
        .trim()
    : written.trim();
}

/** Returns the question on a draft, with the words before it and its place in the picture, and the answer.
 * @param {Lane} lane @param {Cycle} cycle @param {Draft} draft @returns {[object, object]} */
export function questionOn(lane, cycle, draft) {
  const [p, q] = [draft.p, draft.q].map((chance) => Math.min(1, Number(chance))),
    place = { from: cycle.startMs, to: cycle.endMs, place: cycle.drafts.indexOf(draft) },
    before = textBefore(lane, cycle, draft);
  return [
    { kind: "keep", piece: draft.piece.slice(0, 200), choices: 4, p, q, before, ...place },
    { right: quarterOfChance(p, q), u: draft.u, stays: draft.state === "accepted" },
  ];
}

/* Rings the draft that a question is about, while the picture shows its cycle, and no other. */
export function ringAsked(/** @type {Player} */ player, /** @type {any} */ question) {
  const { t } = player.moment(),
    place = question && question.from <= t && t <= question.to ? question.place : -1;
  for (const chip of player.querySelectorAll(".sd-flow > .sd-tok"))
    chip.toggleAttribute("data-asked", chip.dataset.place === String(place));
}

/* `texts` holds the texts of `class.json`. `quiz.list` holds the questions of the Guide's quiz. */
export function createQuestionTexts(/** @type {ClassTexts} */ texts, /** @type {{ list: any[] }} */ quiz) {
  const labels = texts.question,
    figure = (/** @type {string | number} */ value) => html("b", {}, String(value));

  function describeQuestion(/** @type {any} */ { kind, before, piece, number, choices: choiceCount, p, q }) {
    const entry = quiz.list[number];
    if (kind === "quiz" && entry)
      return {
        text: [entry.ask],
        choices: entry.choices,
        why: (/** @type {{ right: number }} */ { right }) =>
          fillTemplate(labels.quiz, { right: figure(entry.choices[right]), why: entry.why }),
      };
    if (kind === "count")
      return {
        text: [labels.count],
        choices: Array.from({ length: choiceCount }, (_, n) => String(n)),
        why: (/** @type {{ right: number }} */ { right }) => fillTemplate(labels.counted, { n: figure(right) }),
      };
    const [shownP, shownQ] = formatChances(p, q);
    const token = () => html("mark", { class: "sd-cl-piece" }, formatPiece(piece));
    const values = {
      before: makeVisible(before),
      piece: token(),
      p: shownP,
      q: shownQ,
    };
    return {
      text: fillTemplate(labels.keep, values),
      choices: labels.quarters,
      why: (/** @type {{ u?: number | null, stays?: boolean }} */ { u, stays }) => {
        const exact = acceptChance(p, q),
          [chance, coin] = u == null ? [formatChance(exact)] : formatApart(exact, u);
        return [
          ...fillTemplate(labels.numbers, { ...values, piece: token(), chance: figure(chance) }),
          u == null ? "" : fillText(stays ? labels.stays : labels.goes, { u: coin }),
        ];
      },
    };
  }

  /** Draws one bar per choice. `rightIndex` is -1 until the answer is shown; `own` is the vote of this phone.
   * @param {string[]} choices @param {number[]} counts @param {number} rightIndex @param {number | null} [own] */
  function createBars(choices, counts, rightIndex, own) {
    const total = Math.max(
      1,
      counts.reduce((sum, n) => sum + n, 0),
    );
    return choices.map((label, i) =>
      html(
        "div",
        { class: "sd-cl-bar" + (i === rightIndex ? " sd-cl-right" : "") + (i === own ? " sd-cl-own" : "") },
        html("span", {}, i === rightIndex && "✓ ", label, i === own && texts.phone.yours),
        html("span", { class: "sd-cl-track" }, html("i", { style: `width:${(100 * counts[i]) / total}%` })),
        html("b", {}, String(counts[i])),
      ),
    );
  }

  return { describeQuestion, createBars };
}
