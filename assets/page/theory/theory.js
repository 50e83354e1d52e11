/* Shows what the formulas predict, with sliders, and how well a measured run agrees. */

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
import { createAcceptedDrafts } from "#page/theory/accepted.js";
import { createMemoryWall } from "#page/theory/wall.js";
import { createIntroductions } from "#page/theory/introductions.js";
import { createAtlas } from "#page/theory/atlas.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

const EXAMPLE = { alpha: 0.8, k: 4, c: 0.1, v: 1, o: 0 }; // c, v, o in plain steps
const PRESETS = { example: EXAMPLE, small: { ...EXAMPLE, alpha: 0.3, k: 6 } };

function mountTheory(/** @type {HTMLElement} */ element, /** @type {Props} */ props, /** @type {Player} */ player) {
  const texts = JSON.parse(props.words),
    reports = JSON.parse(props.measured),
    { models, read: readDate, machines: listed } = JSON.parse(props.hardware),
    machines = listed.map((/** @type {any} */ machine) => ({
      ...machine,
      name: texts.machines[machine.id] ?? machine.name,
    }));
  const root = element.querySelector(".sd-theory"),
    part = findParts(root);
  /** @type {TheorySettings} */
  const settings = {
    ...EXAMPLE,
    costGrows: true,
    usesRun: false,
    wasTouched: false,
    machine: "h100",
    target: "llama8",
    draft: "llama1",
    bits: 16,
    batch: 1,
    context: 512,
  };
  const SLIDERS = { alpha: 2, k: 0, c: 3, v: 2, o: 3 }; // decimal places that each slider shows
  const widths = /** @type {Record<string, number>} */ ({}); // widths of the charts in px; 0 in a closed fold
  /** @type {any} */
  let measured = null;

  /** @param {number} k */
  const checkCost = (k) => (settings.costGrows ? growingCost(settings.v, settings.k)(k) : settings.v);
  /** @param {number} k @param {number} [alpha] */
  const speedupAt = (k, alpha = settings.alpha) => speedup(alpha, k, settings.c, checkCost(k), settings.o);
  const { createFrame, speedAxis } = createAxes(texts, widths),
    hardware = { machines, models, readDate };
  const page = {
    texts,
    part,
    settings,
    widths,
    createFrame,
    speedAxis,
    measured: () => measured,
    checkCost,
    speedupAt,
    findBestK,
    setValues,
    setMachine,
    announce,
  };
  const painters = Object.assign(
    createOpening(page, hardware),
    ...[createCurves, createPrediction, createAcceptedDrafts].map((create) => create(page)),
    createMemoryWall(texts, part, settings, { createFrame, setMachine }, hardware),
    createIntroductions(page, hardware, reports.spans, EXAMPLE),
    createAtlas(page, JSON.parse(props.claims), reports),
  );

  function readRun() {
    const run = player.run();
    measured = run ? measureRun(run) : null;
    if (measured && (settings.usesRun || !settings.wasTouched)) return useMeasured();
    settings.usesRun = settings.usesRun && Boolean(measured);
    draw();
  }

  function useMeasured() {
    const { alpha, k, c, v, o } = measured;
    Object.assign(settings, {
      alpha,
      c,
      v,
      o,
      k: clamp(k, 1, LARGEST_K),
      costGrows: settings.usesRun ? settings.costGrows : true,
      usesRun: true,
    });
    draw();
  }

  function setValues(/** @type {object} */ values) {
    Object.assign(settings, values, { usesRun: false, wasTouched: true });
    draw();
  }

  function setMachine(/** @type {object} */ values) {
    Object.assign(settings, values);
    draw();
  }

  function slideTo(/** @type {string} */ name, /** @type {number} */ value) {
    setValues(
      name === "k" && settings.costGrows
        ? { k: value, v: growingCost(settings.v, settings.k)(value) }
        : { [name]: value },
    );
  }

  function announce() {
    part.announce.textContent = part.headline.textContent;
  }

  function findBestK() {
    return bestK(settings.alpha, settings.c, checkCost, settings.o, LARGEST_K);
  }

  function measureWidths() {
    if (!root.clientWidth) return;
    for (const name of Object.keys(painters))
      widths[name] = part[name].closest("details:not([open])") ? 0 : part[name].clientWidth;
    readRun();
  }

  function draw() {
    if (!widths.curves) return;
    paintSliders();
    for (const [name, paint] of Object.entries(painters)) if (widths[name]) paint();
  }

  function paintSliders() {
    for (const [name, digits] of Object.entries(SLIDERS)) {
      part[name].value = settings[name];
      part[name + "value"].textContent = toFixed(settings[name], name === "alpha" && settings.usesRun ? 3 : digits);
    }
    pressGrowth(settings.costGrows ? "grows" : "same");
    const isLive = measured && player.run().header.source === "live";
    part.here.textContent = isLive ? texts.labels.here : texts.shown;
    part.here.disabled = !measured;
    part.here.setAttribute("aria-pressed", String(settings.usesRun));
    for (const [name, values] of Object.entries(PRESETS)) {
      const isSet = !settings.usesRun && Object.entries(values).every(([key, value]) => settings[key] === value);
      part[name].setAttribute("aria-pressed", String(isSet));
    }
    part.units.textContent = joinSentences(texts.units, !measured && texts.no_run);
    const speedupNow = speedupAt(settings.k),
      values = {
        times: formatTimes(speedupNow),
        tokens: toFixed(expectedTokens(settings.alpha, settings.k)),
        passes: toFixed(settings.k * settings.c + settings.v + settings.o),
      };
    part.headline.textContent = fillText(speedupNow >= 1 ? texts.headline.faster : texts.headline.slower, values);
  }

  for (const [name, label] of Object.entries(texts.labels)) part[name].textContent = label;
  for (const name of ["controls", "growth"]) part[name].setAttribute("aria-label", texts.aria[name]);
  for (const name of Object.keys(SLIDERS)) {
    part[name].oninput = () => slideTo(name, +part[name].value);
    part[name].onchange = announce;
  }
  const andAnnounce = (/** @type {Act} */ act) => () => {
    act();
    announce();
  };
  const pressGrowth = createChoice(
    part.growth,
    ["same", "grows"].map((name) => [name, texts.growth[name]]),
    (name) => {
      settings.costGrows = name === "grows";
      draw();
      announce();
    },
  );
  part.here.onclick = andAnnounce(useMeasured);
  for (const [name, values] of Object.entries(PRESETS))
    part[name].onclick = andAnnounce(() => setValues({ ...values, costGrows: false }));
  player.addEventListener("sd-run", () => root.clientWidth && readRun());
  new ResizeObserver(measureWidths).observe(root); // also notices an opened fold, which changes the height
  measureWidths();
}

/** @type {Mount} */
export const mount = (element, props) => whenPlayerReady((player) => mountTheory(element, props, player));
