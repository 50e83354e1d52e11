/* Token flow: one cycle as a picture. Dashed chips slide from a small draft box onto one wide bar, a pass of the
 * target; all verdicts fall at once; what was rejected drops out, and the target's own token drops in.
 *
 * `flow(box, W).draw(cycle, progress)` draws a cycle of a run at a progress from 0 to 1: a pure function of
 * both, so it can be scrubbed. Until DRAFTED chips arrive, until PASSED the pass runs, after that the verdicts
 * move. Only transform, opacity and one clip change between two moments of one cycle. It tells nothing that the
 * sentence does not, so it is hidden from screen readers. */

import { html } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";
import { fillText } from "#page/race/text.js";
import { clamp } from "#page/race/format.js";

export const DRAFTED_SHARE = 0.4,
  PASSED_SHARE = 0.7,
  FLASHED = 0.76;
const MOST = 7; // drafts that are drawn: the last ones that were judged, then the others
const GAP = 6,
  FALL = 62,
  DRAFT_BOX = 74,
  LEAST = 0.85; // how small a chip may be drawn: on a phone its letters then have 11 px
const GONE = ["rej", "dis", "cut"];

/* 0 before `from`, 1 after `to`, smooth between. */
function ease(progress, from, to) {
  const x = clamp((progress - from) / (to - from), 0, 1);
  return x * x * (3 - 2 * x);
}

/* Where in a cycle the moment t is: drafting and checking take the shares above, whatever they took in time. At its
 * commit the verdicts begin to move: `settled`, from 0 to 1, is how far they have. */
export function progressAt(cycle, t, settled = 1) {
  if (t >= cycle.at) return PASSED_SHARE + (1 - PASSED_SHARE) * settled;
  const part = (from, to) => (to > from ? clamp((t - from) / (to - from), 0, 1) : 1);
  if (cycle.draft && t < cycle.draft.end)
    return DRAFTED_SHARE * part(cycle.draft.start, cycle.draft.end);
  return (
    DRAFTED_SHARE +
    (PASSED_SHARE - DRAFTED_SHARE) * (cycle.check ? part(cycle.check.start, cycle.check.end) : 1)
  );
}

/* As many chips as have room: the first ones that were kept go, then the last ones that were thrown away. */
export function chooseFitting(items, room) {
  const some = [...items],
    wide = () => some.reduce((sum, { width }) => sum + width + GAP, 0) > room,
    drafts = () => some.filter((item) => !item.own).length;
  while (wide() && drafts() > 1 && some[0].state === "acc") some.shift();
  while (wide() && drafts() > 1) some.splice(drafts() - 1, 1);
  return some;
}

export function createFlow(box, W) {
  const stage = html("div", { class: "sd-flow", "aria-hidden": "true" });
  let shown = null,
    wide = 0,
    items = [],
    pass = /** @type {any} */ (null),
    fill = /** @type {any} */ (null),
    gain = /** @type {any} */ (null);

  /* The cycle's chips at their last places; `draw` moves them there. */
  function build(cycle) {
    const judged = cycle.drafts.filter((draft) => !["dis", "cut"].includes(draft.state)),
      rest = cycle.drafts.filter((draft) => !judged.includes(draft));
    const chosen =
      cycle.drafts.length > MOST ? [...judged.slice(-MOST), ...rest].slice(0, MOST) : cycle.drafts;
    items = chosen.map((draft, i) => ({
      draft,
      state: draft.state,
      node: createChip(W, draft.text || draft.piece, draft.state, "span"),
      i,
    }));
    if (cycle.own)
      items.push({
        state: cycle.own.state,
        node: createChip(W, cycle.own.text || cycle.own.piece, cycle.own.state, "span"),
        own: true,
        i: chosen.length,
      });
    const n = cycle.drafts.length,
      label = fillText(n > 1 ? W.flow.pass : n ? W.flow.pass_one : W.flow.alone, { n });
    // each half in its own ink
    pass = html(
      "div",
      { class: "sd-flowpass" },
      html("span", {}, label),
      (fill = html("i", {}, label)),
    );
    gain = html(
      "div",
      { class: "sd-flowgain" },
      fillText(cycle.gained === 1 ? W.flow.gain_one : W.flow.gain, { n: cycle.gained }),
    );
    stage.replaceChildren(
      html("div", { class: "sd-flowdraft" }, html("i", {}), html("span", {}, W.flow.draft)),
      pass,
      gain,
      ...items.map((item) => item.node),
    );
    if (box.firstChild !== stage) box.replaceChildren(stage);
    place();
  }

  /* One reading of the widths for a cycle. The target's own token stands where the first rejected draft stood. */
  function place() {
    wide = stage.clientWidth;
    for (const item of items) item.width = item.node.offsetWidth;
    const left = DRAFT_BOX + 22,
      room = wide - left - GAP;
    const drawn = chooseFitting(items, room / LEAST),
      total = drawn.reduce((sum, { width }) => sum + width + GAP, 0),
      scale = Math.min(1, room / Math.max(total, 1));
    for (const { node } of items) node.hidden = true;
    let x = left + GAP,
      hole = /** @type {any} */ (null);
    drawn.forEach((item) => {
      item.node.hidden = false;
      item.x = x;
      item.scale = scale;
      if (hole === null && GONE.includes(item.state)) hole = x;
      if (item.own && hole !== null) item.x = hole;
      x += (item.width + GAP) * scale;
    });
  }

  const move = (node, x, y, scale, turn, opacity) => {
    node.style.transform =
      `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) ` +
      `scale(${scale.toFixed(3)}) rotate(${turn.toFixed(1)}deg)`;
    node.style.opacity = opacity.toFixed(2);
  };

  function draw(cycle, progress) {
    if (shown !== cycle || (!wide && stage.clientWidth)) {
      // a width is read only while there is none: reading it lays the page out
      shown = cycle;
      build(cycle);
    }
    const n = items.filter((item) => !item.own).length || 1,
      open = progress >= PASSED_SHARE,
      flash = ease(progress, PASSED_SHARE, FLASHED) - ease(progress, FLASHED, 0.84);
    fill.style.clipPath = `inset(0 ${(100 * (1 - ease(progress, DRAFTED_SHARE, PASSED_SHARE))).toFixed(1)}% 0 0)`;
    pass.style.opacity = progress > DRAFTED_SHARE - 0.05 ? "1" : "0.45";
    gain.style.opacity = ease(progress, 0.9, 1).toFixed(2);
    for (const item of items) {
      if (item.x === undefined) continue; // there is no room for it
      const now = open ? item.state : "pen";
      if (item.now !== now) {
        item.now = now;
        item.node.className = `sd-tok sd-${now}` + (now === "pen" ? " sd-unmarked" : "");
      }
      if (item.own) {
        const down = ease(progress, 0.82, 0.95);
        move(item.node, item.x, -26 * (1 - down), item.scale, 0, down);
        continue;
      }
      const share = DRAFTED_SHARE / n,
        came = ease(progress, item.i * share, (item.i + 0.9) * share),
        gone = GONE.includes(item.state) ? ease(progress, 0.78, 0.95) : 0;
      const side = item.state === "rej" ? 1 : 0.6;
      move(
        item.node,
        14 + (item.x - 14) * came,
        FALL * gone,
        item.scale * (1 + 0.1 * flash),
        5 * gone * side,
        came === 0 ? 0 : gone ? 1 - gone * (1 - side * 0.85) : 1,
      );
    }
  }

  const resized = () => {
    shown = null;
  }; // the next drawing builds anew; until then the box may hold the end

  return { draw, resized };
}
