/* What introductions say, what follows from it by the formulas, and what was measured here. */

import { h, button, tableRow } from "#page/race/kit.js";
import { words, fixed } from "#page/race/text.js";
import { machineOf, modelOf, weightsRead, readingSeconds, speedup } from "#page/theory/formulas.js";
import { rowsWith } from "#page/theory/measured.js";
import { times, byId, milliseconds, gigabytes, plainTable } from "#page/theory/axes.js";

/* `page` sets the sliders (`set`, `choose`), knows the best K, and says aloud what came of it. */
export function claimsOf(W, part, S, page, { machines, models, reports, example: EXAMPLE }) {
  function spread(values, digits = 2) {
    if (!values.length) return W.claims.unmeasured;
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) =>
      fixed(value, digits),
    );
    return low === high ? low : words(W.claims.to, { low, high });
  }
  const alphasOf = (drafter) => spread(rowsWith(reports, drafter).map((row) => row.alpha));

  /* Figures for the answers, all computed; and what a claim's button sets. */
  const ANSWERS = {
    three: () => ({
      set: { alpha: 1, k: 2, c: 0, v: 1.25, o: 0 },
      best: times(speedup(1, 2, 0, 1.25)),
      usual: times(speedup(0.8, 2, 0, 1.25)),
    }),
    bytes: () => {
      const model = modelOf(byId(models, "llama70")),
        machine = machineOf(byId(machines, "h200"));
      return {
        wall: {
          target: "llama70",
          draft: "llama8",
          machine: "h200",
          bits: 16,
          batch: 1,
          context: 256,
        },
        bytes: gigabytes(model.parameters * 2),
        read: gigabytes(weightsRead(model, 1) * 2),
        left: gigabytes(machine.memory - model.parameters * 2),
        time: milliseconds(readingSeconds(machine, model, 16, 1, 1, 0)),
      };
    },
    example: () => ({
      set: EXAMPLE,
      each: times(speedup(0.8, 4, 0.1)),
      all: times(speedup(0.8, 4, 0.1 / 4)),
    }),
    epsilon: () => ({
      k: S.k,
      rows: S.k + 1,
      epsilon: fixed(S.k * S.c + S.v + S.o - 1),
      draft: fixed(S.k * S.c),
      check: fixed(S.v + S.o - 1),
    }),
    warfarin: () => ({
      set: EXAMPLE,
      passes: fixed(4 * 0.1 + 1),
      times: times(4 / (4 * 0.1 + 1)),
      theirs: times(3 / 1.25),
    }),
    length: () => ({
      best: page.best() || W.claims.nothing,
      ours: spread(
        rowsWith(reports, "draft_model").map((row) => row.k),
        0,
      ),
    }),
    rates: () => ({ ours: alphasOf("draft_model"), lookup: alphasOf("prompt_lookup") }),
    pairs: () => ({}),
  };

  function paint() {
    for (const [name, answer] of Object.entries(ANSWERS))
      part.claims.answers[name].textContent = words(W.claims.list[name].answer, answer());
  }

  function buildClaims() {
    part.claims.answers = {};
    for (const [name, claim] of Object.entries(W.claims.list)) {
      const { set: values, wall: choice } = ANSWERS[name](),
        act = () => {
          values ? page.set({ grows: false, ...values }) : page.choose(choice);
          if (choice) part.walltitle.closest("details").open = true;
          (values ? part.headline : part.walltitle).scrollIntoView({ block: "center" });
          page.announce();
        };
      part.claims.append(
        h(
          "article",
          {},
          h("div", {}, h("h3", {}, claim.claim), h("p", { class: "sd-sub" }, claim.source)),
          h(
            "div",
            {},
            (part.claims.answers[name] = h("p", {})),
            pairsOf(claim),
            values || choice ? button(values ? W.claims.set : W.claims.set_wall, act) : null,
          ),
        ),
      );
    }
  }

  /* Rows named after a drafter stand beside what was measured with it. */
  function pairsOf({ table }) {
    if (!table) return null;
    const rows = Object.entries(table.rows).map(([name, { pair, claimed }]) =>
      tableRow(pair, [claimed, alphasOf(name)]),
    );
    return plainTable(table.heads, rows);
  }

  buildClaims();
  return { claims: paint };
}
