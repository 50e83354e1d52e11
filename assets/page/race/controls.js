/* Connects the buttons and keys that control the replay, and repaints them while the replay goes on. */

import { html, setProperty, setAttribute, saveFile } from "#page/race/html.js";
import { formatDuration } from "#page/race/format.js";
import { countOfTokens } from "#page/race/text.js";
import { AUTO } from "#page/race/labels.js";
import { EPS, isOver, lanesOf, speculativeOf } from "#page/race/run.js";

export const SPEEDS = [1, 10, 100, 400]; // factors by which the replay is slower than the run

/** @param {PlayerTexts} texts @param {Parts} part @param {View} view @param {Playback} playback @param {Act} draw
 * @param {() => string} getLog */
export function createControls(texts, part, view, playback, draw, getLog) {
  function handleKey(/** @type {any} */ event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.closest("button, [role=button]"),
      onRange = event.target.matches("input");
    if (event.key === " " && !onButton) playback.toggle();
    else if (event.key === "ArrowRight" && !onRange) playback.step(1);
    else if (event.key === "ArrowLeft" && !onRange) playback.step(-1);
    else if (event.key === "Home" && !onRange) playback.jump(0);
    else if (event.key === "End" && !onRange) playback.jump(Infinity);
    else if (/^[1-4]$/.test(event.key)) playback.setSpeed(SPEEDS[event.key - 1]);
    else return;
    event.preventDefault();
  }

  part.play.onclick = playback.toggle;
  part.back.onclick = () => playback.step(-1);
  part.next.onclick = () => playback.step(1);
  part.download.onclick = () => saveFile(new Blob([getLog()], { type: "application/x-ndjson" }), view.run, ".jsonl");
  part.scrub.oninput = () => playback.seekByHand(+part.scrub.value);
  part.scrub.onchange = playback.announce;
  part.speed.onclick = (/** @type {any} */ event) => {
    const speeds = [AUTO, ...SPEEDS.map(String)],
      index = speeds.indexOf(event.target.dataset.slow),
      isSingle = event.currentTarget.clientWidth < 140; // a phone shows one button, which steps through all speeds
    const chosen = speeds[isSingle ? (index + 1) % speeds.length : index];
    if (index >= 0) playback.setSpeed(chosen === AUTO ? AUTO : +chosen);
  };
  part.showAll.onclick = () => {
    view.asChips = !view.asChips;
    part.showAll.setAttribute("aria-pressed", String(view.asChips));
    for (const box of [part.lane0, part.lane1, part.lane2, part.legend])
      box.classList.toggle("sd-prose", !view.asChips);
    draw();
  };
  part.zoom.onclick = (/** @type {any} */ event) => {
    if (!event.target.dataset.zoom) return;
    Object.assign(view, { zoom: event.target.dataset.zoom, zoomChosen: true });
    draw();
  };
  part.stage.addEventListener("keydown", handleKey);
  part.stage.addEventListener("pointerdown", playback.markTouched);

  function paintTransport(/** @type {Figures} */ figures, /** @type {number} */ end) {
    const label = view.playing ? "❚❚" : "▶";
    if (part.play.label !== label)
      part.play.replaceChildren(
        (part.play.label = label),
        html("span", {}, " " + (view.playing ? texts.transport.pause : texts.transport.play)),
      );
    const isBlank = !end && isOver(view.run); // it ended before anything was written
    for (const control of [part.play, part.back, part.next, part.scrub]) control.disabled = isBlank;
    setProperty(part.scrub, "max", String(Math.max(end, EPS)));
    part.scrub.value = view.timeMs;
    setAttribute(part.scrub, "aria-valuetext", countOfTokens(texts, figures.speculative.written));
    lanesOf(view.run).forEach((lane, laneIndex) => {
      const span = part["clock" + laneIndex].lastChild;
      if (span)
        setProperty(
          span,
          "textContent",
          " · " + formatDuration(lane.finished || view.run.closed ? Math.min(view.timeMs, lane.endMs) : view.timeMs),
        );
    });
    for (const control of /** @type {Iterable<Part>} */ (part.speed.children))
      setAttribute(
        control,
        "aria-pressed",
        String(control.dataset.slow === (view.autoSpeed ? AUTO : String(view.slowdown))),
      );
    for (const control of /** @type {Iterable<Part>} */ (part.zoom.children))
      setAttribute(control, "aria-pressed", String(control.dataset.zoom === view.zoom));
    const { gained } = part.swatches,
      most = Math.max(0, ...speculativeOf(view.run).cycles.map((cycle) => cycle.gained));
    setProperty(gained, "hidden", view.zoom === "run" || most < 2); // in the whole run no bar has a number
  }

  return paintTransport;
}
