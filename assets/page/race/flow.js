/* Animates one cycle. Drafts slide as dashed chips from a small box onto a wide bar, which shows the target's pass.
 * All verdicts then appear at the same time: rejected chips drop out, and the target's own token drops in.
 *
 * `draw(cycle, progress)` draws one frame; `progress` goes from 0 to 1. Chips arrive until DRAFTED_SHARE, the pass runs
 * until PASSED_SHARE, then the verdicts move. Screen readers skip the animation; `story.js` puts it in words. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText, methodOf, nameOf } from "#page/race/text.js";
import { clamp } from "#page/race/format.js";
import { startedOf } from "#page/race/run.js";

export const DRAFTED_SHARE = 0.4,
  PASSED_SHARE = 0.7;
const FLASHED_SHARE = 0.76,
  MAX_DRAFTS = 7; // most drafted tokens to draw in one cycle
const GAP_PX = 6,
  FALL_PX = 62,
  LOW_FALL_PX = 54, // in the lower stage of a phone
  DRAFT_BOX_PX = 74,
  MIN_SCALE = 0.85; // smallest scale of a chip; letters on a phone are then 11 px high
const THROWN_AWAY = ["rejected", "discarded", "cut"];

/* Returns a value that rises smoothly from 0 at `from` to 1 at `to`. */
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

/* Chooses the chips that fit: drops accepted drafts from the front, then drafts from the back, but keeps one draft. */
export function chooseFitting(/** @type {any[]} */ items, /** @type {number} */ roomPx) {
  const chosen = [...items],
    isTooWide = () => chosen.reduce((sum, { width }) => sum + width + GAP_PX, 0) > roomPx,
    drafts = () => chosen.filter((item) => !item.isTarget).length;
  while (isTooWide() && drafts() > 1 && chosen[0].state === "accepted") chosen.shift();
  while (isTooWide() && drafts() > 1) chosen.splice(drafts() - 1, 1);
  return chosen;
}

/** @param {Part} box @param {PlayerTexts} texts @param {View} view */
export function createFlow(box, texts, view) {
  const stage = html("div", { class: "sd-flow", "aria-hidden": "true" });
  let builtCycle = /** @type {Cycle | null} */ (null),
    width = 0,
    fallPx = FALL_PX,
    items = /** @type {any[]} */ ([]),
    passBar = /** @type {any} */ (null),
    passFill = /** @type {any} */ (null),
    gainLabel = /** @type {any} */ (null);

  /* Creates the cycle's chips; `draw` moves them. */
  function build(/** @type {Cycle} */ cycle) {
    const judgedDrafts = cycle.drafts.filter((draft) => !["discarded", "cut"].includes(draft.state)),
      otherDrafts = cycle.drafts.filter((draft) => !judgedDrafts.includes(draft));
    const drawnDrafts =
      cycle.drafts.length > MAX_DRAFTS
        ? [...judgedDrafts.slice(-MAX_DRAFTS), ...otherDrafts].slice(0, MAX_DRAFTS)
        : cycle.drafts;
    items = drawnDrafts.map((draft, i) => ({
      state: draft.state,
      node: createChip(texts, draft.text || nameOf(texts, draft), draft.state, "span"),
      i,
    }));
    if (cycle.targetToken)
      items.push({
        state: cycle.targetToken.state,
        node: createChip(
          texts,
          cycle.targetToken.text || nameOf(texts, cycle.targetToken),
          cycle.targetToken.state,
          "span",
        ),
        isTarget: true,
      });
    const n = cycle.drafts.length,
      label = fillText(n > 1 ? texts.flow.pass : n ? texts.flow.pass_one : texts.flow.alone, { n });
    const { kind } = methodOf(texts.methods, startedOf(view.run).drafter || ""),
      draftLabel = kind === "model" ? texts.flow.small : texts.flow.draft;
    // the label is written twice, because its colour differs on the filled and the empty part of the bar
    passBar = html("div", { class: "sd-flowpass" }, html("span", {}, label), (passFill = html("i", {}, label)));
    gainLabel = html(
      "div",
      { class: "sd-flowgain" },
      fillText(cycle.gained === 1 ? texts.flow.gain_one : texts.flow.gain, { n: cycle.gained }),
    );
    stage.replaceChildren(
      html("div", { class: "sd-flowdraft" }, html("i", {}), html("span", {}, draftLabel)),
      passBar,
      gainLabel,
      ...items.map((item) => item.node),
    );
    if (box.firstChild !== stage) box.replaceChildren(stage);
    arrange();
  }

  /* Measures and places the new chips. The target's own token takes the place of the first draft that drops out. */
  function arrange() {
    width = stage.clientWidth;
    fallPx = stage.clientHeight < 100 ? LOW_FALL_PX : FALL_PX;
    for (const item of items) item.width = item.node.offsetWidth;
    const left = DRAFT_BOX_PX + 22,
      roomPx = width - left - GAP_PX;
    const fitted = chooseFitting(items, roomPx / MIN_SCALE),
      total = fitted.reduce((sum, { width }) => sum + width + GAP_PX, 0),
      scale = Math.min(1, roomPx / Math.max(total, 1));
    for (const { node } of items) node.hidden = true;
    let x = left + GAP_PX,
      firstDroppedX = /** @type {any} */ (null);
    fitted.forEach((item) => {
      item.node.hidden = false;
      item.x = x;
      item.scale = scale;
      if (firstDroppedX === null && THROWN_AWAY.includes(item.state)) firstDroppedX = x;
      if (item.isTarget && firstDroppedX !== null) item.x = firstDroppedX;
      x += (item.width + GAP_PX) * scale;
    });
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
    const n = items.filter((item) => !item.isTarget).length || 1,
      isJudged = progress >= PASSED_SHARE,
      flash = ease(progress, PASSED_SHARE, FLASHED_SHARE) - ease(progress, FLASHED_SHARE, 0.84);
    passFill.style.clipPath = `inset(0 ${(100 * (1 - ease(progress, DRAFTED_SHARE, PASSED_SHARE))).toFixed(1)}% 0 0)`;
    passBar.style.opacity = progress > DRAFTED_SHARE - 0.05 ? "1" : "0.45";
    gainLabel.style.opacity = ease(progress, 0.9, 1).toFixed(2);
    for (const item of items) {
      if (item.x === undefined) continue; // this chip does not fit
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
      const strength = item.state === "rejected" ? 1 : 0.6;
      move(
        item.node,
        14 + (item.x - 14) * arrived,
        fallPx * leaving,
        item.scale * (1 + 0.1 * flash),
        5 * leaving * strength,
        arrived === 0 ? 0 : leaving ? 1 - leaving * (1 - strength * 0.85) : 1,
      );
    }
  }

  // makes the next `draw` create new chips, for example after a change of width
  const reset = () => {
    builtCycle = null;
  };

  return { draw, reset };
}
