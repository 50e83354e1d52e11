/* Draws the tab's beginning, its map of K, and acceptance by rule and temperature. */

import { html, createHeadRow, createRow } from "#page/race/html.js";
import { svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { MAX_CHEAP_PASSES } from "#page/race/why.js";
import {
  toMachine,
  toModel,
  readingSeconds,
  computingSeconds,
  weightsRead,
  cacheBytes,
} from "#page/theory/hardware.js";
import { bestK, speedup, tempered, overlap } from "#page/theory/formulas.js";
import { formatTimes, findById, formatSeconds, formatBytes } from "#page/theory/format.js";

const ALPHAS = [0.5, 0.6, 0.7, 0.8, 0.9],
  COSTS = [0.02, 0.05, 0.1, 0.2, 0.4];
// [p, q] at temperature 1; in `agree`, both have the same likeliest token
const EXAMPLES = {
  agree: [
    [0.5, 0.25, 0.15, 0.1],
    [0.4, 0.35, 0.15, 0.1],
  ],
  differ: [
    [0.5, 0.25, 0.15, 0.1],
    [0.3, 0.45, 0.15, 0.1],
  ],
};
const TEMPERATURES = [0, 0.5, 1, 2];

/* Returns the key of the sentence on a check of `v` plain steps. */
export function costKey(/** @type {boolean} */ usesRun, /** @type {number} */ v) {
  if (!usesRun || v < 1.05) return "below";
  return v <= MAX_CHEAP_PASSES ? "near" : "slow";
}

/** @param {TheoryPage} page @param {Hardware} options */
export function createOpening({ texts, part, settings, widths }, { machines, models }) {
  function paintWall() {
    const machine = toMachine(findById(machines, settings.machine)),
      target = toModel(findById(models, settings.target)),
      rows = settings.k + 1;
    const reading = readingSeconds(machine, target, settings.bits, 1, 1, settings.context),
      computing = (/** @type {number} */ n) => computingSeconds(machine, target, 1, n, settings.context);
    const values = {
      target: findById(models, settings.target).name,
      machine: findById(machines, settings.machine).name,
      bytes: formatBytes((weightsRead(target, 1) * settings.bits) / 8),
      cache: formatBytes(cacheBytes(target, settings.context)),
      reading: formatSeconds(reading),
      rows,
      v: toFixed(settings.v),
    };
    const width = widths.wall,
      left = width > 480 ? 110 : 0,
      right = left ? 150 : 4, // for the time of a pass and its tokens
      groupHeight = left ? 50 : 68,
      offsetY = left ? 0 : 18,
      longest = Math.max(reading, computing(rows)),
      widthOf = (/** @type {number} */ v) => (v / longest) * (width - left - right);
    const bars = [
        [texts.wall_first.write, computing(1), 1],
        [fillText(texts.wall_first.check, values), computing(rows), rows],
      ],
      chart = svgRoot(width, bars.length * groupHeight + 4, fillText(texts.wall_first.lead, values));
    bars.forEach(([name, seconds, n], i) => {
      const y = i * groupHeight + offsetY;
      chart.append(
        svgText(0, left ? y + 19 : y - 4, name, "sd-k"),
        svgRect(left, y, widthOf(reading), 20, { class: "sd-f-target" }),
        svgText(left + 8, y + 14, fillText(texts.wall_first.reads, values), "sd-th-light"),
        svgRect(left, y + 23, Math.max(2, widthOf(seconds)), 12, { class: "sd-th-you" }),
      );
      if (left)
        chart.append(
          svgText(
            left + widthOf(longest) + 10,
            y + 15,
            fillText(texts.wall_first.sum, { time: formatSeconds(Math.max(reading, seconds)), n }),
            "sd-b",
          ),
        );
      chart.append(
        svgText(
          left + Math.max(2, widthOf(seconds)) + 7,
          y + 33,
          fillText(texts.wall_first.computes, { time: formatSeconds(seconds), n }),
          "sd-th-mine",
        ),
      );
    });
    part.wall.replaceChildren(chart);
    part.wallfirst.replaceChildren(
      fillText(texts.wall_first.lead, values),
      html("b", {}, fillText(texts.wall_first[costKey(settings.usesRun, settings.v)], values)),
    );
  }

  function buildMap() {
    const cell = (/** @type {number} */ alpha, /** @type {number} */ c) => {
      const k = bestK(alpha, c);
      return [k ? html("b", {}, String(k)) : "–", k ? " " + formatTimes(speedup(alpha, k, c), 1) : null];
    };
    part.map.replaceChildren(
      createHeadRow(["α", ...COSTS.map((c) => "c = " + c)]),
      html(
        "tbody",
        {},
        ALPHAS.map((alpha) =>
          createRow(
            toFixed(alpha, 1),
            COSTS.map((c) => cell(alpha, c)),
          ),
        ),
      ),
    );
  }

  function paintHeat() {
    const width = widths.heat,
      columnWidth = width / TEMPERATURES.length,
      plotHeight = 62,
      rowHeight = plotHeight + 56,
      chart = svgRoot(width, 2 * rowHeight - 8, texts.heat.aria);
    Object.entries(EXAMPLES).forEach(([name, distributions], row) => {
      const floor = row * rowHeight + plotHeight + 30;
      chart.append(svgText(0, row * rowHeight + 11, texts.heat[name], "sd-k"));
      TEMPERATURES.forEach((temperature, i) => {
        const [p, q] = distributions.map((distribution) => tempered(distribution, temperature)),
          left = i * columnWidth,
          slotWidth = (columnWidth - 18) / p.length,
          barWidth = Math.max(2, slotWidth / 2 - 1.5);
        p.forEach((_, token) =>
          /** @type {[number[], string][]} */ ([
            [p, "sd-f-target"],
            [q, "sd-f-draft sd-s-draft"],
          ]).forEach(([distribution, cls], side) => {
            const barHeight = distribution[token] * plotHeight;
            chart.append(
              svgRect(left + token * slotWidth + side * (barWidth + 1), floor - barHeight, barWidth, barHeight, {
                class: cls,
                "stroke-width": 0.6,
              }),
            );
          }),
        );
        chart.append(
          svgLine(left, floor, left + columnWidth - 14, floor, "sd-ax"),
          svgText(left, floor + 14, `T ${temperature}`),
          svgText(left + columnWidth - 14, floor + 14, "β " + toFixed(overlap(p, q)), "sd-b", "end"),
        );
      });
    });
    part.heat.replaceChildren(chart);
  }

  /* Charts the chance that a token is drafted and accepted, under three rules. In `chosen`, the draft is the likeliest
   * token of q; in the others, it is drawn from q. */
  function paintRules() {
    const [p, q] = EXAMPLES.agree,
      width = widths.rules,
      columnWidth = width / 3,
      plotHeight = 62,
      floor = plotHeight + 34,
      chart = svgRoot(width, floor + 22, texts.kept_by.aria),
      likeliest = q.indexOf(Math.max(...q));
    const acceptedShares = {
      rejection: p.map((_, token) => Math.min(p[token], q[token])),
      match: p.map((_, token) => p[token] * q[token]),
      chosen: p.map((_, token) => (token === likeliest ? p[token] : 0)),
    };
    Object.entries(acceptedShares).forEach(([name, shares], i) => {
      const left = i * columnWidth,
        slotWidth = (columnWidth - 18) / p.length,
        barWidth = Math.max(3, slotWidth - 4),
        heightOf = (/** @type {number} */ value) => (value / 0.5) * plotHeight;
      texts.kept_by[name]
        .split("\n")
        .forEach((label, row) => chart.append(svgText(left, 11 + 14 * row, label, row ? "" : "sd-k")));
      shares.forEach((share, token) => {
        const x = left + token * slotWidth,
          outline = (/** @type {number} */ value, /** @type {string} */ cls) =>
            chart.append(
              svgRect(x, floor - heightOf(value), barWidth, heightOf(value), {
                class: cls,
                fill: "none",
                "stroke-width": 1.2,
              }),
            );
        chart.append(svgRect(x, floor - heightOf(share), barWidth, heightOf(share), { class: "sd-f-accepted" }));
        outline(p[token], "sd-s-target");
        if (name !== "chosen") outline(q[token], "sd-s-draft");
      });
      chart.append(
        svgLine(left, floor, left + columnWidth - 14, floor, "sd-ax"),
        svgText(
          left,
          floor + 15,
          fillText(texts.kept_by.kept, {
            share: toFixed(shares.reduce((all, share) => all + share, 0)),
          }),
          "sd-b",
        ),
      );
    });
    part.rules.replaceChildren(chart);
  }

  buildMap();
  return { wall: paintWall, heat: paintHeat, rules: paintRules };
}
