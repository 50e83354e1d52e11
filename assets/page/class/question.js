// @ts-check
/* A question to the class, in words: its text, its choices, and what its answer says. */

/* kit: the player's; W: the words of `class.json`; quiz: the Guide's questions, which `number` counts. */
function questions({ h, fill, words, shown, chance }, W, quiz) {
  const Q = W.question;

  function worded({ kind, piece, number, choices }) {
    const one = quiz.list[number];
    if (kind === "quiz" && one) return { text: [one.ask], choices: one.choices, why: ({ right }) => one.choices[right] + ": " + one.why };
    if (kind === "count") return { text: [Q.count], choices: Array.from({ length: choices }, (_, n) => String(n)), why: ({ right }) => words(Q.counted, { n: right }) };
    const why = ({ right, p, q }) => (right ? Q.gone : Q.kept) + " " + words(Q.numbers, { p: chance(p), q: chance(q) });
    return { text: fill(Q.keep, { piece: h("mark", { class: "sd-cl-piece" }, shown(piece)) }), choices: [Q.yes, Q.no], why };
  }

  /* The share of each choice, as bars; `right` is marked once it is known. */
  function bars(labels, counts, right) {
    const all = Math.max(1, counts.reduce((sum, n) => sum + n, 0));
    return labels.map((label, i) => h("div", { class: "sd-cl-bar" + (i === right ? " sd-cl-right" : "") },
      h("span", {}, i === right ? "✓ " : "", label), h("span", { class: "sd-cl-track" }, h("i", { style: `width:${(100 * counts[i]) / all}%` })), h("b", {}, String(counts[i]))));
  }

  return { worded, bars };
}

module.exports = { questions };
