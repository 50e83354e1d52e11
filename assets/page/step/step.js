/* Takes one cycle apart: draft, check, judge, replace or bonus, commit; and asks what if.
 *
 * Here is where the page stands: run, cycle, sub-step, question. What decides is in judge.js; each part of the page is
 * drawn by a file of its own. The run and the makers of elements are the player's. Text enters by `append`. */

import { html, createButton, findParts } from "#page/race/html.js";
import { speculativeOf, findFirstRejection, isGreedy as greedy } from "#page/race/run.js";
import { isCoinDecided } from "#page/race/cycle.js";
import { createReader, readLog } from "#page/race/log.js";
import { fillText } from "#page/race/text.js";
import { formatDuration, clamp } from "#page/race/format.js";
import { REJECTION_SAMPLING, judge, recordedVerdict, statesOf } from "#page/step/judge.js";
import { targetTokenOf, stepsOf } from "#page/step/token.js";
import { createChips } from "#page/step/chips.js";
import { createRunText } from "#page/step/text.js";
import { createSentences } from "#page/step/sentence.js";
import { createGrid, createRail } from "#page/step/grid.js";
import { createProbabilityBars } from "#page/step/probabilities.js";
import { createServerViews } from "#page/step/server.js";
import { createEvidence } from "#page/step/evidence.js";
import { createQuestions } from "#page/step/questions.js";
import { createTransport } from "#page/step/transport.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

