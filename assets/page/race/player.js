// @ts-check
/* Plays one run: a growing NDJSON log of events in, two lanes of text or three, a timeline and charts out.
 *
 * Text from the log enters the page by `append` and `textContent` alone: a token may be `<script>`. */

const RUN = require("./run.js"), SHARED = require("./kit.js");
const { lanes } = require("./lanes.js"), { story } = require("./story.js"), { charts } = require("./charts.js"), { cards } = require("./card.js");
const { EPS, speculative, plain, peerOf, isOver, wasStopped, horizon, doneBy, figuresAt, firstRejection, newReader, read, shownLanes, atEnd } = RUN;
const { BLOCK, h, chip, clamp, fixed, duration, size, pick, words, freshId } = SHARED;

const SPEEDS = [[1, "1×"], [10, "1/10"], [100, "1/100"], [400, "1/400"]];
const HOLD = 7000; // how long the first rejection may be read before the replay goes on by itself
const FRAME = 30; // ms at least between two drawings: a page that draws more takes a core from the engine beside it

function mount(element, props, watch) {
  const W = props.words, root = element.querySelector(".sd-player"), part = {};
  for (const node of root.querySelectorAll("[data-part]")) part[node.dataset.part] = node;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const S = { run: null, t: 0, room: { gantt: 0, bars: 0, alpha: 0, curve: 0 }, playing: false, slow: 100, zoom: "close", zoomChosen: false, hold: "armed", timer: 0, touched: false, last: 0 };
  const reader = newReader(), clipId = freshId("clip");
  const text = lanes(W, part, S), card = cards(W, root, part, S), drawing = charts(W, part, S, { clipId, term }), told = story(W, S, numbersOf);
  let drawn = null;

  /* -- taking in the log -- */

  function pull() {
    const fresh = read(reader, props.value || "");
    const begun = reader.run && (fresh || S.run === null || reader.run !== S.run);
    S.run = reader.run;
    if (!S.run) return empty();
    S.run.closed ||= S.run.header.source !== "live"; // all of a recorded run is there, even if it was stopped
    if (begun) begin();
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
  function load(log) {
    props.value = log;
    Object.assign(reader, newReader());
    S.run = null;
    pull();
  }

  function empty() {
    part.say.textContent = W.empty;
    root.dataset.state = "empty";
  }

  function begin() {
    clearTimeout(S.timer);
    card.hide();
    const live = S.run.header.source === "live";
    Object.assign(S, { t: 0, zoom: S.zoomChosen ? S.zoom : "close", hold: live || S.touched ? "spent" : "armed", playing: false });
    part.peer.hidden = !peerOf(S.run);
    text.clear();
    if (drawn !== null && innerWidth <= 1040) part.stage.scrollIntoView({ behavior: calm ? "auto" : "smooth" }); // the button is far below
    drawn = null;
    heading();
    if (!calm) S.timer = setTimeout(() => play(true), live ? 0 : 400);
    else if (!live) whenCalm();
  }

  /* Reduced motion: no replay by itself; open where there is something to see. */
  function whenCalm() {
    text.build();
    const stop = firstRejection(S.run);
    S.hold = "spent";
    S.t = stop ? stop.at : horizon(S.run);
  }

  /* -- words that stand still during a run -- */

  function heading() {
    const head = S.run.header, started = speculative(S.run).started || { drafter: "other", k: "K" }, models = head.models || {}, machine = head.machine || {};
    const source = head.source === "live" ? "live" : "recorded";
    part.source.textContent = W.source[source];
    root.dataset.source = source;
    const total = models.target && size(models.target.parameters), target = total && models.family === "tuned" ? words(W.meta.tuned, { target: total }) : total;
    const drafting = /^draft_model/.test(started.drafter) && Object.hasOwn(models, started.drafter) && models[started.drafter], draft = drafting && size(drafting.parameters);
    const pair = target && draft ? words(W.meta.pair, { target, draft }) : target ? words(W.meta.target_only, { target }) : "";
    const device = (/^cuda/.test(models.device) && machine.gpu) || (machine.cores ? (machine.cores === 1 ? W.meta.one_core : words(W.meta.cores, { n: machine.cores })) : "");
    const pace = S.slow === 1 ? W.meta.real_time : words(source === "live" ? (isOver(S.run) ? W.meta.live : W.meta.running) : W.meta.recorded, { times: S.slow });
    part.meta.textContent = [W.kind[head.kind || ""] || head.kind, pair, device, pace].filter(Boolean).join(" · ");
    root.toggleAttribute("data-lossy", started.lossless === false);
    root.toggleAttribute("data-peer", Boolean(peerOf(S.run)));
    if (peerOf(S.run)) part.sub2.textContent = peerWords(peerOf(S.run), machine.transformers);
    part.legend.late.data = W.status[started.rule === BLOCK ? "late" : "dis"];
    part.sub0.textContent = words(started.k === 0 ? W.lane.none : pick(W.drafter, started.drafter), { k: started.k }) + (pick(W.rule, started.rule) ? "; " + pick(W.rule, started.rule) : "");
  }

  function peerWords(lane, version) {
    return words(pick(W.peer, lane.started ? lane.started.drafter : "other"), { k: lane.started ? lane.started.k : "K", version: version || "" });
  }

  function furniture() {
    const named = { name0: W.lane.speculative, name1: W.lane.plain, name2: W.lane.peer, sub1: W.lane.plain_sub, time: W.time.title, timesub: W.time.sub, barstitle: W.charts.bars, barssub: W.charts.bars_sub, curvetitle: W.charts.curve, curvesub: W.charts.curve_sub, alphatitle: W.charts.alpha, alphasub: W.charts.alpha_sub, accounttitle: W.charts.account, accountsub: W.charts.account_sub, download: W.transport.download };
    for (const [name, words] of Object.entries(named)) part[name].textContent = words;
    part.card.id = clipId + "-card";
    part.stage.setAttribute("aria-label", W.transport.stage);
    part.back.setAttribute("aria-label", W.transport.back);
    part.next.setAttribute("aria-label", W.transport.next);
    part.scrub.setAttribute("aria-label", W.transport.position);
    part.speed.setAttribute("aria-label", W.transport.speed);
    part.lossy.textContent = W.lossy;
    part.legend.append(...["acc", "rej", "dis", "res", "bon", "pen"].map((state) => h("span", { class: "sd-it" }, legendChip(state), W.status[state])));
    part.legend.late = part.legend.children[2].lastChild;
    part.swatches.append(h("i", { class: "sd-sw-draft" }), W.time.draft + " ", h("i", { class: "sd-sw-target" }), W.time.target);
    part.zoom.append(...["close", "run"].map((zoom) => h("button", { type: "button", "data-zoom": zoom }, W.time[zoom])));
    part.speed.append(...SPEEDS.map(([slow, label]) => h("button", { type: "button", "data-slow": slow }, label)));
  }

  function legendChip(state) {
    const node = chip(W, W.sample, state, "span");
    node.setAttribute("aria-hidden", "true");
    node.removeAttribute("aria-label");
    return node;
  }

  /* -- drawing one moment -- */

  function draw() {
    if (!S.run) return;
    const F = figuresAt(S.run, S.t), end = horizon(S.run), over = isOver(S.run), key = [F.a.k, F.b.k, over, end, S.slow].join(), changed = key !== drawn;
    text.paint();
    if (changed) {
      drawn = key;
      heading();
      paintFigures(F, end);
      part.say.replaceChildren(...told.sentence(F));
      part.foot.replaceChildren(told.footnote());
      drawing.drawBars(F);
      drawing.drawAlpha(F);
      drawing.paintAccount(F);
    }
    paintTransport(F, end);
    drawing.drawGantt(end);
    drawing.drawCurve(F, end);
    root.dataset.state = stateName(end, over);
    if (changed) text.keepTall(); // last: what is read here is laid out once a frame
  }

  function resized() {
    text.letGo();
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

  function term(name, label) {
    const node = h("button", { type: "button", class: "sd-term" }, label);
    node.definition = W.define[name];
    return node;
  }

  function paintFigures(F, end) {
    const final = isOver(S.run) && atEnd(S) && !wasStopped(S.run), U = W.figures;
    const rows = [
      ["speedup", final ? U.speedup : U.so_far, F.speedup ? fixed(F.speedup) + "×" : "–", "", "sd-hero"],
      ["speculative", U.speculative, F.a.rate ? fixed(F.a.rate, 0) : "–", U.rate_unit],
      ["plain", U.plain, F.b.rate ? fixed(F.b.rate, 0) : "–", U.rate_unit],
      ...(F.peer ? [["peer", U.peer, F.peer.rate ? fixed(F.peer.rate, 0) : "–", F.against ? words(U.against, { times: fixed(F.against) }) : U.rate_unit]] : []),
      ["alpha", U.alpha, F.alpha == null ? "–" : fixed(F.alpha), F.a.judged ? words(F.a.trees ? U.levels : U.judged, { a: F.a.accepted, b: F.a.judged }) : ""],
      ["tau", U.tau, F.tau == null ? "–" : fixed(F.tau), U.tau_unit],
    ];
    if (part.figures.children.length !== rows.length) part.figures.replaceChildren(...rows.map(([name, label, , , cls]) => h("div", { class: cls }, h("dt", {}, term(name, label), cls ? h("span", { class: "sd-tag" }, W.lossy) : null), h("dd", {}))));
    rows.forEach(([, label, value, unit], i) => {
      const [dt, dd] = part.figures.children[i].children;
      dt.firstChild.textContent = label;
      dd.replaceChildren(value, ...(unit ? [h("small", {}, unit)] : []));
    });
    const clock = (lane, n) => [h("b", {}, n === 1 ? W.lane.one_token : words(W.lane.clock, { tokens: n })), h("span", {}, "")];
    part.clock0.replaceChildren(...clock(speculative(S.run), F.a.written));
    part.clock1.replaceChildren(...clock(plain(S.run), F.b.written));
    if (F.peer) part.clock2.replaceChildren(...clock(peerOf(S.run), F.peer.written));
  }

  function paintTransport(F, end) {
    const label = S.playing ? "❚❚ " + W.transport.pause : "▶ " + W.transport.play;
    if (part.play.textContent !== label) part.play.textContent = label;
    part.scrub.max = Math.max(end, EPS);
    part.scrub.value = S.t;
    part.scrub.setAttribute("aria-valuetext", words(W.transport.tokens, { n: F.a.written }));
    shownLanes(S.run).forEach((lane, l) => {
      const span = part["clock" + l].lastChild;
      if (span) span.textContent = " · " + duration(lane.finished || S.run.closed ? Math.min(S.t, lane.end) : S.t);
    });
    for (const b of part.speed.children) b.setAttribute("aria-pressed", String(+b.dataset.slow === S.slow));
    for (const b of part.zoom.children) b.setAttribute("aria-pressed", String(b.dataset.zoom === S.zoom));
  }

  function numbersOf(draft) {
    const more = h("button", { type: "button", class: "sd-link sd-inline" }, W.say.numbers);
    more.onclick = () => { touch(); const item = text.find(draft); item && card.showToken(item, true); };
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
    draw();
  }

  function frame(now) {
    if (!S.playing || !S.run) return;
    if (now - S.last < (isOver(S.run) ? FRAME : 2 * FRAME)) return requestAnimationFrame(frame);
    const end = horizon(S.run), next = S.t + Math.min(now - S.last, 250) / S.slow, stop = S.hold === "armed" ? firstRejection(S.run) : null;
    S.last = now;
    if (stop && next >= stop.at) return holdAt(stop.at);
    S.t = clamp(next, 0, end);
    if (S.t >= end - EPS && isOver(S.run)) finish();
    draw();
    if (S.playing) requestAnimationFrame(frame);
  }

  function finish() {
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
    S.playing = on;
    S.last = performance.now();
    draw();
    if (on) requestAnimationFrame(frame);
  }

  /* The first view stops once, where there is something to understand, and goes on if nobody takes over. */
  function holdAt(t) {
    Object.assign(S, { t, playing: false, hold: "holding" });
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
    Object.assign(S, { playing: false, hold: "spent" });
    seek(t);
  }

  function jump(t) {
    takeOver(t);
    announce();
  }

  function step(direction) {
    if (!S.run) return;
    const cycles = speculative(S.run).cycles, k = doneBy(cycles, S.t), to = clamp(k + direction, 0, cycles.length);
    jump(direction > 0 && k === cycles.length ? horizon(S.run) : to ? cycles[to - 1].at : 0);
  }

  const announce = () => { part.announce.textContent = part.say.textContent; };

  function setSpeed(slow) {
    S.slow = slow;
    draw();
  }

  function key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.closest("button"), onRange = event.target.matches("input");
    if (event.key === " " && !onButton) toggle();
    else if (event.key === "ArrowRight" && !onRange) step(1);
    else if (event.key === "ArrowLeft" && !onRange) step(-1);
    else if (event.key === "Home" && !onRange) jump(0);
    else if (event.key === "End" && !onRange) jump(Infinity);
    else if (/^[1-4]$/.test(event.key)) setSpeed(SPEEDS[event.key - 1][0]);
    else return;
    event.preventDefault();
  }

  function toggle() {
    touch();
    play(!S.playing);
    if (!S.playing) announce();
  }

  function download() {
    const url = URL.createObjectURL(new Blob([props.value || ""], { type: "application/x-ndjson" }));
    h("a", { href: url, download: "specdec-" + String((S.run && S.run.header.run) || "run").replace(/[^\w-]/g, "").slice(0, 40) + ".jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  /* -- listening -- */

  function listen() {
    part.play.onclick = toggle;
    part.back.onclick = () => step(-1);
    part.next.onclick = () => step(1);
    part.download.onclick = download;
    part.scrub.oninput = () => takeOver(+part.scrub.value);
    part.scrub.onchange = announce;
    part.speed.onclick = (event) => event.target.dataset.slow && setSpeed(+event.target.dataset.slow);
    part.zoom.onclick = (event) => {
      if (!event.target.dataset.zoom) return;
      Object.assign(S, { zoom: event.target.dataset.zoom, zoomChosen: true });
      draw();
    };
    part.stage.addEventListener("keydown", key);
    part.stage.addEventListener("pointerdown", touch);
    const target = (event) => event.target.closest("button.sd-tok, .sd-term");
    const open = (node, pinned) => (node.item ? card.showToken(node.item, pinned) : card.showTerm(node, pinned));
    root.addEventListener("pointerover", (event) => { const node = target(event); if (node && event.pointerType === "mouse" && !card.pinned()) open(node, false); });
    root.addEventListener("pointerout", (event) => { if (target(event) && !card.pinned()) card.hide(); });
    root.addEventListener("focusin", (event) => { const node = target(event); if (node && node.matches(":focus-visible")) { touch(); open(node, false); } });
    root.addEventListener("focusout", () => card.hide());
    root.addEventListener("click", (event) => { const node = target(event); if (node) { touch(); card.pinned() && card.anchor() === node ? card.hide() : open(node, true); } });
    document.addEventListener("pointerdown", (event) => { if (card.pinned() && !target(event) && !event.target.closest(".sd-inline")) card.hide(); });
    document.addEventListener("keydown", (event) => event.key === "Escape" && card.hide()); // wherever the focus is
    new ResizeObserver(() => { if (S.run && measure()) resized(); }).observe(root);
  }

  Object.assign(root, { kit: KIT, words: W, run: () => S.run, log: () => props.value || "", load }); // for the other views of the same run
  furniture();
  listen();
  pull();
  watch("value", pull);
  watch("ended", ended);
}

const KIT = { ...RUN, ...SHARED }; // for the other views of a run
if (typeof element === "undefined") module.exports = KIT;
else mount(element, props, watch);
