/* Plays one run: reads a growing NDJSON log of events, and shows one to three lanes of text, a timeline and charts.
 * Text from the log enters the page only as text, never as HTML, because a token can be `<script>`. */

import { findParts, setProperty } from "#page/race/html.js";
import {
  speculativeOf,
  plainOf,
  isOver,
  wasStopped,
  replayEnd,
  isServed,
  findFirstRejection,
  isAtEnd,
  carriesRun,
} from "#page/race/run.js";
import { figuresAt } from "#page/race/measure.js";
import { createReader, readLog, headOf } from "#page/race/log.js";
import { createPlayback, createView, willGoOn } from "#page/race/playback.js";
import { SPEEDS, createControls } from "#page/race/controls.js";
import { createFlow, progressAt } from "#page/race/flow.js";
import { createFinish } from "#page/race/finish.js";
import { placeAtStop } from "#page/race/verdict.js";
import { createDraftLinks, connectHelpLinks } from "#page/race/links.js";
import { labelPlayer } from "#page/race/labels.js";
import { createHeading } from "#page/race/heading.js";
import { createMeters } from "#page/race/meters.js";
import { explainSpeed } from "#page/race/why.js";
import { createLanes } from "#page/race/lanes.js";
import { createStory } from "#page/race/story.js";
import { createTimeline } from "#page/race/timeline.js";
import { createColumnChart } from "#page/race/columns.js";
import { createCurve } from "#page/race/curve.js";
import { createAccount } from "#page/race/account.js";
import { watchSizes } from "#page/race/sizes.js";
import { createCards } from "#page/race/cards.js";

