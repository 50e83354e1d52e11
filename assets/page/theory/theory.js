/* What the formulas say, with sliders; and how far a measured run bears them out.
 *
 * The run and the makers of elements are the player's. */

import { choice, parts } from "#page/race/kit.js";
import { words, sentences, fixed, clamp } from "#page/race/text.js";
import { expectedTokens, speedup, growing, bestK } from "#page/theory/formulas.js";
import { ofRun } from "#page/theory/measured.js";
import { axes, times } from "#page/theory/axes.js";
import { opening } from "#page/theory/opening.js";
import { LARGEST, byLength } from "#page/theory/curves.js";
import { prediction } from "#page/theory/prediction.js";
import { keptDrafts } from "#page/theory/kept.js";
import { assumptions } from "#page/theory/assumptions.js";
import { memoryWall } from "#page/theory/wall.js";
import { whenPlayed } from "#page/shared/arrival.js";

const EXAMPLE = { alpha: 0.8, k: 4, c: 0.1, v: 1, o: 0 };

function theory(element, props, player) {
  const W = JSON.parse(props.words),
    { models, read, machines: known } = JSON.parse(props.hardware),
    machines = known.map((one) => ({ ...one, name: W.machines[one.id] ?? one.name }));
  const root = element.querySelector(".sd-theory"),
    part = parts(root);
  const S = {
    ...EXAMPLE,
    grows: true,
    mine: false,
    touched: false,
    machine: "h100",
    target: "llama8",
    draft: "llama1",
    bits: 16,
    batch: 1,
    context: 512,
  };
  const SLIDERS = { alpha: 2, k: 0, c: 3, v: 2, o: 3 }; // and the digits that they show
  const room = {}; // widths of the charts, read only when the page's size changes; none in a fold that is shut
  /** @type {any} */
  let here = null;

  const cost = (k) => (S.grows ? growing(S.v, S.k)(k) : S.v);
  const gain = (k, alpha = S.alpha) => speedup(alpha, k, S.c, cost(k), S.o);
  const { frame, speedAxis } = axes(W, room),
    hardware = { machines, models, read };
  const page = { W, part, S, room, frame, speedAxis, here: () => here, cost, gain, best };
  /* By the part that each fills. */
  const painters = Object.assign(
    opening(page, hardware),
    ...[byLength, prediction, keptDrafts, assumptions].map((made) => made(page)),
    memoryWall(W, part, S, { frame, choose }, hardware),
  );

  /* -- the run -- */

  function pull() {
    const run = player.run();
    here = run ? ofRun(run) : null;
    if (here && (S.mine || !S.touched)) return goHere();
    S.mine = S.mine && Boolean(here);
    draw();
  }

  function goHere() {
    const { alpha, k, c, v, o } = here;
    Object.assign(S, {
      alpha,
      c,
      v,
      o,
      k: clamp(k, 1, LARGEST),
      grows: S.mine ? S.grows : true,
      mine: true,
    });
    draw();
  }

  function set(values) {
    Object.assign(S, values, { mine: false, touched: true });
    draw();
  }

  function choose(values) {
    Object.assign(S, values);
    draw();
  }

  function slide(name, value) {
    set(name === "k" && S.grows ? { k: value, v: growing(S.v, S.k)(value) } : { [name]: value });
  }

  function announce() {
    part.announce.textContent = part.headline.textContent;
  }

  function best() {
    return bestK(S.alpha, S.c, cost, S.o, LARGEST);
  }

  /* -- everything from the state -- */

  function measure() {
    if (!root.clientWidth) return; // a tab that is not shown does not draw
    for (const name of Object.keys(painters))
      room[name] = part[name].closest("details:not([open])") ? 0 : part[name].clientWidth;
    pull();
  }

  function draw() {
    if (!room.curves) return;
    paintSliders();
    for (const [name, paint] of Object.entries(painters)) if (room[name]) paint();
  }

  function paintSliders() {
    for (const [name, digits] of Object.entries(SLIDERS)) {
      part[name].value = S[name];
      part[name + "value"].textContent = fixed(S[name], digits);
    }
    pressGrowth(S.grows ? "grows" : "same");
    const live = here && player.run().header.source === "live";
    part.here.textContent = live ? W.labels.here : W.shown;
    part.here.disabled = !here;
    part.here.setAttribute("aria-pressed", String(S.mine));
    part.units.textContent = sentences(W.units, !here && W.no_run);
    const now = gain(S.k),
      values = {
        times: times(now),
        tokens: fixed(expectedTokens(S.alpha, S.k)),
        passes: fixed(S.k * S.c + S.v + S.o),
      };
    part.headline.textContent = words(now >= 1 ? W.headline.faster : W.headline.slower, values);
  }

  /* -- what stands still, and listening -- */

  for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
  for (const name of ["controls", "growth"]) part[name].setAttribute("aria-label", W.aria[name]);
  for (const name of Object.keys(SLIDERS)) {
    part[name].oninput = () => slide(name, +part[name].value);
    part[name].onchange = announce;
  }
  const aloud = (act) => () => {
    act();
    announce();
  };
  const pressGrowth = choice(
    part.growth,
    ["same", "grows"].map((name) => [name, W.growth[name]]),
    (name) => {
      S.grows = name === "grows";
      draw();
      announce();
    },
  );
  part.here.onclick = aloud(goHere);
  part.example.onclick = aloud(() => set({ ...EXAMPLE, grows: false }));
  part.small.onclick = aloud(() =>
    set({ alpha: 0.6, c: 0.1, v: 1, o: 0, k: bestK(0.6, 0.1), grows: false }),
  );
  player.addEventListener("sd-run", () => root.clientWidth && pull());
  new ResizeObserver(measure).observe(root); // whose height changes when a part of it is opened
  measure();
}

export const mount = (element, props) => whenPlayed((player) => theory(element, props, player));
