/* Moves through the run's sub-steps: plays them, and reacts to the buttons, the scrubber and the keys. */

import { fillText } from "#page/race/text.js";
import { clamp } from "#page/race/format.js";

const STEP_MS = 2500; // ms per sub-step

export function createTransport(/** @type {StepPage} */ page) {
  const { texts, view, root, part, cycles, current, stepBy, pauseAnd } = page;

  function play(/** @type {boolean} */ shouldPlay) {
    clearTimeout(view.timer);
    view.playing = shouldPlay;
    if (shouldPlay) view.timer = setTimeout(() => play(root.clientWidth > 0 && stepBy(1)), STEP_MS);
    paint();
  }

  const moveCycles = (/** @type {number} */ direction) => {
    const next = view.cycle + direction;
    if (next >= 0 && next < cycles().length) page.goTo(next, cycles()[next].drafts.length ? "draft" : "check");
  };

  function paint() {
    if (!current()) return;
    part.play.textContent = view.playing ? "❚❚ " + texts.transport.pause : "▶ " + texts.transport.play;
    part.back.disabled = view.cycle === 0 && current().stepIndex === 0;
    part.next.disabled = view.cycle === cycles().length - 1 && current().stepIndex === current().steps.length - 1;
    Object.assign(part.scrub, {
      max: cycles().length,
      value: view.cycle + current().stepIndex / current().steps.length,
    });
    part.scrub.setAttribute(
      "aria-valuetext",
      fillText(texts.title, { cycle: view.cycle + 1, cycles: cycles().length }),
    );
  }

  function scrubTo(/** @type {number} */ value) {
    play(false);
    const cycleIndex = clamp(Math.floor(value), 0, cycles().length - 1);
    if (cycleIndex !== view.cycle) page.goTo(cycleIndex, null, false);
    const { steps } = page.computeCycle();
    Object.assign(view, {
      step: steps[clamp(Math.floor((value - cycleIndex) * steps.length + 1e-9), 0, steps.length - 1)],
      coin: null,
    });
    page.draw();
  }

  function handleKey(/** @type {any} */ event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select")) return;
    const onButton = event.target.closest("button");
    if (event.key === " " && !onButton) pauseAnd(() => stepBy(event.shiftKey ? -1 : 1));
    else if (event.key === "ArrowRight") pauseAnd(() => moveCycles(1));
    else if (event.key === "ArrowLeft") pauseAnd(() => moveCycles(-1));
    else if (event.key === "Home") pauseAnd(() => moveCycles(-view.cycle));
    else if (event.key === "End") pauseAnd(() => moveCycles(cycles().length - 1 - view.cycle));
    else if (event.key === "p") play(!view.playing);
    else return;
    event.preventDefault();
  }

  part.previous.onclick = () => pauseAnd(() => moveCycles(-1));
  part.following.onclick = () => pauseAnd(() => moveCycles(1));
  part.back.onclick = () => pauseAnd(() => stepBy(-1));
  part.next.onclick = () => pauseAnd(() => stepBy(1));
  part.play.onclick = () => play(!view.playing);
  part.scrub.oninput = () => scrubTo(+part.scrub.value);
  root.addEventListener("keydown", handleKey);

  return { play, paint };
}
