/* Controls a replay's time: plays at the chosen speed, pauses, seeks. */

import { EPS, speculativeOf, isOver, replayEnd, findFirstRejection, isAtEnd, isServed } from "#page/race/run.js";
import { countCyclesBy } from "#page/race/measure.js";
import { clamp } from "#page/race/format.js";
import { FIRST_CYCLES, chooseSlowdown, chooseLiveSlowdown } from "#page/race/slowdown.js";
import { AUTO } from "#page/race/labels.js";

const HOLD_MS = 5500; // ms that the replay pauses at the first rejection
const VERDICT_MS = 1000; // ms that a cycle stays on show where the replay does not stop after it
const FRAME_MS = 30; // least ms between two drawings; doubled during a run, whose engine may need this CPU

/** Returns what a player without a run shows. @returns {View} */
export const createView = (reducedMotion = false) => ({
  run: /** @type {any} */ (null), // until the first line of a log arrives, and only then
  firstRun: null,
  linkedRun: null, // the run that a link brought
  returnedRun: null, // the run that a reload brought back
  finishedRun: null, // the run whose summary is on show
  timeMs: 0,
  asChips: false,
  widths: { gantt: 0, bars: 0, curve: 0 },
  playing: false,
  still: reducedMotion, // the visitor asked for no motion, so nothing plays by itself
  slowdown: 100,
  autoSpeed: true,
  zoom: "close",
  zoomChosen: false,
  rejectionPause: "armed", // "holding" during the pause, then "spent"
  timer: 0,
  frameId: 0,
  touched: false,
  lastFrameMs: 0,
  pauseMs: 0,
  settleMs: 0, // how long the verdicts of a cycle move
  settleProgress: 1, // 0 to 1: how far they have moved
  onScreen: true,
  chartsOnScreen: false,
  chartsStale: false,
});

/* Returns whether the replay pauses at its first rejection, and will go on by itself. */
export const willGoOn = (/** @type {View} */ view) => view.rejectionPause === "holding" && !view.touched;

