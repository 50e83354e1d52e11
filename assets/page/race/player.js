/* Plays one run: a growing NDJSON log of events in, two lanes of text or three, a timeline and charts out.
 * Text from the log enters the page by `append` and `textContent` alone: a token may be `<script>`. */

import { findParts, setProperty } from "#page/race/html.js";
import {
  EPS,
  speculativeOf,
  plainOf,
  isOver,
  wasStopped,
  replayEnd,
  isServed,
  findFirstRejection,
  isAtEnd,
} from "#page/race/run.js";
import { figuresAt } from "#page/race/measure.js";
import { createReader, readLog } from "#page/race/log.js";
import { createPlayback } from "#page/race/playback.js";
import { SPEEDS, createControls } from "#page/race/controls.js";
import { createFlow, progressAt } from "#page/race/flow.js";
import { createFinish } from "#page/race/finish.js";
import { createDraftLinks, connectWays } from "#page/race/links.js";
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
import { createCards } from "#page/race/cards.js";

function player(element, props, watch, trigger) {
  const W = JSON.parse(props.words),
    root = element.querySelector(".sd-player"),
    part = findParts(root);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const S = {
    run: /** @type {any} */ (null),
    first: /** @type {any} */ (null),
    t: 0,
    all: false,
    room: { gantt: 0, bars: 0, curve: 0 },
    playing: false,
    slow: 100,
    zoom: "close",
    zoomChosen: false,
    hold: "armed",
    timer: /** @type {any} */ (0),
    touched: false,
    last: 0,
    guided: true,
    settle: 1,
    seen: true,
    below: false,
  };
  const reader = createReader(),
    log = () => props.value || "",
    time = createPlayback(S, calm, draw, announce),
    { play, touch } = time;
  const text = createLanes(W, part, S),
    card = createCards(W, root, part, S, touch),
    about = createHeading(W, root, part, S),
    meters = createMeters(W, root, part, S, about.term),
    told = createStory(W, S, createDraftLinks({ W, S, root, text, card, touch }), () => trigger);
  const picture = createFlow(part.flow, W),
    ending = createFinish(part.flow, W, root),
    drawTimeline = createTimeline(W, part, S),
    drawBars = createColumnChart(W, part, S),
    drawCurve = createCurve(W, part, S),
    paintAccount = createAccount(W, part, S, about.term),
    paintTransport = createControls(W, part, S, time, draw, log);
  let drawn = /** @type {string | null} */ (null);

  /* -- taking in the log -- */

  function pull() {
    const fresh = readLog(reader, log());
    const begun = reader.run && (fresh || S.run === null || reader.run !== S.run);
    S.run = reader.run;
    if (!S.run) return empty();
    S.run.closed ||= S.run.header.source !== "live"; // a recording is complete, even of a stopped run
    S.first ??= S.run;
    if (begun) begin(fresh);
    text.build();
    if (calm && S.run.header.source === "live") S.t = replayEnd(S.run);
    draw();
    root.dispatchEvent(new Event("sd-run"));
  }

  /* The stream is over, by its end, by Stop or by a failure: what is there may be played to its end. */
  function ended() {
    if (!S.run || S.run.header.source !== "live") return;
    S.run.closed = true;
    if (calm) S.t = replayEnd(S.run);
    draw();
    root.dispatchEvent(new Event("sd-ended"));
  }

  /* Show another run that the visitor chose: it begins anew even if its header is the same. */
  function load(log, sent = false) {
    props.value = log;
    Object.assign(reader, createReader());
    S.run = null;
    S.sent = sent; // by a link: it opens at its end
    pull();
    S.sent = false; // only now: `pull` needs it
    if (trigger) trigger("opened", { head: log.split("\n", 2).join("\n").slice(0, 20000) });
  }

  function empty() {
    card.hide();
    S.playing = false;
    part.say.textContent = W.empty;
    part.meta.textContent = "";
    root.dataset.state = "empty";
    root.dispatchEvent(new Event("sd-run"));
  }

  function begin(fresh) {
    clearTimeout(S.timer);
    card.hide();
    const live = S.run.header.source === "live",
      // or a finished server run that came again with its counts
      again = S.sent || (fresh && live && isServed(S.run) && isOver(S.run));
    S.sentRun = S.sent ? S.run : null;
    Object.assign(S, {
      t: again ? replayEnd(S.run) : 0,
      zoom: S.zoomChosen ? S.zoom : again ? "run" : "close",
      hold: live || S.touched ? "spent" : "armed",
      playing: false,
      settle: 1,
    });
    if (S.guided) S.slow = time.auto();
    text.clear();
    if (drawn !== null && !S.sent) showStage();
    drawn = null;
    about.heading();
    if (!calm && !again) S.timer = setTimeout(() => play(true), live ? 0 : 400);
    else if (!live && !again) whenCalm();
  }

  /* Unfolded settings may stand above the stage. */
  function showStage() {
    const { top } = part.stage.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) part.stage.scrollIntoView({ block: "nearest" });
  }

  /* Reduced motion: no replay by itself; open where there is something to see. */
  function whenCalm() {
    text.build();
    const stop = findFirstRejection(S.run);
    S.hold = "spent";
    S.t = stop ? stop.at : replayEnd(S.run);
  }

  /* -- drawing one moment -- */

  function draw(unseen = false) {
    if (!S.run || !(S.seen || unseen)) return;
    const F = figuresAt(S.run, S.t),
      end = replayEnd(S.run),
      over = isOver(S.run),
      key = [F.a.k, F.b.k, over, end, S.slow, S.all, isAtEnd(S)].join(),
      changed = key !== drawn;
    text.paint();
    if (changed) {
      drawn = key;
      about.heading();
      about.paintClocks(F);
      meters(F, end);
      setProperty(part.why, "textContent", explainSpeed(W, S.run, S.t));
      part.say.replaceChildren(...told.sentence(F));
      part.foot.replaceChildren(told.footnote());
      S.stale = true;
      setTimeout(text.follow);
    }
    drawPicture(F, over);
    if (S.stale && (S.below || !S.playing)) drawBelow(F, end);
    paintTransport(F, end);
    drawTimeline(end);
    setProperty(root.dataset, "state", stateName(end, over));
    root.dispatchEvent(new Event("sd-drawn"));
  }

  /* The charts below the lanes follow the cycles, and only while somebody may see them. */
  function drawBelow(F, end) {
    S.stale = false;
    drawBars(F);
    drawCurve(F, end);
    paintAccount(F);
  }

  /* One cycle as token flow; at the end both lanes as bars. Cycles too fast to animate are drawn finished. */
  function drawPicture(F, over) {
    const cycles = speculativeOf(S.run).cycles,
      done =
        over && isAtEnd(S) && F.a.k > 0 && (F.b.k > 0 || !plainOf(S.run)) && !wasStopped(S.run);
    if (done !== Boolean(S.done) || (done && S.done !== S.run)) {
      S.done = done ? S.run : null;
      part.flow.replaceChildren();
      if (done) ending(S.run);
      else picture.resized();
    }
    if (!cycles.length) part.flow.replaceChildren(); // the run before
    if (done || !cycles.length) return;
    const last = F.a.last,
      next = cycles[F.a.k],
      between = next && last && S.t < next.start + EPS,
      early = S.t > (last ? last.at : 0) + EPS;
    const moving = next && early && !between && (!S.playing || time.slow());
    if (moving) picture.draw(next, progressAt(next, S.t));
    else picture.draw(last || next, last ? progressAt(last, S.t, calm ? 1 : S.settle) : 0);
  }

  function resized() {
    picture.resized();
    drawn = null;
    draw(true); // even where nobody sees it: else the old, wider drawing would stay
  }

  /* Whether the charts have other widths than before; a hidden page has none, and keeps those that it had. */
  function measure() {
    if (!part.stage.clientWidth) return false;
    const before = Object.values(S.room).join();
    for (const name of Object.keys(S.room)) S.room[name] = part[name].clientWidth;
    return Object.values(S.room).join() !== before;
  }

  function stateName(end, over) {
    if (S.hold === "holding") return "first-rejection";
    if (isAtEnd(S)) return over ? "done" : "waiting";
    return S.playing ? "playing" : "paused";
  }

  function announce() {
    part.announce.textContent = part.say.textContent;
  }

  function watchSize() {
    new IntersectionObserver((changes) => {
      S.seen = changes[changes.length - 1].isIntersecting;
      S.last = performance.now();
      draw();
    }).observe(root); // several changes may arrive in one call
    new IntersectionObserver((changes) => {
      S.below = changes[changes.length - 1].isIntersecting;
      draw();
    }).observe(root.querySelector(".sd-two"));
    document.fonts.ready.then(() => S.run && resized()); // chips are then as wide as they stay
    new ResizeObserver(() => {
      if (S.run && measure()) resized();
    }).observe(root);
  }

  Object.assign(root, {
    words: W,
    run: () => S.run,
    isFirst: () => S.run !== null && S.run === S.first, // the run that the page loaded with
    log,
    load,
    grow(log) {
      props.value = log;
      pull();
    },
    ended,
    moment: time.moment,
    show: time.show,
  }); // for the other views of the same run
  labelPlayer(W, part, SPEEDS);
  const follow = () => [watch("value", pull), watch("ended", ended)];
  connectWays(part, Boolean(trigger), calm);
  watchSize();
  pull();
  follow();

  /* Drawn before Gradio was there, by `shared/first.js`, the player goes on in Gradio's component. */
  root.moveTo = (place, itsProps, itsWatch, itsTrigger) => {
    const focused = /** @type {any} */ (document.activeElement);
    place.querySelector(".sd-player").replaceWith(root);
    if (root.contains(focused)) focused.focus({ preventScroll: true });
    [props, watch, trigger] = [itsProps, itsWatch, itsTrigger];
    follow();
    pull();
  };
}

export function mount(element, props, watch, trigger = null) {
  const first = document.getElementById("first"),
    early = first && first.querySelector(".sd-player");
  if (early && early.moveTo && !first.contains(element))
    early.moveTo(element, props, watch, trigger);
  else player(element, props, watch, trigger);
  if (first && !first.contains(element)) first.remove();
}
