/* The guided tour: it opens the tabs, points at the widget that it speaks of, and does the deed or waits for it. */

import { findParts } from "#page/race/html.js";
import { isOver, speculativeOf, findFirstRejection, replayEnd } from "#page/race/run.js";
import { fillText } from "#page/race/text.js";
import { whenPlayerReady } from "#page/shared/arrival.js";
import {
  MARGIN,
  RING_GAP,
  NARROW_PX,
  CORNERS,
  choosePlace,
  scrollDistance,
} from "#page/guide/place.js";
import { PLAYER, READY, STEPS } from "#page/guide/stops.js";

function tour(element, props, server, player) {
  const W = JSON.parse(props.words);
  const root = element.querySelector(".sd-touring"),
    part = findParts(root);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let recorded = ""; // a run in which coins decide
  const S = {
    at: -1,
    acted: false,
    came: false,
    done: false,
    place: "",
    stands: "",
    kept: /** @type {any} */ (null),
    from: /** @type {any} */ (null),
    frame: 0,
  };

  /* -- the page, as the steps see it -- */

  const visible = (selector) =>
    [...document.querySelectorAll(selector)].find((node) => node.getClientRects().length) || null;
  const press = (selector) => {
    const node = document.querySelector(selector);
    if (node && !node.disabled) node.click();
  };
  const slide = (selector, value) => {
    const node = document.querySelector(selector);
    node.value = value;
    node.dispatchEvent(new Event("input"));
  };
  const rejection = () => findFirstRejection(player.run()) || speculativeOf(player.run()).cycles[0];
  const page = {
    press,
    slide,
    rejection,
    has: (selector) => Boolean(visible(selector)),
    value: (selector) => Number(document.querySelector(selector).value),
    seek: (t) => slide(PLAYER + "scrub]", Math.min(t, replayEnd(player.run()))),
    rejected: () =>
      Math.max(
        0,
        rejection().drafts.findIndex((draft) => draft.state === "rej"),
      ),
    apart(node) {
      player.wanted = { cycle: rejection().number, node };
      player.dispatchEvent(new Event("sd-apart"));
    },
  };

  /* -- coming and going -- */

  /* The recorded run is put on the stage, and the visitor's own is kept aside. */
  async function start(from) {
    S.from = from;
    recorded ||= await server.sampled_run().catch(() => "");
    recorded ||= player.log();
    if (S.at >= 0) return; // pressed twice
    part.panel.hidden = false;
    part.panel.focus({ preventScroll: true });
    if (!player.run() || !isOver(player.run())) return paintBusy();
    S.kept = player.log() === recorded ? null : player.log();
    if (S.kept !== null) player.load(recorded);
    go(0);
    S.frame = requestAnimationFrame(follow);
  }

  function go(at) {
    tidy();
    if (at >= STEPS.length) return leave();
    Object.assign(S, { at, acted: false, came: false, done: false });
    press("#" + STEPS[at].tab + "-button");
    paint();
    part.announce.textContent = [part.count, part.title, part.text, part.task]
      .map((node) => node.textContent)
      .join(" ");
  }

  function tidy() {
    const step = STEPS[S.at];
    if (step && step.tidy && S.done) step.tidy(page);
  }

  function leave() {
    tidy();
    if (S.kept !== null && player.log() === recorded) player.load(S.kept); // else the visitor has begun another
    cancelAnimationFrame(S.frame);
    Object.assign(S, { at: -1, kept: null });
    part.panel.hidden = part.ring.hidden = true;
    document.documentElement.style.removeProperty("--sd-sheet");
    (S.from && S.from.getClientRects().length
      ? S.from
      : /** @type {HTMLElement} */ (
          document.querySelector(".sd-tabs [role=tab][aria-selected=true]")
        )
    ).focus({ preventScroll: true });
  }

  /* -- the words -- */

  function paint() {
    const step = STEPS[S.at],
      told = W.steps[step.id];
    part.count.textContent = fillText(W.count, { n: S.at + 1, of: STEPS.length });
    part.title.textContent = told.title;
    part.text.textContent = told.text;
    part.task.textContent = S.done ? "✓ " + told.after : told.task ? W.task + " " + told.task : "";
    part.task.classList.toggle("sd-done", S.done);
    part.back.disabled = S.at === 0;
    part.show.hidden = !step.show || S.done;
    part.next.textContent = S.at === STEPS.length - 1 ? W.end : W.next;
    part.back.hidden = part.next.hidden = false;
  }

  function paintBusy() {
    part.count.textContent = part.task.textContent = "";
    part.title.textContent = W.busy.title;
    part.text.textContent = part.announce.textContent = W.busy.text;
    part.back.hidden = part.show.hidden = part.next.hidden = true;
    part.panel.dataset.place = innerWidth < NARROW_PX ? "sheet" : CORNERS[0];
  }

  /* -- following what it points at: tabs open late, replays move, visitors scroll -- */

  function follow() {
    const step = STEPS[S.at];
    if (!step) return;
    S.frame = requestAnimationFrame(follow);
    if (!S.acted && visible(READY[step.tab])) {
      S.acted = true;
      if (step.act && speculativeOf(player.run()).cycles.length) step.act(page);
    }
    const found = S.acted ? (S.done && step.then && visible(step.then)) || visible(step.at) : null;
    point(found && step.box ? found.closest(step.box) : found);
    if (S.acted && step.done && !S.done && step.done(page)) {
      const held = document.activeElement === part.show;
      S.done = true;
      paint();
      if (held) part.next.focus({ preventScroll: true }); // the button that was pressed is gone
      part.announce.textContent = part.task.textContent;
    }
  }

  function point(target) {
    const view = { width: document.documentElement.clientWidth, height: innerHeight },
      panel = part.panel.getBoundingClientRect();
    part.ring.hidden = !target;
    const box = target ? target.getBoundingClientRect() : { left: 0, right: 0, top: 0, bottom: 0 };
    const keep = STEPS[S.at].keep && visible(STEPS[S.at].keep),
      place = choosePlace(box, panel, view, S.place, keep ? keep.getBoundingClientRect() : box),
      sheet = place === "sheet" ? panel.height : 0;
    if (place !== S.place || S.sheet !== sheet) {
      Object.assign(S, { place, sheet });
      part.panel.dataset.place = place;
      document.documentElement.style.setProperty("--sd-sheet", sheet + "px");
    }
    if (!target) return;
    // changes with the page, not with the visitor's scrolling
    const stands = [Math.round(box.top + scrollY), sheet].join();
    if (stands !== S.stands) Object.assign(S, { stands, came: false });
    if (!S.came) {
      S.came = true;
      const by = scrollDistance(box, MARGIN, view.height - MARGIN - sheet);
      if (by) scrollBy({ top: by, behavior: calm ? "instant" : "smooth" });
    }
    const px = (measured) => measured / (part.ring.currentCSSZoom || 1) + "px"; // a large screen zooms the page
    Object.assign(part.ring.style, {
      left: px(box.left - RING_GAP),
      top: px(box.top - RING_GAP),
      width: px(box.right - box.left + 2 * RING_GAP),
      height: px(box.bottom - box.top + 2 * RING_GAP),
    });
  }

  /* -- listening -- */

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || (S.at < 0 && event.key !== "Escape"))
      return;
    if (event.key === "Escape") leave();
    else if (event.key === "ArrowRight") go(S.at + 1);
    else if (event.key === "ArrowLeft" && S.at > 0) go(S.at - 1);
    else return;
    event.preventDefault();
  }

  part.panel.setAttribute("aria-label", W.aria);
  for (const name of ["leave", "back", "show"]) part[name].textContent = W[name];
  part.leave.onclick = leave;
  part.back.onclick = () => go(S.at - 1);
  part.next.onclick = () => go(S.at + 1);
  part.show.onclick = () => STEPS[S.at].show?.(page);
  part.panel.addEventListener("keydown", keys);
  document.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("[data-tour]");
    if (button && S.at < 0) start(button);
  });
  if (new URLSearchParams(location.search).has("tour")) start(null);
}

export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => tour(element, props, server, player));
