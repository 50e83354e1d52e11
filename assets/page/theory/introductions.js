/* Shows the figures that introductions quote, beside those measured here. */

import { html, createButton, createRow } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { speedup } from "#page/theory/formulas.js";
import { toMachine, toModel, weightsRead, readingSeconds } from "#page/theory/hardware.js";
import { formatTimes, findById, formatSeconds, formatBytes } from "#page/theory/format.js";
import { createScrollTable } from "#page/theory/axes.js";

/** @typedef {{drafter: string, family: string, alpha: number[], k: number[]}} Range */
/** @typedef {Record<string, number>} Sliders */
/** @typedef {{set?: Sliders, wall?: Record<string, string | number>, [figure: string]: unknown}} Answer */
/** @typedef {{claim: string, source: string, answer: string, table?: {heads: Record<string, string>,
 *   rows: Record<string, {pair: string, claimed: string}>}}} Words */

/** @param {any} page  @param {{machines: any[], models: any[]}} hardware  @param {Range[]} spans
 * @param {Record<string, number>} example */
export function createIntroductions(page, { machines, models }, spans, example) {
  const { texts, part, settings } = page,
    words = texts.introductions;

  /** @param {string} drafter  @param {string} family  @param {"alpha" | "k"} name */
  function span(drafter, family, name = "alpha") {
    const found = spans.find((entry) => entry.drafter === drafter && entry.family === family);
    if (!found) return "–";
    const [low, high] = found[name].map((value) => toFixed(value, name === "k" ? 0 : 2));
    return low === high ? low : fillText(words.to, { low, high });
  }

  /** @type {Record<string, () => Answer>} */
  const answers = {
    three: () => ({
      set: { alpha: 1, k: 2, c: 0, v: 1.25, o: 0 },
      best: formatTimes(speedup(1, 2, 0, 1.25)),
      usual: formatTimes(speedup(0.8, 2, 0, 1.25)),
    }),
    bytes: () => {
      const model = toModel(findById(models, "llama70")),
        machine = toMachine(findById(machines, "h200"));
      return {
        wall: { target: "llama70", draft: "llama8", machine: "h200", bits: 16, batch: 1, context: 256 },
        bytes: formatBytes(model.parameters * 2),
        read: formatBytes(weightsRead(model, 1) * 2),
        left: formatBytes(machine.memory - model.parameters * 2),
        time: formatSeconds(readingSeconds(machine, model, 16, 1, 1, 0)),
      };
    },
    example: () => ({
      set: example,
      each: formatTimes(speedup(0.8, 4, 0.1)),
      all: formatTimes(speedup(0.8, 4, 0.1 / 4)),
    }),
    epsilon: () => ({
      rows: settings.k + 1,
      epsilon: toFixed(settings.k * settings.c + settings.v + settings.o - 1),
      draft: toFixed(settings.k * settings.c),
      check: toFixed(settings.v + settings.o - 1),
    }),
    warfarin: () => ({
      set: example,
      passes: toFixed(4 * 0.1 + 1),
      times: formatTimes(4 / (4 * 0.1 + 1)),
      theirs: formatTimes(3 / 1.25),
    }),
    length: () => ({
      best: page.findBestK() || words.nothing,
      ours: span("draft_model", "embedded", "k"),
      star: span("draft_model", "smollm2", "k"),
    }),
    rates: () => ({
      ours: span("draft_model", "embedded"),
      star: span("draft_model", "smollm2"),
      lookup: span("prompt_lookup", "embedded"),
      starlookup: span("prompt_lookup", "smollm2"),
    }),
    pairs: () => ({}),
  };
  const shown = /** @type {Record<string, HTMLElement>} */ ({});

  /** @param {Answer} answer */
  function act({ set, wall }) {
    if (wall) page.setMachine(wall);
    else page.setValues({ costGrows: false, ...set });
    const heading = wall ? part.walltitle : part.headline,
      fold = heading.closest("details");
    if (fold) fold.open = true;
    heading.scrollIntoView({ block: "center" });
    page.announce();
  }

  /** @param {string} name  @param {Words} entry */
  function build(name, { claim, source, table }) {
    const { set, wall } = answers[name](),
      rows = Object.entries(table?.rows ?? {}).map(([drafter, { pair, claimed }]) =>
        createRow(pair, [claimed, span(drafter, "embedded"), span(drafter, "smollm2")]),
      );
    shown[name] = html("p", {});
    return html(
      "article",
      { class: "sd-th-claim", "data-claim": name },
      html("div", {}, html("h4", {}, claim), html("p", { class: "sd-sub" }, source)),
      html(
        "div",
        {},
        shown[name],
        table && createScrollTable(table.heads, rows),
        (set || wall) && createButton(set ? words.set : words.set_wall, () => act({ set, wall })),
      ),
    );
  }

  part.introductions.append(
    ...Object.keys(answers)
      .filter((name) => words.list[name])
      .map((name) => build(name, words.list[name])),
  );
  return {
    introductions() {
      for (const [name, node] of Object.entries(shown))
        node.textContent = fillText(words.list[name].answer, answers[name]());
    },
  };
}
