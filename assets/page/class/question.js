/* A question to the class, in words: its text, its choices, and what its answer says. */

import { html } from "#page/race/html.js";
import { formatChance } from "#page/race/format.js";
import { fillTemplate, formatPiece, fillText } from "#page/race/text.js";

/* The chance with which a draft stays, and in which quarter from 0 to 1 it lies. */
const stays = (p, q) => (q > p ? p / q : 1);
export const quarterOf = (p, q) => Math.min(3, Math.floor(4 * stays(p, q) + 1e-9)); // 0.3/0.4 is a little less than ¾

/* W: the words of `class.json`; quiz: the Guide's questions, which `number` counts. */
export function createQuestionTexts(W, quiz) {
  const Q = W.question;

  function worded({ kind, piece, number, choices, p, q }) {
    const one = quiz.list[number];
    if (kind === "quiz" && one)
      return {
        text: [one.ask],
        choices: one.choices,
        why: ({ right }) => one.choices[right] + ": " + one.why,
      };
    if (kind === "count")
      return {
        text: [Q.count],
        choices: Array.from({ length: choices }, (_, n) => String(n)),
        why: ({ right }) => fillText(Q.counted, { n: right }),
      };
    const values = {
      piece: html("mark", { class: "sd-cl-piece" }, formatPiece(piece)),
      p: formatChance(p),
      q: formatChance(q),
    };
    return {
      text: fillTemplate(Q.keep, values),
      choices: Q.quarters,
      why: () => fillText(Q.numbers, { ...values, chance: formatChance(stays(p, q)) }),
    };
  }

  /* The share of each choice, as bars; `right` is marked once it is known. */
  function bars(labels, counts, right) {
    const all = Math.max(
      1,
      counts.reduce((sum, n) => sum + n, 0),
    );
    return labels.map((label, i) =>
      html(
        "div",
        { class: "sd-cl-bar" + (i === right ? " sd-cl-right" : "") },
        html("span", {}, i === right ? "✓ " : "", label),
        html(
          "span",
          { class: "sd-cl-track" },
          html("i", { style: `width:${(100 * counts[i]) / all}%` }),
        ),
        html("b", {}, String(counts[i])),
      ),
    );
  }

  return { worded, bars };
}
