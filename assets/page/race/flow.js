/* Animates one cycle. Drafts slide as dashed chips from a small box onto a wide bar, which shows a pass; then
 * rejected chips drop out, and the target's own token drops in. Screen readers skip it; `story.js` has the words. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText, nameOf } from "#page/race/text.js";
import { clamp } from "#page/race/format.js";

export const DRAFTED_SHARE = 0.4,
  PASSED_SHARE = 0.7;
const FLASHED_SHARE = 0.76;
const GAP_PX = 6,
  FALL_PX = 62,
  MIN_SCALE = 0.85; // smallest scale of a chip; letters on a phone are then 11 px high
const THROWN_AWAY = ["rejected", "discarded", "cut"],
  DISCARDED_OPACITY = 0.75;

function ease(/** @type {number} */ progress, /** @type {number} */ from, /** @type {number} */ to) {
  const x = clamp((progress - from) / (to - from), 0, 1);
  return x * x * (3 - 2 * x);
}

/* Returns the progress of a cycle's animation at the time `ms`. After the commit, `settled` says how far the verdicts
 * have moved, from 0 to 1. */
export function progressAt(/** @type {Cycle} */ cycle, /** @type {number} */ ms, settled = 1) {
  if (ms >= cycle.endMs) return PASSED_SHARE + (1 - PASSED_SHARE) * settled;
  /** @param {number} from @param {number} to */
  const shareOf = (from, to) => (to > from ? clamp((ms - from) / (to - from), 0, 1) : 1);
  if (cycle.drafting && ms < cycle.drafting.end)
    return DRAFTED_SHARE * shareOf(cycle.drafting.start, cycle.drafting.end);
  return (
    DRAFTED_SHARE + (PASSED_SHARE - DRAFTED_SHARE) * (cycle.check ? shareOf(cycle.check.start, cycle.check.end) : 1)
  );
}

/* Returns the left end of each chip and their width, in px. The target's own token takes the place of the
 * first draft that drops out. */
function layOut(/** @type {any[]} */ items) {
  let x = 0,
    width = 0,
    droppedX = /** @type {number | null} */ (null);
  const lefts = items.map((item) => {
    const left = item.isTarget ? (droppedX ?? x) : x;
    if (THROWN_AWAY.includes(item.state)) droppedX ??= x;
    x = left + item.width + GAP_PX;
    width = Math.max(width, x);
    return left;
  });
  return { lefts, width };
}

/** Chooses the chips that fit: drops accepted drafts from the front, then drafts from the back, but keeps one draft.
 * `before` and `after` stand for what was dropped. @param {any[]} items @param {number} roomPx
 * @param {any} before @param {any} after */
export function chooseFitting(items, roomPx, before, after) {
  const drafts = items.filter((item) => !item.isTarget);
  let from = 0,
    to = drafts.length;
  const chosen = () => [
    ...(from ? [before] : []),
    ...drafts.slice(from, to),
    ...(to < drafts.length ? [after] : []),
    ...items.slice(drafts.length),
  ];
  const isTooWide = () => to - from > 1 && layOut(chosen()).width > roomPx;
  while (isTooWide() && drafts[from].state === "accepted") from++;
  while (isTooWide()) to--;
  return chosen();
}

