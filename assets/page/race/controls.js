/* The buttons and keys that move a replay, and how they look from moment to moment. */

import { html, setProperty, setAttribute, saveFile } from "#page/race/html.js";
import { formatDuration } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { AUTO, formatSpeed } from "#page/race/labels.js";
import { EPS, lanesOf } from "#page/race/run.js";

export const SPEEDS = [1, 10, 100, 400]; // times slower than it ran
const TEXT = 120; // ms at least between two changes of a clock: the engine beside it needs the core

export function createControls(W, part, S, time, draw, log) {
  function key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.closest("button, [role=button]"),
      onRange = event.target.matches("input");
    if (event.key === " " && !onButton) time.toggle();
    else if (event.key === "ArrowRight" && !onRange) time.step(1);
    else if (event.key === "ArrowLeft" && !onRange) time.step(-1);
    else if (event.key === "Home" && !onRange) time.jump(0);
    else if (event.key === "End" && !onRange) time.jump(Infinity);
    else if (/^[1-4]$/.test(event.key)) time.setSpeed(SPEEDS[event.key - 1]);
    else return;
    event.preventDefault();
  }

  part.play.onclick = time.toggle;
  part.back.onclick = () => time.step(-1);
  part.next.onclick = () => time.step(1);
  part.download.onclick = () =>
    saveFile(new Blob([log()], { type: "application/x-ndjson" }), S.run, ".jsonl");
  part.scrub.oninput = () => time.takeOver(+part.scrub.value);
  part.scrub.onchange = time.announce;
  part.speed.onclick = (event) => {
    const all = [AUTO, ...SPEEDS.map(String)],
      at = all.indexOf(event.target.dataset.slow),
      alone = event.currentTarget.clientWidth < 140; // on a phone one button stands for all
    const chosen = all[alone ? (at + 1) % all.length : at];
    if (at >= 0) time.setSpeed(chosen === AUTO ? AUTO : +chosen);
  };
  part.all.onclick = () => {
    S.all = !S.all;
    part.all.setAttribute("aria-pressed", String(S.all));
    for (const box of [part.lane0, part.lane1, part.lane2, part.legend])
      box.classList.toggle("sd-prose", !S.all);
    draw();
  };
  part.zoom.onclick = (event) => {
    if (!event.target.dataset.zoom) return;
    Object.assign(S, { zoom: event.target.dataset.zoom, zoomChosen: true });
    draw();
  };
  part.stage.addEventListener("keydown", key);
  part.stage.addEventListener("pointerdown", time.touch);

  function paintTransport(F, end) {
    const label = S.playing ? "❚❚" : "▶",
      now = performance.now();
    if (part.play.label !== label)
      part.play.replaceChildren(
        (part.play.label = label),
        html("span", {}, " " + (S.playing ? W.transport.pause : W.transport.play)),
      );
    setProperty(part.scrub, "max", String(Math.max(end, EPS)));
    if (S.playing && now - S.told < TEXT) return;
    S.told = now;
    part.scrub.value = S.t;
    setAttribute(part.scrub, "aria-valuetext", fillText(W.transport.tokens, { n: F.a.written }));
    lanesOf(S.run).forEach((lane, l) => {
      const span = part["clock" + l].lastChild;
      if (span)
        setProperty(
          span,
          "textContent",
          " · " + formatDuration(lane.finished || S.run.closed ? Math.min(S.t, lane.end) : S.t),
        );
    });
    setProperty(part.speed.firstChild, "textContent", W.transport.auto + " " + formatSpeed(S.slow));
    for (const b of part.speed.children)
      setAttribute(
        b,
        "aria-pressed",
        String(b.dataset.slow === (S.guided ? AUTO : String(S.slow))),
      );
    for (const b of part.zoom.children)
      setAttribute(b, "aria-pressed", String(b.dataset.zoom === S.zoom));
  }

  return paintTransport;
}
