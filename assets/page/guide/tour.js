/* Runs the tour: opens tabs, points at widgets, sets tasks, and does them on *Show me*. */

import { findParts } from "#page/race/html.js";
import { isOver, speculativeOf, findFirstRejection, replayEnd } from "#page/race/run.js";
import { fillText } from "#page/race/text.js";
import { whenPlayerReady } from "#page/shared/arrival.js";
import { RING_GAP, NARROW_PX, CORNERS, choosePlace, scrollDistance } from "#page/guide/place.js";
import { PLAYER, READY, STEPS } from "#page/guide/stops.js";

/** @param {HTMLElement} element @param {Props} props @param {Server} server @param {Player} player */
function mountTour(element, props, server, player) {
  const texts = JSON.parse(props.words);
  const root = element.querySelector(".sd-touring"),
    part = findParts(root);
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let sampledRun = ""; // log of the run that the tour shows
  const view = {
    step: -1,
    hasActed: false,
    hasScrolled: false,
    isDone: false,
    place: "",
    standsAt: "",
    sheet: 0, // px of the window that the panel covers
    visitorLog: /** @type {any} */ (null),
    visitorSpeed: player.speed(),
    opener: /** @type {any} */ (null),
    frameId: 0,
  };

  const findShown = (/** @type {string} */ selector) =>
    [...document.querySelectorAll(selector)].find((node) => node.getClientRects().length) || null;
  const press = (/** @type {string} */ selector) => {
    const node = /** @type {Part | null} */ (document.querySelector(selector));
    if (node && !node.disabled) node.click();
  };
  const slideTo = (/** @type {string} */ selector, /** @type {number} */ value) => {
    const node = /** @type {Part} */ (document.querySelector(selector));
    node.value = value;
    node.dispatchEvent(new Event("input"));
  };
  const rejectionCycle = () => findFirstRejection(player.run()) || speculativeOf(player.run()).cycles[0];
  const page = {
    press,
    slide: slideTo,
    rejectionCycle,
    playAutomatically: () => player.setSpeed("auto"),
    has: (/** @type {string} */ selector) => Boolean(findShown(selector)),
    value: (/** @type {string} */ selector) => Number(/** @type {Part} */ (document.querySelector(selector)).value),
    seek: (/** @type {number} */ t) => slideTo(PLAYER + "scrub]", Math.min(t, replayEnd(player.run()))),
    rejectedIndex: () =>
      Math.max(
        0,
        rejectionCycle().drafts.findIndex((draft) => draft.state === "rejected"),
      ),
    stepThrough(/** @type {number} */ node) {
      player.wantedStep = { cycle: rejectionCycle().number, node };
      player.dispatchEvent(new Event("sd-step-through"));
    },
  };

  /* Loads the sampled run, if one is recorded. When the tour ends, the visitor's own run and speed return. */
  async function startTour(/** @type {HTMLElement | null} */ opener) {
    Object.assign(view, { opener, visitorSpeed: player.speed() });
    sampledRun ||= await server.sampled_run().catch(() => "");
    if (view.step >= 0) return; // the button was pressed twice
    part.panel.hidden = false;
    part.panel.focus({ preventScroll: true });
    if (!player.run() || !isOver(player.run())) return paintBusy();
    sampledRun ||= player.log();
    view.visitorLog = player.log() === sampledRun ? null : player.log();
    if (view.visitorLog !== null) player.load(sampledRun);
    goTo(0);
    view.frameId = requestAnimationFrame(followWidget);
  }

  function goTo(/** @type {number} */ at) {
    tidyUp();
    if (at >= STEPS.length) return leaveTour();
    Object.assign(view, { step: at, hasActed: false, hasScrolled: false, isDone: false });
    press("#" + STEPS[at].tab + "-button");
    paint();
    part.announce.textContent = [part.count, part.title, part.text, part.task]
      .map((node) => node.textContent)
      .join(" ");
  }

  function tidyUp() {
    const step = STEPS[view.step];
    if (step && step.tidy && view.isDone) step.tidy(page);
  }

  function leaveTour() {
    tidyUp();
    player.setSpeed(view.visitorSpeed);
    if (view.visitorLog !== null && player.log() === sampledRun) player.load(view.visitorLog);
    cancelAnimationFrame(view.frameId);
    Object.assign(view, { step: -1, visitorLog: null });
    part.panel.hidden = part.ring.hidden = true;
    document.documentElement.style.removeProperty("--sd-sheet");
    (view.opener && view.opener.getClientRects().length
      ? view.opener
      : /** @type {HTMLElement} */ (document.querySelector(".sd-tabs [role=tab][aria-selected=true]"))
    ).focus({ preventScroll: true });
  }

  function paint() {
    const step = STEPS[view.step],
      stepTexts = texts.steps[step.id];
    part.count.textContent = fillText(texts.count, { n: view.step + 1, of: STEPS.length });
    part.title.textContent = stepTexts.title;
    part.text.textContent = stepTexts.text;
    part.task.textContent = view.isDone ? stepTexts.after : stepTexts.task ? texts.task + " " + stepTexts.task : "";
    part.task.classList.toggle("sd-done", view.isDone);
    part.back.disabled = view.step === 0;
    part.show.hidden = !step.show || view.isDone;
    part.next.textContent = view.step === STEPS.length - 1 ? texts.end : texts.next;
    part.back.hidden = part.next.hidden = false;
  }

  function paintBusy() {
    part.count.textContent = part.task.textContent = "";
    part.title.textContent = texts.busy.title;
    part.text.textContent = part.announce.textContent = texts.busy.text;
    part.back.hidden = part.show.hidden = part.next.hidden = true;
    part.panel.dataset.place = innerWidth < NARROW_PX ? "sheet" : CORNERS[0];
  }

  function followWidget() {
    const step = STEPS[view.step];
    if (!step) return;
    view.frameId = requestAnimationFrame(followWidget);
    if (!view.hasActed && findShown(/** @type {Record<string, string>} */ (READY)[step.tab])) {
      view.hasActed = true;
      if (step.act && speculativeOf(player.run()).cycles.length) step.act(page);
    }
    const widget = view.hasActed ? (view.isDone && step.thenAt && findShown(step.thenAt)) || findShown(step.at) : null;
    pointAt(widget && step.enclosing ? widget.closest(step.enclosing) : widget);
    if (view.hasActed && step.done && !view.isDone && step.done(page)) {
      const hadFocus = document.activeElement === part.show;
      view.isDone = true;
      paint();
      if (hadFocus) part.next.focus({ preventScroll: true });
      part.announce.textContent = part.task.textContent;
    }
  }

  function pointAt(/** @type {Element | null | undefined} */ widget) {
    const viewport = { width: document.documentElement.clientWidth, height: innerHeight },
      panel = part.panel.getBoundingClientRect();
    part.ring.hidden = !widget;
    const box = widget ? widget.getBoundingClientRect() : { left: 0, right: 0, top: 0, bottom: 0 };
    const { keepFree: selector } = STEPS[view.step],
      keepFree = selector && findShown(selector),
      place = choosePlace(box, panel, viewport, view.place, keepFree ? keepFree.getBoundingClientRect() : box),
      sheet = place === "sheet" ? panel.height : 0;
    if (place !== view.place || view.sheet !== sheet) {
      Object.assign(view, { place, sheet });
      part.panel.dataset.place = place;
      document.documentElement.style.setProperty("--sd-sheet", sheet + "px");
      if (viewport.width < NARROW_PX) return; // what sticks moves now
    }
    if (!widget) return;
    // Scroll to the widget again if the page moves it. When the visitor scrolls, this position stays the same.
    const standsAt = [Math.round(box.top + scrollY), sheet].join();
    if (standsAt !== view.standsAt) Object.assign(view, { standsAt, hasScrolled: false });
    if (!view.hasScrolled) {
      view.hasScrolled = true;
      const stage = widget.closest(".sd-stage"),
        bar = widget.closest(".sd-lanes") && stage?.querySelector(".sd-transport"), // it can cover lanes
        bottom = Math.min(viewport.height - sheet, bar ? bar.getBoundingClientRect().top : Infinity),
        distance = scrollDistance(box, bottom, stage?.getBoundingClientRect());
      if (distance) scrollBy({ top: distance, behavior: reducedMotion ? "instant" : "smooth" });
    }
    /** @param {number} measured */
    const toPx = (measured) => measured / (part.ring.currentCSSZoom || 1) + "px"; // large screens zoom the page
    Object.assign(part.ring.style, {
      left: toPx(box.left - RING_GAP),
      top: toPx(box.top - RING_GAP),
      width: toPx(box.right - box.left + 2 * RING_GAP),
      height: toPx(Math.min(box.bottom + RING_GAP, viewport.height - sheet) - box.top + RING_GAP),
    });
  }

  function handleKey(/** @type {any} */ event) {
    if (event.altKey || event.ctrlKey || event.metaKey || (view.step < 0 && event.key !== "Escape")) return;
    if (event.key === "Escape") leaveTour();
    else if (event.key === "ArrowRight") goTo(view.step + 1);
    else if (event.key === "ArrowLeft" && view.step > 0) goTo(view.step - 1);
    else return;
    event.preventDefault();
  }

  part.panel.setAttribute("aria-label", texts.aria);
  for (const name of ["leave", "back", "show"]) part[name].textContent = texts[name];
  part.leave.onclick = leaveTour;
  part.back.onclick = () => goTo(view.step - 1);
  part.next.onclick = () => goTo(view.step + 1);
  part.show.onclick = () => STEPS[view.step].show?.(page);
  part.panel.addEventListener("keydown", handleKey);
  document.addEventListener("click", (event) => {
    const button = /** @type {any} */ (event.target).closest("[data-tour]");
    if (button && view.step < 0) startTour(button);
  });
  if (new URLSearchParams(location.search).has("tour")) startTour(null);
}

/** @type {Mount} */
export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => mountTour(element, props, server, player));
