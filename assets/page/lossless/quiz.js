/* Predict, then reveal: which mistakes does the next token's distribution hide? */

import { h } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { FIRST, isExact, scoreOf, figure } from "#page/lossless/reading.js";

/* `recorded` gives the toy pair's certificate with a mistake, once it has been fetched. */
export function quiz(W, part, recorded) {
  let revealed = false;

  function paintQuiz() {
    const Q = W.quiz,
      boxes = [...part.guesses.querySelectorAll("input")],
      truth = (name) => {
        const told = recorded(name);
        return told ? isExact(told) : null;
      };
    for (const box of boxes) {
      const told = recorded(box.value),
        answer = box.closest("label").querySelector("small");
      answer.textContent =
        !revealed || !told
          ? ""
          : isExact(told)
            ? Q.hidden
            : told.closed.error === null
              ? Q.broken
              : words(Q.seen, { error: figure(told.closed.error) });
      box.disabled = revealed;
    }
    part.reveal.textContent = revealed ? Q.again : Q.reveal;
    const right = scoreOf(boxes.map((box) => ({ ticked: box.checked, hidden: truth(box.value) })));
    part.score.textContent = !revealed
      ? ""
      : right === null
        ? Q.unguessed
        : words(Q.score, { right, of: boxes.length });
  }

  function reveal() {
    revealed = !revealed;
    if (!revealed) for (const box of part.guesses.querySelectorAll("input")) box.checked = false;
    paintQuiz();
  }

  part.quiztitle.textContent = W.quiz.title;
  part.quizlead.textContent = W.quiz.lead;
  part.guesses.append(
    ...Object.entries(W.mistakes)
      .slice(0, FIRST)
      .map(([name, { title }]) =>
        h(
          "label",
          {},
          h("input", { type: "checkbox", value: name }),
          h("span", {}, title, h("small", {})),
        ),
      ),
  );
  part.reveal.onclick = reveal;
  paintQuiz();
  return paintQuiz;
}
