// @ts-check
/* Plays one run: a growing NDJSON log of events in, two lanes of text or three, a timeline and charts out.
 *
 * Text from the log enters the page by `append` and `textContent` alone: a token may be `<script>`. */

const RUN = require("./run.js"),
  SHARED = require("./kit.js");
const { FIRST, pace } = require("./tempo.js"),
  { flow, progressAt } = require("./flow.js"),
  { finish } = require("./finish.js"),
  { ways } = require("./ways.js"),
  { AUTO, speedName, furniture } = require("./furniture.js");
const { figures } = require("./figures.js"),
  { lanes } = require("./lanes.js"),
  { story } = require("./story.js"),
  { charts } = require("./charts.js"),
  { cards } = require("./card.js");
const {
  EPS,
  speculative,
  plain,
  peerOf,
  isOver,
  wasStopped,
  horizon,
  doneBy,
  figuresAt,
  firstRejection,
  newReader,
  read,
  shownLanes,
  atEnd,
  isServed,
} = RUN;
const { h, clamp, duration, words, write, attribute, saved } = SHARED;

const SPEEDS = [1, 10, 100, 400]; // times slower than it ran
const SETTLE = 1500,
  READ = 2600,
  HOLD = 5500; // ms: the verdicts of a first cycle move, its sentence is read, the first rejection stands
const FRAME = 30,
  TEXT = 120; // ms at least between two drawings, and between two changes of a clock: the engine beside it needs the core