/** @param {View} view @param {boolean} reducedMotion @param {Act} draw @param {Act} announce */
export function createPlayback(view, reducedMotion, draw, announce) {
  function seek(/** @type {number} */ ms) {
    view.timeMs = clamp(ms, 0, replayEnd(view.run));
    if (!view.zoomChosen) view.zoom = isOver(view.run) && isAtEnd(view) ? "run" : "close";
    draw();
  }

  function advance(/** @type {number} */ now) {
    if (!view.playing || !view.run) return;
    view.frameId = requestAnimationFrame(advance);
    if (!view.onScreen) return void (view.lastFrameMs = now); // off screen, time stands still
    if (now - view.lastFrameMs < (isOver(view.run) ? FRAME_MS : 2 * FRAME_MS)) return;
    const elapsed = Math.min(now - view.lastFrameMs, 250);
    view.lastFrameMs = now;
    if (view.pauseMs > 0) return waitPause(elapsed);
    const end = replayEnd(view.run),
      cycles = speculativeOf(view.run).cycles,
      done = countCyclesBy(cycles, view.timeMs),
      next = cycles[done],
      nextMs = view.timeMs + elapsed / view.slowdown;
    if (next && nextMs >= next.endMs && isSlowMotion(done)) return commitInSlowMotion(next);
    const rejection = view.rejectionPause === "armed" ? findFirstRejection(view.run) : null;
    if (rejection && nextMs >= rejection.endMs) return holdAt(rejection.endMs);
    view.timeMs = clamp(nextMs, 0, end);
    if (view.autoSpeed) view.slowdown = chooseSpeed();
    if (view.timeMs >= end - EPS && isOver(view.run)) endReplay();
    draw();
  }

  const isSlowMotion = (/** @type {number} */ done) =>
    view.autoSpeed && !reducedMotion && done < FIRST_CYCLES.length && view.run.header.source !== "live";

  function chooseSpeed() {
    if (view.run.header.source !== "live") return chooseSlowdown(view.run, view.timeMs);
    return isServed(view.run) ? 1 : chooseLiveSlowdown(view.run);
  }

  /* Returns the cycle that is under way, if it passes slowly enough for its motion to be seen; else null. */
  function findMovingCycle() {
    const { cycles } = speculativeOf(view.run),
      done = countCyclesBy(cycles, view.timeMs),
      next = cycles[done],
      sinceMs = view.timeMs - (done ? cycles[done - 1].endMs : 0);
    if (!next || Math.min(sinceMs, view.timeMs - next.startMs) <= EPS) return null;
    const isSlow = view.slowdown >= 200 && (!done || sinceMs * view.slowdown > VERDICT_MS);
    return isSlow || isSlowMotion(done) || !view.playing ? next : null;
  }

  /* Commits a cycle in slow motion: time stops while its verdicts move and the visitor reads about it. */
  function commitInSlowMotion(/** @type {Cycle} */ cycle) {
    const { settleMs, readMs } = FIRST_CYCLES[countCyclesBy(speculativeOf(view.run).cycles, cycle.endMs) - 1],
      willHold = view.rejectionPause === "armed" && findFirstRejection(view.run) === cycle;
    Object.assign(view, {
      timeMs: cycle.endMs,
      settleProgress: 0,
      settleMs,
      pauseMs: settleMs + (willHold ? 0 : readMs),
    });
    draw();
  }

  function waitPause(/** @type {number} */ elapsed) {
    view.pauseMs -= elapsed;
    const progress = Math.min(1, view.settleProgress + elapsed / view.settleMs),
      moved = progress !== view.settleProgress;
    view.settleProgress = progress;
    const rejection = view.rejectionPause === "armed" ? findFirstRejection(view.run) : null;
    if (view.pauseMs <= 0 && rejection && Math.abs(rejection.endMs - view.timeMs) < EPS) return holdAt(rejection.endMs);
    if (moved) draw();
  }

  function endReplay() {
    view.playing = false;
    if (!view.zoomChosen) view.zoom = "run";
  }

  function play(/** @type {boolean} */ shouldPlay) {
    if (!view.run) return;
    clearTimeout(view.timer);
    if (view.rejectionPause === "holding") view.rejectionPause = "spent";
    if (shouldPlay && isOver(view.run) && isAtEnd(view)) {
      view.timeMs = 0;
      if (!view.zoomChosen) view.zoom = "close";
    }
    if (view.playing === shouldPlay) return draw();
    Object.assign(view, {
      playing: shouldPlay,
      lastFrameMs: performance.now(),
      pauseMs: 0,
      settleProgress: 1,
    });
    if (shouldPlay && view.autoSpeed) view.slowdown = chooseSpeed();
    draw();
    cancelAnimationFrame(view.frameId);
    if (shouldPlay) view.frameId = requestAnimationFrame(advance);
  }

  /* Pauses a recording once, at its first rejection, and plays on if the visitor does not take over. */
  function holdAt(/** @type {number} */ ms) {
    Object.assign(view, { timeMs: ms, playing: false, rejectionPause: "holding", settleProgress: 1, pauseMs: 0 });
    draw();
    if (!view.touched) view.timer = setTimeout(() => view.rejectionPause === "holding" && play(true), HOLD_MS);
  }

  function markTouched() {
    const wouldGoOn = willGoOn(view);
    view.touched = true;
    clearTimeout(view.timer);
    if (wouldGoOn) draw(); // the pace no longer says that the replay goes on
  }

  function seekByHand(/** @type {number} */ ms) {
    if (!view.run) return;
    markTouched();
    Object.assign(view, { playing: false, rejectionPause: "spent", settleProgress: 1, pauseMs: 0 });
    seek(ms);
  }

  function jump(/** @type {number} */ ms) {
    seekByHand(ms);
    announce();
  }

  function step(/** @type {number} */ direction) {
    if (!view.run) return;
    const cycles = speculativeOf(view.run).cycles,
      done = countCyclesBy(cycles, view.timeMs),
      wanted = clamp(done + direction, 0, cycles.length);
    jump(direction > 0 && done === cycles.length ? replayEnd(view.run) : wanted ? cycles[wanted - 1].endMs : 0);
  }

  const moment = () => ({
    t: view.timeMs,
    settle: view.settleProgress,
    playing: view.playing,
    slow: view.slowdown,
    closed: Boolean(view.run && view.run.closed),
  });
  function showMoment(/** @type {Moment} */ { t, settle = 1, playing = false, slow = view.slowdown }) {
    if (!view.run) return;
    markTouched();
    cancelAnimationFrame(view.frameId);
    Object.assign(view, { settleProgress: settle, playing, slowdown: slow, rejectionPause: "spent", pauseMs: 0 });
    seek(t);
  }

  function setSpeed(/** @type {number | "auto"} */ slowdown) {
    const automatic = slowdown === AUTO;
    Object.assign(view, {
      slowdown: !automatic ? slowdown : view.run ? chooseSpeed() : 100,
      autoSpeed: automatic,
    });
    if (view.rejectionPause === "holding") play(true);
    else draw();
  }

  function toggle() {
    markTouched();
    play(!view.playing);
    if (!view.playing) announce();
  }

  /** Dims the run on show, as `preparing` asks. If the chosen example has no recording, also stops the replay.
   * @param {HTMLElement} root @param {boolean | "unrecorded"} preparing */
  function dim(root, preparing) {
    root.toggleAttribute("data-dim", Boolean(preparing));
    root.toggleAttribute("data-unrecorded", preparing === "unrecorded");
    if (preparing === "unrecorded") play(false);
  }

  return {
    play,
    dim,
    markTouched,
    seekByHand,
    step,
    jump,
    announce,
    setSpeed,
    shared: { speed: () => (view.autoSpeed ? AUTO : view.slowdown), setSpeed, moment, show: showMoment },
    toggle,
    findMovingCycle,
    chooseSpeed,
  };
}
