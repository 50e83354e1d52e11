/* What the formulas say, with sliders; and how far a measured run bears them out.
 *
 * The run and the makers of elements are the player's. */

import { createChoice, findParts } from "#page/race/html.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed, clamp } from "#page/race/format.js";
import { expectedTokens, speedup, growingCost, bestK } from "#page/theory/formulas.js";
import { measureRun } from "#page/theory/measured.js";
import { createAxes } from "#page/theory/axes.js";
import { formatTimes } from "#page/theory/format.js";
import { createOpening } from "#page/theory/opening.js";
import { LARGEST_K, createCurves } from "#page/theory/curves.js";
import { createPrediction } from "#page/theory/prediction.js";
import { createKeptDrafts } from "#page/theory/accepted.js";
import { createAssumptions } from "#page/theory/assumptions.js";
import { createMemoryWall } from "#page/theory/wall.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

const EXAMPLE = { alpha: 0.8, k: 4, c: 0.1, v: 1, o: 0 };

function theory(element, props, player) {
  const W = JSON.parse(props.words),
    { models, read, machines: known } = JSON.parse(props.hardware),
    machines = known.map((one) => ({ ...one, name: W.machines[one.id] ?? one.name }));
  const root = element.querySelector(".sd-theory"),
    part = findParts(root);
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

  const cost = (k) => (S.grows ? growingCost(S.v, S.k)(k) : S.v);
  const gain = (k, alpha = S.alpha) => speedup(alpha, k, S.c, cost(k), S.o);
  const { frame, speedAxis } = createAxes(W, room),
    hardware = { machines, models, read };
  const page = { W, part, S, room, frame, speedAxis, here: () => here, cost, gain, best };
  /* By the part that each fills. */
  const painters = Object.assign(
    createOpening(page, hardware),
    ...[createCurves, createPrediction, createKeptDrafts, createAssumptions].map((made) =>
      made(page),
    ),
    createMemoryWall(W, part, S, { frame, choose }, hardware),
  );

  /* -- the run -- */

  function pull() {
    const run = player.run();
    here = run ? measureRun(run) : null;
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
      k: clamp(k, 1, LARGEST_K),
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
    set(
      name === "k" && S.grows ? { k: value, v: growingCost(S.v, S.k)(value) } : { [name]: value },
    );
  }

  function announce() {
    part.announce.textContent = part.headline.textContent;
  }

  function best() {
    return bestK(S.alpha, S.c, cost, S.o, LARGEST_K);
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
      part[name + "value"].textContent = toFixed(S[name], digits);
    }
    pressGrowth(S.grows ? "grows" : "same");
    const live = here && player.run().header.source === "live";
    part.here.textContent = live ? W.labels.here : W.shown;
    part.here.disabled = !here;
    part.here.setAttribute("aria-pressed", String(S.mine));
    part.units.textContent = joinSentences(W.units, !here && W.no_run);
    const now = gain(S.k),
      values = {
        times: formatTimes(now),
        tokens: toFixed(expectedTokens(S.alpha, S.k)),
        passes: toFixed(S.k * S.c + S.v + S.o),
      };
    part.headline.textContent = fillText(now >= 1 ? W.headline.faster : W.headline.slower, values);
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
  const pressGrowth = createChoice(
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

export const mount = (element, props) =>
  whenPlayerReady((player) => theory(element, props, player));