function mount(element, props, watch, trigger) {
  const W = JSON.parse(props.words),
    root = element.querySelector(".sd-player"),
    part = SHARED.parts(root);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const S = {
    run: null,
    t: 0,
    room: { gantt: 0, bars: 0, alpha: 0, curve: 0 },
    playing: false,
    slow: 100,
    zoom: "close",
    zoomChosen: false,
    hold: "armed",
    timer: 0,
    touched: false,
    last: 0,
    guided: true,
    settle: 1,
    seen: true,
    below: false,
  };
  const reader = newReader();
  const picture = flow(part.flow, W),
    ending = finish(part.flow, W, { share: () => root.share });
  const text = lanes(W, part, S),
    card = cards(W, root, part, S),
    about = figures(W, root, part, S),
    drawing = charts(W, part, S, about.term),
    told = story(W, S, numbersOf);
  let drawn = null;

  /* -- taking in the log -- */

  function pull() {
    const fresh = read(reader, props.value || "");
    const begun = reader.run && (fresh || S.run === null || reader.run !== S.run);
    S.run = reader.run;
    if (!S.run) return empty();
    S.run.closed ||= S.run.header.source !== "live"; // all of a recorded run is there, even if it was stopped
    if (begun) begin(fresh);
    text.build();
    if (calm && S.run.header.source === "live") S.t = horizon(S.run);
    draw();
    root.dispatchEvent(new Event("sd-run"));
  }

  /* The stream is over, by its end, by Stop or by a failure: what is there may be played to its end. */
  function ended() {
    if (!S.run || S.run.header.source !== "live") return;
    S.run.closed = true;
    if (calm) S.t = horizon(S.run);
    draw();
  }

  /* Another run in place of this one, by hand of the visitor: even one with the same first line begins anew. */
  function load(log, sent = false) {
    props.value = log;
    Object.assign(reader, newReader());
    S.run = null;
    S.sent = sent; // by a link: it opens at its end
    pull();
    S.sent = false;
    if (trigger) trigger("opened", { head: log.split("\n", 2).join("\n").slice(0, 20000) }); // the rail tells of it, too
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
      again = S.sent || (fresh && live && isServed(S.run) && isOver(S.run)); // or the same run, as its server counted it
    S.sentRun = S.sent ? S.run : null;
    Object.assign(S, {
      t: again ? horizon(S.run) : 0,
      zoom: S.zoomChosen ? S.zoom : again ? "run" : "close",
      hold: live || S.touched ? "spent" : "armed",
      playing: false,
      settle: 1,
    });
    if (S.guided) S.slow = !live || again ? pace(S.run, 0) : isServed(S.run) ? 1 : 100;
    [part.peer.hidden, part.other.hidden] = [!peerOf(S.run), !plain(S.run)];
    text.clear();
    part.rows.replaceChildren(
      ...[W.lane.speculative, peerOf(S.run) && W.lane.peer, plain(S.run) && W.lane.plain]
        .filter(Boolean)
        .map((name) => h("span", {}, name)),
    );
    if (drawn !== null && !again && innerWidth <= 1040)
      part.stage.scrollIntoView({ behavior: calm ? "auto" : "smooth" }); // the button is far below
    drawn = null;
    about.heading();
    if (!calm && !again) S.timer = setTimeout(() => play(true), live ? 0 : 400);
    else if (!live && !again) whenCalm();
  }

  /* Reduced motion: no replay by itself; open where there is something to see. */
  function whenCalm() {
    text.build();
    const stop = firstRejection(S.run);
    S.hold = "spent";
    S.t = stop ? stop.at : horizon(S.run);
  }

  /* -- drawing one moment -- */

  function draw() {
    if (!S.run || !S.seen) return;
    const F = figuresAt(S.run, S.t),
      end = horizon(S.run),
      over = isOver(S.run),
      key = [F.a.k, F.b.k, over, end, S.slow, atEnd(S)].join(),
      changed = key !== drawn;
    text.paint();
    if (changed) {
      drawn = key;
      about.heading();
      about.paintFigures(F);
      part.say.replaceChildren(...told.sentence(F));
      part.foot.replaceChildren(told.footnote());
      S.stale = true;
      setTimeout(text.follow);
    }
    drawPicture(F, over);
    if (S.stale && (S.below || !S.playing)) drawBelow(F, end);
    paintTransport(F, end);
    drawing.drawGantt(end);
    write(root.dataset, "state", stateName(end, over));
    root.dispatchEvent(new Event("sd-drawn"));
  }

  /* The charts below the lanes follow the cycles, and only while somebody may see them. */
  function drawBelow(F, end) {
    S.stale = false;
    drawing.drawBars(F);
    drawing.drawAlpha(F);
    drawing.drawCurve(F, end);
    drawing.paintAccount(F);
  }

  /* One cycle as token flow; at the end both lanes as bars. While cycles pass too fast to be seen, only their ends show. */
  function drawPicture(F, over) {
    const cycles = speculative(S.run).cycles,
      done = over && atEnd(S) && F.a.k > 0 && (F.b.k > 0 || !plain(S.run)) && !wasStopped(S.run);
    if (done !== Boolean(S.done) || (done && S.done !== S.run)) {
      S.done = done ? S.run : null;
      part.flow.replaceChildren();
      if (done) ending.draw(S.run);
      else picture.resized();
    }
    if (!cycles.length) part.flow.replaceChildren(); // the run before
    if (done || !cycles.length) return;
    const last = F.a.last,
      next = cycles[F.a.k],
      between = next && last && S.t < next.start + EPS,
      early = S.t > (last ? last.at : 0) + EPS;
    const moving = next && early && !between && (!S.playing || slow());
    if (moving) picture.draw(next, progressAt(next, S.t));
    else picture.draw(last || next, last ? progressAt(last, S.t, calm ? 1 : S.settle) : 0);
  }

  const slow = () => S.slow >= 200 || tellsSlowly(doneBy(speculative(S.run).cycles, S.t));

  function resized() {
    text.letGo();
    picture.resized();
    drawn = null;
    draw();
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
    if (atEnd(S)) return over ? "done" : "waiting";
    return S.playing ? "playing" : "paused";
  }

  function paintTransport(F, end) {
    const label = S.playing ? "❚❚" : "▶",
      now = performance.now();
    if (part.play.label !== label)
      part.play.replaceChildren(
        (part.play.label = label),
        h("span", {}, " " + (S.playing ? W.transport.pause : W.transport.play)),
      );
    write(part.scrub, "max", String(Math.max(end, EPS)));
    if (S.playing && now - S.told < TEXT) return;
    S.told = now;
    part.scrub.value = S.t;
    attribute(part.scrub, "aria-valuetext", words(W.transport.tokens, { n: F.a.written }));
    shownLanes(S.run).forEach((lane, l) => {
      const span = part["clock" + l].lastChild;
      if (span)
        write(
          span,
          "textContent",
          " · " + duration(lane.finished || S.run.closed ? Math.min(S.t, lane.end) : S.t),
        );
    });
    write(part.speed.firstChild, "textContent", W.transport.auto + " " + speedName(S.slow));
    for (const b of part.speed.children)
      attribute(b, "aria-pressed", String(b.dataset.slow === (S.guided ? AUTO : String(S.slow))));
    for (const b of part.zoom.children)
      attribute(b, "aria-pressed", String(b.dataset.zoom === S.zoom));
  }

  function numbersOf(draft) {
    const more = h("button", { type: "button", class: "sd-link sd-inline" }, W.say.numbers);
    more.onclick = () => {
      touch();
      const item = text.find(draft);
      item && card.showToken(item, true);
    };
    const apart = h("button", { type: "button", class: "sd-link sd-inline" }, W.say.apart);
    apart.onclick = () => takeApart(draft);
    return h("span", {}, more, " · ", apart);
  }

  /* Hands the decision to the page that takes cycles apart; it may not have been opened before. */
  function takeApart(draft) {
    touch();
    const cycle = doneBy(speculative(S.run).cycles, S.t);
    root.wanted = { cycle, node: speculative(S.run).cycles[cycle - 1].drafts.indexOf(draft) };
    const tab = document.getElementById("step-button");
    if (tab) tab.click();
    root.dispatchEvent(new Event("sd-apart"));
  }

  /* -- time -- */

  function seek(t) {
    S.t = clamp(t, 0, horizon(S.run));
    if (!S.zoomChosen) S.zoom = isOver(S.run) && atEnd(S) ? "run" : "close";
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
    const end = horizon(S.run),
      cycles = speculative(S.run).cycles,
      k = doneBy(cycles, S.t),
      next = cycles[k],
      to = S.t + elapsed / S.slow;
    if (next && to >= next.at && tellsSlowly(k)) return commitSlowly(next);
    const stop = S.hold === "armed" ? firstRejection(S.run) : null;
    if (stop && to >= stop.at) return holdAt(stop.at);
    S.t = clamp(to, 0, end);
    if (S.guided && isOver(S.run) && S.run.header.source !== "live") S.slow = pace(S.run, S.t);
    if (S.t >= end - EPS && isOver(S.run)) over();
    draw();
  }

  const tellsSlowly = (k) => S.guided && !calm && k < FIRST && S.run.header.source !== "live";

  /* The verdicts of a cycle move while its time stands still, and its sentence may be read. */
  function commitSlowly(cycle) {
    Object.assign(S, {
      t: cycle.at,
      settle: 0,
      pause: SETTLE + (S.hold === "armed" && firstRejection(S.run) === cycle ? 0 : READ),
    });
    draw();
  }

  function stand(elapsed) {
    S.pause -= elapsed;
    const settle = Math.min(1, S.settle + elapsed / SETTLE),
      moved = settle !== S.settle;
    S.settle = settle;
    const stop = S.hold === "armed" ? firstRejection(S.run) : null;
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
    if (on && isOver(S.run) && atEnd(S)) {
      S.t = 0;
      if (!S.zoomChosen) S.zoom = "close";
    }
    if (S.playing === on) return draw();
    Object.assign(S, { playing: on, last: performance.now(), pause: 0, settle: 1, told: 0 });
    if (on && S.guided && S.run.header.source !== "live") S.slow = pace(S.run, S.t);
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
    const cycles = speculative(S.run).cycles,
      k = doneBy(cycles, S.t),
      to = clamp(k + direction, 0, cycles.length);
    jump(direction > 0 && k === cycles.length ? horizon(S.run) : to ? cycles[to - 1].at : 0);
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

  const announce = () => {
    part.announce.textContent = part.say.textContent;
  };

  function setSpeed(slow) {
    const guided = slow === AUTO;
    Object.assign(S, {
      slow: guided ? (S.run && S.run.header.source !== "live" ? pace(S.run, S.t) : 100) : slow,
      guided,
      told: 0,
    });
    draw();
  }

  function key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.closest("button"),
      onRange = event.target.matches("input");
    if (event.key === " " && !onButton) toggle();
    else if (event.key === "ArrowRight" && !onRange) step(1);
    else if (event.key === "ArrowLeft" && !onRange) step(-1);
    else if (event.key === "Home" && !onRange) jump(0);
    else if (event.key === "End" && !onRange) jump(Infinity);
    else if (/^[1-4]$/.test(event.key)) setSpeed(SPEEDS[event.key - 1]);
    else return;
    event.preventDefault();
  }

  function toggle() {
    touch();
    play(!S.playing);
    if (!S.playing) announce();
  }

  /* -- listening -- */

  function listen() {
    part.play.onclick = toggle;
    part.back.onclick = () => step(-1);
    part.next.onclick = () => step(1);
    part.download.onclick = () =>
      saved(new Blob([props.value || ""], { type: "application/x-ndjson" }), S.run, ".jsonl");
    part.scrub.oninput = () => takeOver(+part.scrub.value);
    part.scrub.onchange = announce;
    part.speed.onclick = (event) => {
      const all = [AUTO, ...SPEEDS.map(String)],
        at = all.indexOf(event.target.dataset.slow),
        alone = event.currentTarget.clientWidth < 140; // on a phone one button stands for all
      const chosen = all[alone ? (at + 1) % all.length : at];
      if (at >= 0) setSpeed(chosen === AUTO ? AUTO : +chosen);
    };
    ways(part, Boolean(trigger), calm);
    part.zoom.onclick = (event) => {
      if (!event.target.dataset.zoom) return;
      Object.assign(S, { zoom: event.target.dataset.zoom, zoomChosen: true });
      draw();
    };
    part.stage.addEventListener("keydown", key);
    part.stage.addEventListener("pointerdown", touch);
    const target = (event) => event.target.closest("button.sd-tok, .sd-term");
    const open = (node, pinned) =>
      node.item ? card.showToken(node.item, pinned) : card.showTerm(node, pinned);
    root.addEventListener("pointerover", (event) => {
      const node = target(event);
      if (node && event.pointerType === "mouse" && !card.pinned()) open(node, false);
    });
    root.addEventListener("pointerout", (event) => {
      if (target(event) && !card.pinned()) card.hide();
    });
    root.addEventListener("focusin", (event) => {
      const node = target(event);
      if (node && node.matches(":focus-visible")) {
        touch();
        open(node, false);
      }
    });
    root.addEventListener("focusout", () => card.hide());
    root.addEventListener("click", (event) => {
      const node = target(event);
      if (node) {
        touch();
        card.pinned() && card.anchor() === node ? card.hide() : open(node, true);
      }
    });
    document.addEventListener("pointerdown", (event) => {
      if (card.pinned() && !target(event) && !event.target.closest(".sd-inline")) card.hide();
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && card.hide()); // wherever the focus is
    new IntersectionObserver((changes) => {
      S.seen = changes.at(-1).isIntersecting;
      S.last = performance.now();
      draw();
    }).observe(root); // a busy page is told of several at once
    new IntersectionObserver((changes) => {
      S.below = changes.at(-1).isIntersecting;
      draw();
    }).observe(root.querySelector(".sd-two"));
    new ResizeObserver(() => {
      if (S.run && measure()) resized();
    }).observe(root);
  }

  Object.assign(root, {
    kit: KIT,
    words: W,
    run: () => S.run,
    log: () => props.value || "",
    load,
    moment,
    show,
  }); // for the other views of the same run
  furniture(W, part, SPEEDS);
  listen();
  pull();
  follow();

  function follow() {
    watch("value", pull);
    watch("ended", ended);
  }

  /* This player was drawn before Gradio was there, by `shared/first.js`; now its component is, and the player goes on in it. */
  root.moveTo = (place, itsProps, itsWatch, itsTrigger) => {
    const focused = document.activeElement;
    place.querySelector(".sd-player").replaceWith(root);
    if (root.contains(focused)) focused.focus({ preventScroll: true });
    [props, watch, trigger] = [itsProps, itsWatch, itsTrigger];
    follow();
    pull();
  };
}

const KIT = { ...RUN, ...SHARED }; // for the other views of a run
if (typeof element === "undefined") module.exports = KIT;
else {
  const first = document.getElementById("first"),
    early = first && first.querySelector(".sd-player");
  if (early && early.moveTo) {
    early.moveTo(element, props, watch, trigger);
    first.remove();
  } else mount(element, props, watch, typeof trigger === "undefined" ? null : trigger);
}