/** @param {Part} box @param {PlayerTexts} texts */
export function createFlow(box, texts) {
  const stage = html("div", { class: "sd-flow", "aria-hidden": "true" });
  let builtCycle = /** @type {Cycle | null} */ (null),
    width = 0,
    items = /** @type {any[]} */ ([]), // the chips that fit
    passBar = /** @type {any} */ (null),
    passFill = /** @type {any} */ (null),
    gainLabel = /** @type {any} */ (null);

  /* Creates and places the cycle's chips; `draw` moves them. */
  function build(/** @type {Cycle} */ cycle) {
    const inState = (/** @type {State[]} */ ...states) => cycle.drafts.filter((draft) => states.includes(draft.state));
    const createItem = (/** @type {Draft | TargetToken} */ token, more = {}) =>
      /** @type {any} */ ({
        state: token.state,
        node: createChip(texts, token.text || nameOf(texts, token), token.state, "span"),
        ...more,
      });
    const chips = [...inState("accepted"), ...inState("rejected"), ...inState("discarded", "cut")].map((draft, i) => {
        const item = createItem(draft, { i });
        item.node.dataset.place = String(cycle.drafts.indexOf(draft)); // for the ring of a class question
        return item;
      }),
      before = { state: "accepted", node: createChip(texts, "…", "plain", "span"), i: 0 },
      after = { state: "discarded", node: before.node.cloneNode(true), i: chips.length - 1 };
    if (cycle.targetToken) chips.push(createItem(cycle.targetToken, { isTarget: true }));
    const n = cycle.drafts.length,
      label = fillText(n > 1 ? texts.flow.pass : n ? texts.flow.pass_one : texts.flow.alone, { n });
    const draftBox = html("div", { class: "sd-flowdraft", style: n ? null : "visibility: hidden" }, texts.flow.draft);
    // the label is written twice, because its colour differs on the filled and the empty part of the bar
    passBar = html("div", { class: "sd-flowpass" }, html("span", {}, label), (passFill = html("i", {}, label)));
    gainLabel = html(
      "div",
      { class: "sd-flowgain" },
      fillText(cycle.gained === 1 ? texts.flow.gain_one : texts.flow.gain, { n: cycle.gained }),
    );
    stage.replaceChildren(draftBox, passBar, gainLabel, ...[...chips, before, after].map((chip) => chip.node));
    if (box.firstChild !== stage) box.replaceChildren(stage);
    width = stage.clientWidth;
    for (const chip of [...chips, before, after]) chip.width = chip.node.offsetWidth;
    const isAbove = draftBox.offsetTop + draftBox.offsetHeight <= passBar.offsetTop, // beside the bar on a phone
      left = isAbove ? draftBox.offsetWidth + 22 + GAP_PX : 0,
      roomPx = width - left,
      fitting = chooseFitting(chips, roomPx / MIN_SCALE, before, after),
      { lefts, width: neededPx } = layOut(fitting),
      scale = Math.min(1, roomPx / Math.max(neededPx, 1));
    for (const chip of [...chips, before, after]) chip.node.hidden = !fitting.includes(chip);
    items = fitting;
    items.forEach((item, i) => Object.assign(item, { x: left + lefts[i] * scale, scale }));
  }

  /** @param {Part} node @param {number} x @param {number} y @param {number} scale @param {number} turn
   * @param {number} opacity */
  const move = (node, x, y, scale, turn, opacity) => {
    node.style.transform =
      `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) ` + `scale(${scale.toFixed(3)}) rotate(${turn.toFixed(1)}deg)`;
    node.style.opacity = opacity.toFixed(2);
  };

  function draw(/** @type {Cycle} */ cycle, /** @type {number} */ progress) {
    // reads `clientWidth` only while `width` is 0, because reading it forces a layout
    if (builtCycle !== cycle || (!width && stage.clientWidth)) {
      builtCycle = cycle;
      build(cycle);
    }
    const n = cycle.drafts.length || 1,
      isJudged = progress >= PASSED_SHARE,
      flash = ease(progress, PASSED_SHARE, FLASHED_SHARE) - ease(progress, FLASHED_SHARE, 0.84);
    passFill.style.clipPath = `inset(0 ${(100 * (1 - ease(progress, DRAFTED_SHARE, PASSED_SHARE))).toFixed(1)}% 0 0)`;
    passBar.style.opacity = progress > DRAFTED_SHARE - 0.05 ? "1" : "0.45";
    passBar.classList.toggle("sd-gained", progress > 0.9);
    gainLabel.style.opacity = ease(progress, 0.9, 1).toFixed(2);
    for (const item of items) {
      const shown = isJudged ? item.state : "pending";
      if (item.shownState !== shown) {
        item.shownState = shown;
        item.node.className = `sd-tok sd-${shown}` + (shown === "pending" ? " sd-unmarked" : "");
      }
      if (item.isTarget) {
        const landed = ease(progress, 0.82, 0.95);
        move(item.node, item.x, -26 * (1 - landed), item.scale, 0, landed);
        continue;
      }
      const share = DRAFTED_SHARE / n,
        arrived = ease(progress, item.i * share, (item.i + 0.9) * share),
        leaving = THROWN_AWAY.includes(item.state) ? ease(progress, 0.78, 0.95) : 0;
      const isRejected = item.state === "rejected";
      move(
        item.node,
        14 + (item.x - 14) * arrived,
        FALL_PX * leaving,
        item.scale * (1 + 0.1 * flash),
        (isRejected ? 5 : 3) * leaving,
        arrived === 0 ? 0 : 1 - leaving * (1 - (isRejected ? 0.85 : DISCARDED_OPACITY)),
      );
    }
  }

  const reset = () => {
    builtCycle = null;
  };

  return { draw, reset };
}
