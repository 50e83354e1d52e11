/* Moving through the run: playing, the scrubber, the keys. */

import { fillText } from "#page/race/text.js";
import { clamp } from "#page/race/format.js";

const PACE = 2500; // ms a sub-step

export function createTransport(page) {
  const { W, S, root, part, cycles, now, step, byHand } = page;

  function play(on) {
    clearTimeout(S.timer);
    S.playing = on;
    if (on) S.timer = setTimeout(() => play(root.clientWidth > 0 && step(1)), PACE);
    paintTransport();
  }

  const hop = (direction) => {
    const to = S.cycle + direction;
    if (to >= 0 && to < cycles().length)
      page.go(to, cycles()[to].drafts.length ? "draft" : "check");
  };

  function paintTransport() {
    if (!now()) return;
    part.play.textContent = S.playing ? "❚❚ " + W.transport.pause : "▶ " + W.transport.play;
    part.back.disabled = S.cycle === 0 && now().at === 0;
    part.next.disabled = S.cycle === cycles().length - 1 && now().at === now().steps.length - 1;
    Object.assign(part.scrub, {
      max: cycles().length,
      value: S.cycle + now().at / now().steps.length,
    });
    part.scrub.setAttribute(
      "aria-valuetext",
      fillText(W.title, { cycle: S.cycle + 1, cycles: cycles().length }),
    );
  }

  function scrub(value) {
    play(false);
    const at = clamp(Math.floor(value), 0, cycles().length - 1);
    if (at !== S.cycle) page.go(at, null, false);
    const { steps } = page.look();
    Object.assign(S, {
      step: steps[clamp(Math.floor((value - at) * steps.length + 1e-9), 0, steps.length - 1)],
      coin: null,
    });
    page.draw();
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select"))
      return;
    const onButton = event.target.closest("button");
    if (event.key === " " && !onButton) byHand(() => step(event.shiftKey ? -1 : 1));
    else if (event.key === "ArrowRight") byHand(() => hop(1));
    else if (event.key === "ArrowLeft") byHand(() => hop(-1));
    else if (event.key === "Home") byHand(() => hop(-S.cycle));
    else if (event.key === "End") byHand(() => hop(cycles().length - 1 - S.cycle));
    else if (event.key === "p") play(!S.playing);
    else return;
    event.preventDefault();
  }

  part.previous.onclick = () => byHand(() => hop(-1));
  part.following.onclick = () => byHand(() => hop(1));
  part.back.onclick = () => byHand(() => step(-1));
  part.next.onclick = () => byHand(() => step(1));
  part.play.onclick = () => play(!S.playing);
  part.scrub.oninput = () => scrub(+part.scrub.value);
  root.addEventListener("keydown", keys);

  return { play, paint: paintTransport };
}
