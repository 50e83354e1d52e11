/* The time of a replay: how it passes, where it stands still, and who moves it. */

import {
  EPS,
  speculativeOf,
  isOver,
  replayEnd,
  findFirstRejection,
  isAtEnd,
  isServed,
} from "#page/race/run.js";
import { countCyclesBy } from "#page/race/measure.js";
import { clamp } from "#page/race/format.js";
import { FIRST_CYCLES, chooseSlowdown, chooseLiveSlowdown } from "#page/race/slowdown.js";
import { AUTO } from "#page/race/labels.js";

const HOLD = 5500; // ms that the first rejection stands
const FRAME = 30; // ms at least between two drawings: the engine beside it needs the core

export function createPlayback(S, calm, draw, announce) {
  function seek(t) {
    S.t = clamp(t, 0, replayEnd(S.run));
    if (!S.zoomChosen) S.zoom = isOver(S.run) && isAtEnd(S) ? "run" : "close";
    draw();
  }

  function frame(now) {
    if (!S.playing || !S.run) return;
    S.frame = requestAnimationFrame(frame);
    if (!S.seen) return void (S.last = now); // in a tab that is not shown, time stands still
    if (now - S.last < (isOver(S.run) ? FRAME : 2 * FRAME)) return;
    const elapsed = Math.min(now - S.last, 250);
    S.last = now;
    if (S.pause > 0) return stand(elapsed);
    const end = replayEnd(S.run),
      cycles = speculativeOf(S.run).cycles,
      k = countCyclesBy(cycles, S.t),
      next = cycles[k],
      to = S.t + elapsed / S.slow;
    if (next && to >= next.at && tellsSlowly(k)) return commitSlowly(next);
    const stop = S.hold === "armed" ? findFirstRejection(S.run) : null;
    if (stop && to >= stop.at) return holdAt(stop.at);
    S.t = clamp(to, 0, end);
    if (S.guided) S.slow = auto();
    if (S.t >= end - EPS && isOver(S.run)) over();
    draw();
  }

  const tellsSlowly = (k) =>
    S.guided && !calm && k < FIRST_CYCLES.length && S.run.header.source !== "live";

  /* The speed that the page chooses. */
  function auto() {
    if (S.run.header.source !== "live") return chooseSlowdown(S.run, S.t);
    return isServed(S.run) ? 1 : chooseLiveSlowdown(S.run);
  }

  /* Whether cycles pass slowly enough to be seen moving. */
  const slow = () => S.slow >= 200 || tellsSlowly(countCyclesBy(speculativeOf(S.run).cycles, S.t));

  /* The verdicts of a cycle move while its time stands still, and its sentence may be read. */
  function commitSlowly(cycle) {
    const { settle, read } = FIRST_CYCLES[countCyclesBy(speculativeOf(S.run).cycles, cycle.at) - 1],
      holds = S.hold === "armed" && findFirstRejection(S.run) === cycle;
    Object.assign(S, {
      t: cycle.at,
      settle: 0,
      settling: settle,
      pause: settle + (holds ? 0 : read),
    });
    draw();
  }

  function stand(elapsed) {
    S.pause -= elapsed;
    const settle = Math.min(1, S.settle + elapsed / S.settling),
      moved = settle !== S.settle;
    S.settle = settle;
    const stop = S.hold === "armed" ? findFirstRejection(S.run) : null;
    if (S.pause <= 0 && stop && Math.abs(stop.at - S.t) < EPS) return holdAt(stop.at);
    if (moved) draw();
  }

  function over() {
    S.playing = false;
    if (!S.zoomChosen) S.zoom = "run";
  }

  function play(on) {
    if (!S.run) return;
    clearTimeout(S.timer);
    if (S.hold === "holding") S.hold = "spent";
    if (on && isOver(S.run) && isAtEnd(S)) {
      S.t = 0;
      if (!S.zoomChosen) S.zoom = "close";
    }
    if (S.playing === on) return draw();
    Object.assign(S, { playing: on, last: performance.now(), pause: 0, settle: 1, told: 0 });
    if (on && S.guided) S.slow = auto();
    draw();
    cancelAnimationFrame(S.frame);
    if (on) S.frame = requestAnimationFrame(frame);
  }

  /* The first view stops once, where there is something to understand, and goes on if nobody takes over. */
  function holdAt(t) {
    Object.assign(S, { t, playing: false, hold: "holding", settle: 1, pause: 0 });
    draw();
    if (!S.touched) S.timer = setTimeout(() => S.hold === "holding" && play(true), HOLD);
  }

  function touch() {
    S.touched = true;
    clearTimeout(S.timer);
  }

  /* The visitor moves the time by hand: nothing plays by itself any more. */
  function takeOver(t) {
    if (!S.run) return;
    touch();
    Object.assign(S, { playing: false, hold: "spent", settle: 1, pause: 0 });
    seek(t);
  }

  function jump(t) {
    takeOver(t);
    announce();
  }

  function step(direction) {
    if (!S.run) return;
    const cycles = speculativeOf(S.run).cycles,
      k = countCyclesBy(cycles, S.t),
      to = clamp(k + direction, 0, cycles.length);
    jump(direction > 0 && k === cycles.length ? replayEnd(S.run) : to ? cycles[to - 1].at : 0);
  }

  /* The moment on show; and another one, told by another page, which also tells when it moves. */
  const moment = () => ({
    t: S.t,
    settle: S.settle,
    playing: S.playing,
    slow: S.slow,
    closed: Boolean(S.run && S.run.closed),
  });
  function show({ t, settle = 1, playing = false, slow = S.slow }) {
    if (!S.run) return;
    touch();
    cancelAnimationFrame(S.frame);
    Object.assign(S, { settle, playing, slow, hold: "spent", pause: 0 });
    seek(t);
  }

  function setSpeed(slow) {
    const guided = slow === AUTO;
    Object.assign(S, {
      slow: !guided ? slow : S.run ? auto() : 100,
      guided,
      told: 0,
    });
    draw();
  }

  function toggle() {
    touch();
    play(!S.playing);
    if (!S.playing) announce();
  }

  return {
    play,
    touch,
    takeOver,
    step,
    jump,
    announce,
    moment,
    show,
    setSpeed,
    toggle,
    slow,
    auto,
  };
}
