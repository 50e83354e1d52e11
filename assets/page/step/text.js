/* The text of the run, cycle by cycle: words to click, and of the open cycle its chips. */

import { html } from "#page/race/html.js";
import { createChip, createPrompt } from "#page/race/tokens.js";
import { fillText, formatPiece, makeVisible } from "#page/race/text.js";
import { speculativeOf } from "#page/race/run.js";
import { recordedVerdict } from "#page/step/judge.js";

export function createRunText(page, { nodesShown, revealed, chipOf, ownChip }) {
  const { W, PW, S, part, cycles } = page;
  let spans = /** @type {any[]} */ ([]);

  function begin(run) {
    spans = [];
    part.text.replaceChildren(
      createPrompt(run.header, makeVisible),
      ...(speculativeOf(run).prefill ? speculativeOf(run).prefill.pieces.map(makeVisible) : []),
    );
  }

  function writeText() {
    for (let i = spans.length; i < cycles().length; i++) {
      spans.push(html("span", { class: "sd-part" }));
      part.text.append(spans[i]);
      plainPart(i);
    }
  }

  /* What a cycle gave, as words to click. They are no buttons, because lines would break at each: inside words, too. */
  function plainPart(i) {
    const cycle = cycles()[i];
    spans[i].replaceChildren(
      ...cycle.pieces.map((piece, j) => {
        const node = html(
          "span",
          {
            role: "button",
            class: "sd-word",
            tabindex: -1,
            "aria-label": fillText(W.word, { piece: formatPiece(piece), cycle: i + 1 }),
          },
          makeVisible(piece),
        );
        node.onclick = () => page.byHand(() => page.go(i, judgedAt(cycle, j)));
        return node;
      }),
    );
  }

  /* Where the j-th token of a cycle was decided. Of a block that was kept, only the last token had a coin. */
  function judgedAt(cycle, j) {
    const { path, order } = recordedVerdict(cycle, page.rule());
    return j >= path.length ? "own" : order.includes(path[j]) ? path[j] : order[order.length - 1];
  }

  function paintText() {
    if (S.open !== undefined && S.open !== S.cycle && spans[S.open]) plainPart(S.open);
    S.open = S.cycle;
    const now = page.now(),
      { cycle, states, own } = now,
      nodes = nodesShown();
    const chips = nodes.map((node) => chipOf(node, revealed(node) ? states[node] : "pen")),
      rest = cycle.drafts.length - nodes.length - states.filter((state) => state === "out").length;
    const more =
      rest > 0 && revealed(-1)
        ? [createChip(PW, fillText(W.more, { n: rest }), "dis", "span")]
        : [];
    const last = own && now.at >= now.steps.indexOf("own") ? [ownChip("button")] : [];
    spans[S.cycle].replaceChildren(
      ...[...chips, ...more, ...last].map((node) => {
        node.tabIndex = node.matches("button") ? 0 : -1;
        return node;
      }),
    );
    spans.forEach((span, i) => {
      span.className = "sd-part" + (i > S.cycle ? (now.touched ? " sd-grey" : " sd-ahead") : "");
    });
    const box = part.text,
      place = spans[S.cycle];
    if (
      place.offsetTop < box.scrollTop ||
      place.offsetTop + place.offsetHeight > box.scrollTop + box.clientHeight
    )
      box.scrollTop = place.offsetTop - 40;
  }

  return { begin, write: writeText, paint: paintText };
}