function stepper(element, props, server, player) {
  const W = JSON.parse(props.words),
    PW = player.words,
    root = element.querySelector(".sd-step"),
    part = findParts(root);
  const S = {
    cycle: 0,
    step: "draft",
    choice: {},
    coin: null,
    notation: "plain",
    playing: false,
    timer: /** @type {any} */ (0),
  };
  let own = /** @type {any} */ (null), // a run of this tab's own, beside the first screen's: there no coin decides
    sought = false,
    run = /** @type {any} */ (null),
    now = /** @type {any} */ (null),
    quiet = /** @type {any} */ (0);

  /* -- the run, and where we stand in it -- */

  function pull() {
    const shown = player.run();
    if (own && own.beside !== shown) own = null;
    if (!sought && server && player.isFirst() && greedy(shown) && !player.wanted) return seek();
    const next = own ? own.run : shown;
    if (!next || !speculativeOf(next).cycles.length) {
      root.dataset.state = "empty";
      part.empty.textContent = W.empty;
      return;
    }
    if (next !== run) begin(next);
    root.dataset.state = "ready";
    text.write();
    draw();
  }

  /* Only once, and only while it would be seen. */
  async function seek() {
    if (!root.clientWidth) return;
    sought = true;
    const beside = player.run(),
      reader = createReader();
    readLog(reader, await server.sampled_run().catch(() => ""));
    if (reader.run && !player.wanted) own = { run: reader.run, beside };
    pull();
  }

  const ofRace = () => ((own = null), pull());

  /* Begins where a coin said no that could have said yes, else at the first rejection. */
  function begin(next) {
    run = next;
    text.begin(run);
    const is = (draft) => draft.state === "rej",
      open = (draft) => is(draft) && isCoinDecided(draft),
      cycle = cycles().find(({ drafts }) => drafts.some(open)) || findFirstRejection(run),
      all = cycle ? recordedVerdict(cycle, rule()).order : [],
      rejected =
        all.find((node) => open(cycle.drafts[node])) ?? all.find((node) => is(cycle.drafts[node]));
    go(cycle ? cycle.number - 1 : 0, rejected ?? "draft", false);
  }

  const cycles = () => speculativeOf(run).cycles;
  const started = () => speculativeOf(run).started || {};
  const rule = () => started().rule || REJECTION_SAMPLING;
  const isGreedy = () => greedy(run);
  const asked = () => S.choice.rule != null || S.choice.k != null || S.choice.coins != null;

  /* Everything that is drawn, from the cycle and the question. */
  function look() {
    const cycle = cycles()[S.cycle],
      theirs = recordedVerdict(cycle, rule()),
      touched = asked();
    const verdict = touched
      ? judge(cycle, { ...S.choice, rule: S.choice.rule || rule() }, rule())
      : theirs;
    const states = touched ? statesOf(cycle, verdict) : cycle.drafts.map((draft) => draft.state);
    if (!touched) verdict.order = verdict.order.filter((node) => states[node] !== "cut");
    const own = targetTokenOf(cycle, verdict, theirs),
      steps = stepsOf(cycle, verdict, states, own);
    return {
      cycle,
      theirs,
      touched,
      verdict,
      states,
      own,
      steps,
      gained: touched || own ? verdict.path.length + (own ? 1 : 0) : cycle.gained,
    };
  }

  function draw(byHand) {
    if (!run || !root.clientWidth) return;
    const held = root.contains(document.activeElement),
      onRail = part.rail.contains(document.activeElement);
    now = look();
    if (!now.steps.includes(S.step)) S.step = now.own ? "own" : "commit";
    now.at = now.steps.indexOf(S.step);
    paintHead();
    text.paint();
    paintRail();
    part.say.replaceChildren(
      ...(now.touched ? [html("b", {}, W.what_if.mark), " "] : []),
      ...told.sentence(),
    );
    paintGrid();
    beside.paint();
    questions.paint();
    moving.paint();
    if (byHand) {
      announce();
      intoView();
    }
    // What had the focus may have been drawn anew; the keys must go on working.
    if (held && !root.contains(document.activeElement))
      (onRail ? part.rail.querySelector("[aria-current] button") : part.grid).focus({
        preventScroll: true,
      });
  }

  /* Said aloud, and gone again: the sentence stands on the page once. */
  function announce() {
    part.announce.textContent = part.say.textContent;
    clearTimeout(quiet);
    quiet = setTimeout(() => part.announce.replaceChildren(), 3000);
  }

  /* A step by hand shows what it tells, if that lies off the screen. */
  function intoView() {
    const { top } = part.tell.getBoundingClientRect(),
      room = part.bar.getBoundingClientRect().top;
    if (top < 0 || top > room - 120)
      part.tell.scrollIntoView({ block: innerWidth > 720 ? "center" : "start" });
  }

  /* -- moving -- */

  function go(cycle, step, byHand = true) {
    Object.assign(S, { cycle: clamp(cycle, 0, cycles().length - 1), choice: {}, step, coin: null });
    if (byHand) draw(true);
  }

  function step(direction) {
    const at = now.at + direction;
    if (at >= 0 && at < now.steps.length) {
      S.step = now.steps[at];
      S.coin = null;
      return (draw(true), true);
    }
    const next = S.cycle + direction;
    if (next < 0 || next >= cycles().length) return false;
    go(next, "draft", false);
    S.step = direction > 0 ? look().steps[0] : "commit";
    draw(true);
    return true;
  }

  const byHand = (act) => {
    moving.play(false);
    act();
  };

  const show = (step, coin = null) =>
    byHand(() => {
      Object.assign(S, { step, coin });
      draw(true);
    });

  /* -- the head -- */

  function paintHead() {
    part.title.textContent = fillText(W.title, { cycle: S.cycle + 1, cycles: cycles().length });
    part.previous.disabled = S.cycle === 0;
    part.following.disabled = S.cycle === cycles().length - 1;
    part.hint.replaceChildren(
      ...(now.touched
        ? [
            W.what_if.grey,
            " ",
            press(W.what_if.reset, "sd-link sd-reset", () => {
              S.choice = {};
              draw(true);
            }),
          ]
        : [
            own ? fillText(W.beside, { prompt: run.header.prompt }) : W.hint,
            ...["res", "bon"].flatMap(shortcut),
            ...(own ? [" ", press(W.shortcuts.race, "sd-link", ofRace)] : toSampled()),
          ]),
    );
  }

  /* The way to the nearest cycle, from the next one on, that ends in a replacement or in a bonus. */
  function shortcut(state) {
    const all = cycles(),
      order = all.map((_, i) => (S.cycle + 1 + i) % all.length),
      to = order.find((i) => all[i].targetToken && all[i].targetToken.state === state);
    return to === undefined ? [] : [" ", press(W.shortcuts[state], "sd-link", () => go(to, "own"))];
  }

  /* At temperature 0 no coin decides: the way to a run in which it does. A saved page has no server to ask for it. */
  function toSampled() {
    if (!isGreedy() || !server) return [];
    const load = async () => {
      const log = await server.sampled_run().catch(() => "");
      if (log) player.load(log);
    };
    return [" ", press(W.shortcuts.sampled, "sd-link", load)];
  }

  const press = (label, cls, act) => createButton(label, () => byHand(act), cls);

  /* -- the parts, and listening -- */

  const page = {
    W,
    PW,
    S,
    root,
    part,
    now: () => now,
    passTime: () =>
      now.cycle.check ? formatDuration(now.cycle.check.end - now.cycle.check.start) : "–",
    cycles,
    started,
    rule,
    isGreedy,
    look,
    draw,
    go,
    step,
    byHand,
    show,
  };
  const chip = createChips(page),
    text = createRunText(page, chip),
    paintRail = createRail(page),
    paintGrid = createGrid(page, chip),
    view = createProbabilityBars(page),
    theirs = createServerViews(page, view.row),
    told = createSentences(page, theirs),
    beside = createEvidence(page, view, theirs, told.guess),
    questions = createQuestions(page, beside.focus),
    moving = createTransport(page);

  /* The race asks for one decision to be taken apart; it may have asked before this page was there. */
  function wanted() {
    if (!player.wanted || !run) return;
    const { cycle, node } = player.wanted;
    player.wanted = null;
    if (own || run !== player.run()) ofRace();
    go(cycle - 1, node);
  }

  for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
  for (const [name, label] of Object.entries(W.aria)) part[name].setAttribute("aria-label", label);
  for (const input of [part.coin, part.k, part.rule]) input.addEventListener("change", announce);
  player.addEventListener("sd-run", pull);
  player.addEventListener("sd-apart", wanted);
  new ResizeObserver(() => {
    if (run) draw();
    else pull();
  }).observe(root);
  pull();
  wanted();
}

export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => stepper(element, props, server, player));
