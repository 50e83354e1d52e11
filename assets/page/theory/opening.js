/* What the page begins with: why a check is nearly free, when speculation loses, the best K at a glance, what the
 * temperature does to acceptance, and what each rule keeps of one draft. */

import { html, createHeadRow, createRow } from "#page/race/html.js";
import { svgText, svgLine, svgRect, svgRoot } from "#page/race/svg.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import {
  toMachine,
  toModel,
  readingSeconds,
  computingSeconds,
  weightsRead,
  cacheBytes,
} from "#page/theory/hardware.js";
import { bestK, expectedTokens, speedup, tempered, overlap } from "#page/theory/formulas.js";
import { formatTimes, findById, formatSeconds, formatBytes } from "#page/theory/format.js";

const ALPHAS = [0.5, 0.6, 0.7, 0.8, 0.9],
  COSTS = [0.02, 0.05, 0.1, 0.2, 0.4];
/* Two places at temperature 1: draft and target agree on the first choice, or they do not. */
const PLACES = {
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

export function createOpening({ W, part, S, room, gain }, { machines, models }) {
  /* Reading one's weights, and computing beside it: one row, and those of a check. */
  function paintWall() {
    const machine = toMachine(findById(machines, S.machine)),
      target = toModel(findById(models, S.target)),
      rows = S.k + 1;
    const reading = readingSeconds(machine, target, S.bits, 1, 1, S.context),
      computing = (n) => computingSeconds(machine, target, 1, n, S.context);
    const values = {
      target: findById(models, S.target).name,
      machine: findById(machines, S.machine).name,
      bytes: formatBytes((weightsRead(target, 1) * S.bits) / 8),
      cache: formatBytes(cacheBytes(target, S.context)),
      reading: formatSeconds(reading),
      one: formatSeconds(computing(1)),
      rows,
      all: formatSeconds(computing(rows)),
    };
    const width = room.wall,
      left = width > 480 ? 150 : 0,
      high = left ? 44 : 62,
      dy = left ? 0 : 18,
      most = Math.max(reading, computing(rows)),
      x = (v) => (v / most) * (width - left - 4);
    const bars = [
        [W.wall_first.write, computing(1), 1],
        [fillText(W.wall_first.check, values), computing(rows), rows],
      ],
      g = svgRoot(width, bars.length * high + 4, fillText(W.wall_first.lead, values));
    bars.forEach(([name, seconds, n], i) => {
      const y = i * high + dy;
      g.append(
        svgText(0, left ? y + 19 : y - 4, name, "sd-k"),
        svgRect(left, y, x(reading), 14, { class: "sd-f-target" }),
        svgText(left + 8, y + 11, fillText(W.wall_first.reads, values), "sd-th-light"),
        svgRect(left, y + 17, Math.max(2, x(seconds)), 12, { class: "sd-th-you" }),
      );
      g.append(
        svgText(
          left + Math.max(2, x(seconds)) + 7,
          y + 27,
          fillText(W.wall_first.computes, { time: formatSeconds(seconds), n }),
          "sd-th-mine",
        ),
      );
    });
    part.wall.replaceChildren(g);
    part.wallfirst.textContent = fillText(W.wall_first.lead, values);
  }

  function paintLoses() {
    const now = gain(S.k);
    part.loses.replaceChildren(
      html("b", {}, W.loses.rule),
      " ",
      fillText(now >= 1 ? W.loses.wins : W.loses.loses, {
        tokens: toFixed(expectedTokens(S.alpha, S.k)),
        passes: toFixed(S.k * S.c + S.v + S.o),
        times: formatTimes(now),
      }),
    );
  }

  /* The best K and its speed-up by α and c, with checks that cost one plain step. */
  function buildMap() {
    const cell = (alpha, c) => {
      const k = bestK(alpha, c);
      return [
        k ? html("b", {}, String(k)) : "–",
        k ? " " + formatTimes(speedup(alpha, k, c), 1) : null,
      ];
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

  /* Both distributions of two places at several temperatures, and their overlap. */
  function paintHeat() {
    const width = room.heat,
      wide = width / TEMPERATURES.length,
      tall = 62,
      high = tall + 56,
      g = svgRoot(width, 2 * high - 8, W.heat.aria);
    Object.entries(PLACES).forEach(([name, distributions], row) => {
      const floor = row * high + tall + 30;
      g.append(svgText(0, row * high + 11, W.heat[name], "sd-k"));
      TEMPERATURES.forEach((temperature, i) => {
        const [p, q] = distributions.map((distribution) => tempered(distribution, temperature)),
          left = i * wide,
          each = (wide - 18) / p.length,
          thick = Math.max(2, each / 2 - 1.5);
        p.forEach((_, token) =>
          [
            [p, "sd-f-target"],
            [q, "sd-f-draft sd-s-draft"],
          ].forEach(([distribution, cls], side) => {
            const up = distribution[token] * tall;
            g.append(
              svgRect(left + token * each + side * (thick + 1), floor - up, thick, up, {
                class: cls,
                "stroke-width": 0.6,
              }),
            );
          }),
        );
        g.append(
          svgLine(left, floor, left + wide - 14, floor, "sd-ax"),
          svgText(left, floor + 14, `T ${temperature}`),
          svgText(left + wide - 14, floor + 14, "β " + toFixed(overlap(p, q)), "sd-b", "end"),
        );
      });
    });
    part.heat.replaceChildren(g);
  }

  /* One place three times, and in it what stays: of a draft that is drawn, by either rule, and of the draft's
   * first choice. */
  function paintRules() {
    const [p, q] = PLACES.agree,
      width = room.rules,
      wide = width / 3,
      tall = 62,
      floor = tall + 34,
      g = svgRoot(width, floor + 22, W.kept_by.aria),
      first = q.indexOf(Math.max(...q));
    const kept = {
      rejection: p.map((_, token) => Math.min(p[token], q[token])),
      match: p.map((_, token) => p[token] * q[token]),
      chosen: p.map((_, token) => (token === first ? p[token] : 0)),
    };
    Object.entries(kept).forEach(([name, parts], i) => {
      const left = i * wide,
        each = (wide - 18) / p.length,
        thick = Math.max(3, each - 4),
        up = (value) => (value / 0.5) * tall;
      W.kept_by[name]
        .split("\n")
        .forEach((said, row) => g.append(svgText(left, 11 + 14 * row, said, row ? "" : "sd-k")));
      parts.forEach((part, token) => {
        const x = left + token * each,
          outline = (value, cls) =>
            g.append(
              svgRect(x, floor - up(value), thick, up(value), {
                class: cls,
                fill: "none",
                "stroke-width": 1.2,
              }),
            );
        g.append(svgRect(x, floor - up(part), thick, up(part), { class: "sd-f-acc" }));
        outline(p[token], "sd-s-target");
        if (name !== "chosen") outline(q[token], "sd-s-draft");
      });
      g.append(
        svgLine(left, floor, left + wide - 14, floor, "sd-ax"),
        svgText(
          left,
          floor + 15,
          fillText(W.kept_by.kept, { share: toFixed(parts.reduce((all, part) => all + part, 0)) }),
          "sd-b",
        ),
      );
    });
    part.rules.replaceChildren(g);
  }

  buildMap();
  return { wall: paintWall, loses: paintLoses, heat: paintHeat, rules: paintRules };
}
