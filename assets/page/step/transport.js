/* Plays the run's sub-steps, and reacts to buttons and keys. */

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

  part.back.onclick = () => pauseAnd(() => stepBy(-1));
  part.next.onclick = () => pauseAnd(() => stepBy(1));
  part.play.onclick = () => play(!view.playing);
  root.addEventListener("keydown", handleKey);

  return { play, paint };
}
