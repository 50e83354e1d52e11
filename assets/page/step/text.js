/* Writes the run's text as clickable tokens, and the open cycle as chips. */

import { html } from "#page/race/html.js";
import { createChip, createPrompt } from "#page/race/tokens.js";
import { fillText, formatPiece, makeVisible } from "#page/race/text.js";
import { speculativeOf } from "#page/race/run.js";
import { recordedVerdict } from "#page/step/judge.js";

/** @param {StepPage} page @param {Chips} options */
export function createRunText(page, { listNodes, isRevealed, createNodeChip, createTargetChip }) {
  const { texts, playerTexts, view, part, cycles } = page;
  let spans = /** @type {any[]} */ ([]);

  function begin(/** @type {Run} */ run) {
    spans = [];
    part.text.replaceChildren(
      createPrompt(run.header, makeVisible),
      ...(speculativeOf(run).prefill?.pieces ?? []).map(makeVisible),
    );
  }

  function writeParts() {
    for (let i = spans.length; i < cycles().length; i++) {
      spans.push(html("span", { class: "sd-part" }));
      part.text.append(spans[i]);
      writeSpans(i);
    }
  }

  /* Writes clickable spans, as lines would break between buttons even inside words. */
  function writeSpans(/** @type {number} */ i) {
    const cycle = cycles()[i];
    spans[i].replaceChildren(
      ...cycle.pieces.map((piece, index) => {
        const node = html(
          "span",
          {
            role: "button",
            class: "sd-word",
            tabindex: -1,
            "aria-label": fillText(texts.word, { piece: formatPiece(piece), cycle: i + 1 }),
          },
          makeVisible(piece),
        );
        node.onclick = () => page.pauseAnd(() => page.goTo(i, stepOf(cycle, index)));
        return node;
      }),
    );
  }

  /* Returns the sub-step that decided a token: in block verification, its block's last. */
  function stepOf(/** @type {Cycle} */ cycle, /** @type {number} */ index) {
    const { path, order } = recordedVerdict(cycle, page.rule());
    return index >= path.length ? "own" : order.includes(path[index]) ? path[index] : order[order.length - 1];
  }

  function paint() {
    if (view.openCycle !== undefined && view.openCycle !== view.cycle && spans[view.openCycle])
      writeSpans(view.openCycle);
    view.openCycle = view.cycle;
    const current = page.current(),
      { cycle, states, targetToken } = current,
      nodes = listNodes();
    const chips = nodes.map((node) => createNodeChip(node, isRevealed(node) ? states[node] : "pending")),
      hidden = cycle.drafts.length - nodes.length - states.filter((state) => state === "out").length;
    const hiddenChips =
      hidden > 0 && isRevealed(-1)
        ? [createChip(playerTexts, fillText(texts.more, { n: hidden }), "discarded", "span")]
        : [];
    const targetChips =
      targetToken && current.stepIndex >= current.steps.indexOf("own") ? [createTargetChip("button")] : [];
    spans[view.cycle].replaceChildren(
      ...[...chips, ...hiddenChips, ...targetChips].map((node) => {
        node.tabIndex = node.matches("button") ? 0 : -1;
        return node;
      }),
    );
    spans.forEach((span, i) => {
      const isAhead = i > view.cycle;
      span.className = "sd-part" + (isAhead ? " sd-ahead" : "");
      span.hidden = isAhead && (current.changed || view.step !== "commit"); // not written yet
    });
    const box = part.text,
      openSpan = spans[view.cycle];
    if (
      openSpan.offsetTop < box.scrollTop ||
      openSpan.offsetTop + openSpan.offsetHeight > box.scrollTop + box.clientHeight
    )
      box.scrollTop = openSpan.offsetTop - 40;
  }

  return { begin, write: writeParts, paint };
}