/** @param {HTMLElement} element @param {Props} props @param {Watch} watch @param {Trigger | null} [trigger] */
function mountPlayer(element, props, watch, trigger) {
  const texts = JSON.parse(props.words),
    root = element.querySelector(".sd-player"),
    part = findParts(root);
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const view = createView(reducedMotion);
  const reader = createReader(),
    log = () => props.value || "",
    playback = createPlayback(view, reducedMotion, draw, announce),
    { play, markTouched } = playback;
  const lanes = createLanes(texts, part, view),
    cards = createCards(texts, root, part, view, markTouched),
    heading = createHeading(texts, root, part, view),
    paintMeters = createMeters(texts, root, part, view, heading.createTerm),
    story = createStory(
      texts,
      view,
      createDraftLinks({ texts, view, root, lanes, cards, markTouched }),
      () => trigger ?? null,
      playback.jump,
    );
  const flow = createFlow(part.flow, texts),
    paintFinish = createFinish(part.flow, texts, root, () => trigger ?? null),
    drawTimeline = createTimeline(texts, part, view),
    drawBars = createColumnChart(texts, part, view),
    drawCurve = createCurve(texts, part, view),
    paintAccount = createAccount(texts, part, view, heading.createTerm),
    paintTransport = createControls(texts, part, view, playback, draw, log);
  let drawnKey = /** @type {string | null} */ (null),
    awaitsLink = carriesRun(location.hash), // until `traces/traces.js` has loaded the run in the address
    isUntouched = true;

  function readNewLog(fromLink = false) {
    const wasAtEnd = view.run?.closed && isAtEnd(view),
      isNew = readLog(reader, log());
    const isOtherRun = isNew || reader.run !== view.run;
    awaitsLink &&= !fromLink && reader.run?.header.source !== "live";
    view.run = /** @type {any} */ (awaitsLink ? null : reader.run);
    if (!view.run) return showEmpty();
    view.run.closed ||= view.run.header.source !== "live"; // a recording never grows
    if (isUntouched && !fromLink) view.firstRun = view.run;
    isUntouched = false;
    if (isOtherRun) beginRun(isNew, fromLink);
    lanes.build();
    // the last lines of a run that was stopped come late
    if (view.run.header.source === "live" && (reducedMotion || (wasAtEnd && !isOtherRun))) {
      Object.assign(view, { timeMs: replayEnd(view.run), finishedRun: null });
    }
    draw();
    root.dispatchEvent(new Event("sd-run"));
  }

  /* Notes that a reload brought back the run on show; nothing writes it any more. */
  function noteReturn() {
    view.returnedRun = view.run;
    view.run.closed = true;
    heading.paint();
    draw();
  }

  /* Closes a live run whose stream has ended, so that the replay can end. */
  function markEnded() {
    if (!view.run || view.run.header.source !== "live") return;
    view.run.closed = true;
    if (reducedMotion) view.timeMs = replayEnd(view.run);
    draw();
    root.dispatchEvent(new Event("sd-ended"));
  }

  function load(/** @type {string} */ log, fromLink = false) {
    props.value = log;
    Object.assign(reader, createReader());
    view.run = /** @type {any} */ (null);
    readNewLog(fromLink);
    if (trigger) trigger("opened", { head: headOf(log) });
  }

  function showEmpty() {
    cards.hide();
    view.playing = false;
    part.say.textContent = awaitsLink ? texts.arriving : texts.empty;
    part.meta.textContent = "";
    root.dataset.state = "empty";
    root.dispatchEvent(new Event("sd-run"));
  }

  function beginRun(/** @type {boolean} */ isNew, /** @type {any} */ fromLink) {
    clearTimeout(view.timer);
    cards.hide();
    const live = view.run.header.source === "live",
      // a finished run of a server is sent again, now with its counts; the visitor has seen it already
      openAtEnd = fromLink || (isNew && live && isServed(view.run) && isOver(view.run));
    view.linkedRun = fromLink ? view.run : null;
    Object.assign(view, {
      timeMs: openAtEnd ? replayEnd(view.run) : 0,
      rejectionPause: live || view.touched ? "spent" : "armed",
      playing: false,
      settleProgress: 1,
    });
    if (view.autoSpeed) view.slowdown = playback.chooseSpeed();
    lanes.clear();
    root.removeAttribute("data-dim");
    if (drawnKey !== null && !fromLink) showStage();
    drawnKey = null;
    heading.paint();
    if (!reducedMotion && !openAtEnd) view.timer = setTimeout(() => play(true), live ? 0 : 400);
    else if (!live && !openAtEnd) openStill();
  }

  /* Scrolls to the stage (sentence, lanes, timeline). Open settings above can push it off the screen. */
  function showStage() {
    const { top } = part.stage.getBoundingClientRect();
    if (document.querySelector(".sd-class:not([hidden])")) return; // a class reads what stands above the stage
    if (top < 0 || top > innerHeight / 2) part.stage.scrollIntoView({ block: "nearest" });
  }

  /* Opens a run for reduced motion: shows its first rejection, or else its end. */
  function openStill() {
    lanes.build();
    const rejection = findFirstRejection(view.run);
    view.rejectionPause = "spent";
    view.timeMs = rejection ? rejection.endMs : replayEnd(view.run);
  }

  function draw(evenOffScreen = false) {
    if (!view.run || !(view.onScreen || evenOffScreen)) return;
    const figures = figuresAt(view.run, view.timeMs),
      end = replayEnd(view.run),
      isComplete = isOver(view.run),
      moving = playback.findMovingCycle(),
      key = [
        figures.speculative.passes,
        figures.plain.passes,
        figures.speculative.written,
        figures.plain.written,
        isComplete,
        end,
        view.slowdown,
        view.asChips,
        isAtEnd(view),
        willGoOn(view),
        moving && moving.number,
      ].join(),
      hasChanged = key !== drawnKey;
    if (!view.zoomChosen) view.zoom = view.run.closed && isAtEnd(view) ? "run" : "close";
    lanes.paint();
    if (hasChanged) {
      drawnKey = key;
      part.foot.replaceChildren(...story.footnote());
      heading.paint();
      heading.paintProgress(figures);
      paintMeters(figures, end);
      setProperty(part.why, "textContent", explainSpeed(texts, view.run, view.timeMs));
      part.say.replaceChildren(...story.momentSentence(figures, moving));
      view.chartsStale = true;
      setTimeout(lanes.followNewest);
    }
    drawFlow(figures, isComplete, moving);
    if (view.chartsStale && (view.chartsOnScreen || !view.playing)) drawBelow(figures, end);
    paintTransport(figures, end);
    drawTimeline(end);
    setProperty(root.dataset, "state", stateName(end, isComplete));
    root.dispatchEvent(new Event("sd-drawn"));
  }

  function drawBelow(/** @type {Figures} */ figures, /** @type {number} */ end) {
    view.chartsStale = false;
    drawBars(figures);
    drawCurve(end);
    paintAccount(figures);
  }

  /** Draws the cycle that is under way, else the last one or, at the run's end, the summary. @param {Figures} figures
   * @param {boolean} isComplete @param {Cycle | null} moving */
  function drawFlow(figures, isComplete, moving) {
    const cycles = speculativeOf(view.run).cycles,
      isFinished =
        isComplete &&
        isAtEnd(view) &&
        figures.speculative.passes > 0 &&
        (figures.plain.passes > 0 || !plainOf(view.run)) &&
        (!wasStopped(view.run) || placeAtStop(view.run, figures) !== "");
    if ((isFinished ? view.run : null) !== view.finishedRun) {
      view.finishedRun = isFinished ? view.run : null;
      part.flow.replaceChildren();
      if (isFinished) paintFinish(view.run);
      else flow.reset();
    }
    if (!cycles.length) part.flow.replaceChildren(); // removes what the previous run drew
    if (isFinished || !cycles.length) return;
    const { last } = figures.speculative;
    if (moving) flow.draw(moving, progressAt(moving, view.timeMs));
    else
      flow.draw(last || cycles[0], last ? progressAt(last, view.timeMs, reducedMotion ? 1 : view.settleProgress) : 0);
  }

  function redraw() {
    flow.reset();
    drawnKey = null;
    draw(true); // even off screen, because widths have changed
  }

  function stateName(/** @type {number} */ end, /** @type {boolean} */ isComplete) {
    if (view.rejectionPause === "holding") return "first-rejection";
    if (isAtEnd(view)) return isComplete ? "done" : "waiting";
    return view.playing ? "playing" : "paused";
  }

  function announce() {
    part.announce.textContent = part.say.textContent;
  }

  /** @type {PlayerApi} */
  const api = {
    words: texts,
    run: () => view.run,
    isFirst: () => view.run !== null && view.run === view.firstRun, // the run that the page loaded with
    log,
    load,
    grow(log) {
      awaitsLink = false;
      props.value = log;
      readNewLog();
    },
    ended: markEnded,
    returned: noteReturn,
    ...playback.shared,
    dim: (preparing) => playback.dim(root, preparing),
    moveTo,
  };
  Object.assign(root, api);
  labelPlayer(texts, part, SPEEDS);
  const watchProps = () => [
    watch("value", () => readNewLog()),
    watch("ended", markEnded),
    watch("preparing", () => playback.dim(root, props.preparing)),
  ];
  connectHelpLinks(part, Boolean(trigger), reducedMotion);
  watchSizes(root, part, view, draw, redraw);
  readNewLog();
  watchProps();

  /** Moves the player into Gradio's component. `shared/first.js` drew the player before Gradio was loaded.
   * @param {Element} place @param {Props} itsProps @param {Watch} itsWatch @param {Trigger} itsTrigger */
  function moveTo(place, itsProps, itsWatch, itsTrigger) {
    const focused = /** @type {any} */ (document.activeElement);
    place.querySelector(".sd-player").replaceWith(root);
    if (root.contains(focused)) focused.focus({ preventScroll: true });
    [props, watch, trigger] = [itsProps, itsWatch, itsTrigger];
    watchProps();
    readNewLog();
  }
}

/** @param {HTMLElement} element @param {Props} props @param {Watch} watch @param {Trigger} [trigger] */
export function mount(element, props, watch, trigger) {
  const firstScreen = document.getElementById("first"),
    earlyPlayer = firstScreen && firstScreen.querySelector(".sd-player");
  if (earlyPlayer && earlyPlayer.moveTo && !firstScreen.contains(element))
    earlyPlayer.moveTo(element, props, watch, trigger);
  else mountPlayer(element, props, watch, trigger);
  if (firstScreen && !firstScreen.contains(element)) firstScreen.remove();
}
