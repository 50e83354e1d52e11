/* Shows one cycle in sub-steps: draft, check, judge, replacement or bonus, commit. Also answers what-if questions.
 *
 * Holds the tab's state: run, cycle, sub-step, question. Other files draw its parts. */

import { html, createButton, findParts } from "#page/race/html.js";
import { speculativeOf, startedOf, findFirstRejection, isGreedy as isGreedyRun } from "#page/race/run.js";
import { isCoinDecided } from "#page/race/cycle.js";
import { figuresAt } from "#page/race/measure.js";
import { createReader, readLog } from "#page/race/log.js";
import { fillText, joinSentences } from "#page/race/text.js";
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

/** @param {HTMLElement} element @param {Props} props @param {Server} server @param {Player} player */
function mountStepper(element, props, server, player) {
  const texts = /** @type {StepTexts} */ (JSON.parse(props.words)),
    playerTexts = player.words,
    root = element.querySelector(".sd-step"),
    part = findParts(root);
  /** @type {StepView} */
  const view = {
    cycle: 0,
    step: "draft",
    choice: {},
    coin: null,
    notation: "plain",
    playing: false,
    timer: /** @type {any} */ (0),
  };
  let sampledRun = /** @type {any} */ (null), // shown instead of the first screen's greedy run
    requested = false,
    run = /** @type {any} */ (null),
    current = /** @type {any} */ (null),
    clearTimer = /** @type {any} */ (0);

  function showRun() {
    const shown = player.run();
    if (sampledRun && sampledRun.insteadOf !== shown) sampledRun = null;
    if (!requested && server && player.isFirst() && isGreedyRun(shown) && !player.wantedStep) return loadSampledRun();
    const next = sampledRun ? sampledRun.run : shown;
    if (!next || !speculativeOf(next).cycles.length) {
      root.dataset.state = "empty";
      part.empty.textContent = texts.empty;
      return;
    }
    if (next !== run) beginRun(next);
    root.dataset.state = "ready";
    runText.write();
    draw();
  }

  async function loadSampledRun() {
    if (!root.clientWidth) return;
    requested = true;
    const shown = player.run(),
      reader = createReader();
    readLog(reader, await server.sampled_run().catch(() => ""));
    if (reader.run && !player.wantedStep) sampledRun = { run: reader.run, insteadOf: shown };
    showRun();
  }

  const showRaceRun = () => ((sampledRun = null), showRun());

  /* Opens a run at a rejection that a coin decided, of a word that can be read struck out if there is one. */
  function beginRun(/** @type {Run} */ next) {
    run = next;
    runText.begin(run);
    const isRejected = (/** @type {Draft} */ draft) => draft.state === "rejected",
      isCoinRejected = (/** @type {Draft} */ draft) => isRejected(draft) && isCoinDecided(draft),
      isLongRejected = (/** @type {Draft} */ draft) => isCoinRejected(draft) && draft.piece.trim().length > 2,
      cycle =
        cycles().find(({ drafts }) => drafts.some(isLongRejected)) ||
        cycles().find(({ drafts }) => drafts.some(isCoinRejected)) ||
        findFirstRejection(run),
      order = cycle ? recordedVerdict(cycle, rule()).order : [],
      find = (/** @type {(draft: Draft) => boolean} */ test) =>
        order.find((/** @type {number} */ node) => cycle && test(cycle.drafts[node])),
      rejected = find(isCoinRejected) ?? find(isRejected);
    goTo(cycle ? cycle.number - 1 : 0, rejected ?? "draft", false);
  }

  const cycles = () => speculativeOf(run).cycles;
  const started = () => startedOf(run);
  const plainStepMs = () => figuresAt(run, Infinity).plainPassMs;
  const rule = () => started().rule || REJECTION_SAMPLING;
  const isGreedy = () => isGreedyRun(run);
  const hasQuestion = () => view.choice.rule != null || view.choice.k != null || view.choice.coins != null;

  function computeCycle() {
    const cycle = cycles()[view.cycle],
      recorded = recordedVerdict(cycle, rule()),
      changed = hasQuestion();
    const verdict = changed ? judge(cycle, { ...view.choice, rule: view.choice.rule || rule() }, rule()) : recorded;
    const states = changed ? statesOf(cycle, verdict) : cycle.drafts.map((draft) => draft.state);
    if (!changed) verdict.order = verdict.order.filter((/** @type {number} */ node) => states[node] !== "cut");
    const targetToken = targetTokenOf(cycle, verdict, recorded),
      steps = stepsOf(cycle, verdict, states, targetToken);
    const stepIndex = steps.indexOf(view.step),
      gained = changed || targetToken ? verdict.path.length + (targetToken ? 1 : 0) : cycle.gained;
    return { cycle, recorded, changed, verdict, states, targetToken, steps, stepIndex, gained };
  }

  function draw(byHand = false) {
    if (!run || !root.clientWidth) return;
    const hadFocus = root.contains(document.activeElement),
      onRail = part.rail.contains(document.activeElement);
    current = computeCycle();
    if (!current.steps.includes(view.step)) view.step = current.targetToken ? "own" : "commit";
    current.stepIndex = current.steps.indexOf(view.step);
    paintHead();
    runText.paint();
    part.text.classList.toggle(
      "sd-cut",
      current.changed || view.step !== "commit" || speculativeOf(run).finished?.reason === "length",
    );
    paintRail();
    part.say.replaceChildren(
      ...(current.changed ? [html("b", {}, texts.what_if.mark), " "] : []),
      ...sentences.stepSentence(),
    );
    paintGrid();
    evidence.paint();
    questions.paint();
    transport.paint();
    if (byHand) {
      announce();
      scrollToSentence();
    }
    // Drawing can remove the focused element; without focus in this tab, its keys would not work.
    if (hadFocus && !root.contains(document.activeElement))
      (onRail ? part.rail.querySelector("[aria-current] button") : part.grid).focus({
        preventScroll: true,
      });
  }

  /* Announces the sentence to screen readers; clears it, so that they do not read it twice. */
  function announce() {
    part.announce.textContent = part.say.textContent;
    clearTimeout(clearTimer);
    clearTimer = setTimeout(() => part.announce.replaceChildren(), 3000);
  }

  function scrollToSentence() {
    const { top } = part.say.getBoundingClientRect();
    if (top < part.bar.getBoundingClientRect().bottom || top > innerHeight - 120) part.say.scrollIntoView();
  }

  function goTo(/** @type {number} */ cycle, /** @type {Step | null} */ step, byHand = true) {
    Object.assign(view, { cycle: clamp(cycle, 0, cycles().length - 1), choice: {}, step, coin: null });
    if (byHand) draw(true);
  }

  function stepBy(/** @type {number} */ direction) {
    const at = current.stepIndex + direction;
    if (at >= 0 && at < current.steps.length) {
      view.step = current.steps[at];
      view.coin = null;
      return (draw(true), true);
    }
    const next = view.cycle + direction;
    if (next < 0 || next >= cycles().length) return false;
    goTo(next, "draft", false);
    view.step = direction > 0 ? computeCycle().steps[0] : "commit";
    draw(true);
    return true;
  }

  const pauseAnd = (/** @type {Act} */ act) => {
    transport.play(false);
    act();
  };

  const showStep = (/** @type {Step} */ step, coin = null) =>
    pauseAnd(() => {
      Object.assign(view, { step, coin });
      draw(true);
    });

  function paintHead() {
    part.title.textContent = fillText(texts.title, { cycle: view.cycle + 1, cycles: cycles().length });
    part.hint.replaceChildren(
      ...(current.changed
        ? [
            createPress(texts.what_if.reset, "sd-link sd-reset", () => {
              view.choice = {};
              draw(true);
            }),
          ]
        : [
            joinSentences(sampledRun && texts.beside, texts.hint),
            .../** @type {("resampled" | "bonus")[]} */ (["resampled", "bonus"]).flatMap(createShortcut),
            ...(sampledRun ? [" ", createPress(texts.shortcuts.race, "sd-link", showRaceRun)] : linkToSampled()),
          ]),
    );
  }

  function createShortcut(/** @type {"resampled" | "bonus"} */ state) {
    const all = cycles(),
      order = all.map((_, i) => (view.cycle + 1 + i) % all.length),
      isOne = (/** @type {number} */ i) => all[i].targetToken?.state === state,
      index = order.find((i) => isOne(i) && (all[i].targetToken?.p ?? 0) > 0.2) ?? order.find(isOne);
    return index === undefined ? [] : [" ", createPress(texts.shortcuts[state], "sd-link", () => goTo(index, "own"))];
  }

  /* Creates a link to a run in which coins decide, if this run is greedy. A saved page cannot load one. */
  function linkToSampled() {
    if (!isGreedy() || !server) return [];
    const load = async () => {
      const log = await server.sampled_run().catch(() => "");
      if (log) player.load(log);
    };
    return [" ", createPress(texts.shortcuts.sampled, "sd-link", load)];
  }

  /** @param {string} label @param {string} cls @param {Act} act */
  const createPress = (label, cls, act) => createButton(label, () => pauseAnd(act), cls);

  /** @type {StepPage} */
  const page = {
    texts,
    playerTexts,
    view,
    root,
    part,
    current: () => current,
    passTime: () => (current.cycle.check ? formatDuration(current.cycle.check.end - current.cycle.check.start) : "–"),
    plainStepMs,
    cycles,
    started,
    rule,
    isGreedy,
    computeCycle,
    draw,
    goTo,
    stepBy,
    pauseAnd,
    showStep,
  };
  const chips = createChips(page),
    runText = createRunText(page, chips),
    paintRail = createRail(page),
    paintGrid = createGrid(page, chips),
    probabilityBars = createProbabilityBars(page),
    serverViews = createServerViews(page, probabilityBars.drawRow),
    sentences = createSentences(page, serverViews),
    evidence = createEvidence(page, probabilityBars, serverViews, sentences.describeLikeliest),
    questions = createQuestions(page, evidence.focusedNode),
    transport = createTransport(page);

  /* Opens the draft in `player.wantedStep`, which another tab wrote, perhaps before this one was mounted. */
  function openWantedStep() {
    if (!player.wantedStep || !run) return;
    const { cycle, node } = player.wantedStep;
    player.wantedStep = null;
    if (sampledRun || run !== player.run()) showRaceRun();
    goTo(cycle - 1, node);
  }

  for (const [name, label] of Object.entries(texts.labels)) part[name].textContent = label;
  for (const [name, label] of Object.entries(texts.aria)) part[name].setAttribute("aria-label", label);
  for (const input of [part.coin, part.k, part.rule]) input.addEventListener("change", announce);
  player.addEventListener("sd-run", showRun);
  player.addEventListener("sd-step-through", openWantedStep);
  new ResizeObserver(() => {
    if (run) draw();
    else showRun();
  }).observe(root);
  showRun();
  openWantedStep();
}

/** @type {Mount} */
export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => mountStepper(element, props, server, player));
