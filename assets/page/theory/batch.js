/* Many texts at once: what that makes of speculation by kind of load. */

import { text, line } from "#page/race/kit.js";
import { words, sentences, widthOf } from "#page/race/text.js";
import { machineOf, modelOf, batchSpeedup, crossings, memoryBytes } from "#page/theory/formulas.js";
import { times, byId, range, path, dot, ticks } from "#page/theory/axes.js";

/* Target, context, and the tokens that the draft reads. */
const LOADS = {
    short: ["llama8", 512, 512],
    long: ["llama8", 32768, 32768],
    window: ["llama8", 32768, 512],
    experts: ["moe30", 512, 512],
  },
  DRAFT = "llama1";

export function batchView(W, part, S, { frame, speedAxis }, { machines, models }) {
  const V = W.many,
    model = (id) => modelOf(byId(models, id));

  const chosen = () => [machineOf(byId(machines, S.machine)), model(S.target), model(S.draft)];

  function paintBatches(machine, ...pair) {
    const at = range(0, 72).map((i) => 2 ** (i / 8)),
      curve = (target, draft, context, read) =>
        at.map((batch) => [
          batch,
          batchSpeedup(machine, target, draft, S.bits, S.alpha, S.k, batch, context, read),
        ]);
    const lines = Object.entries(LOADS).map(([load, [id, context, read]]) => {
      const full = at.findIndex(
        (batch) =>
          memoryBytes(model(id), model(DRAFT), S.bits, batch, context).reduce(
            (sum, one) => sum + one,
          ) > machine.memory,
      );
      return {
        name: V.loads[load],
        look: "sd-th-bend sd-th-" + load,
        line: curve(model(id), model(DRAFT), context, read),
        full,
      };
    });
    const own = curve(...pair, S.context),
      gains = own.map(([, gain]) => gain),
      A = frame("batches", 300, W.batches.aria, {
        bottom: 40,
        right: 18 + Math.max(...lines.map(({ name }) => widthOf(name))),
      }),
      { g } = A;
    const all = [...lines, { name: "", look: "sd-line-a", line: own, full: -1 }],
      y = speedAxis(
        A,
        Math.max(2, ...all.flatMap(({ line }) => line.map(([, gain]) => gain))) * 1.1,
      ),
      x = (batch) => A.left + (Math.log2(batch) / 9) * A.wide;
    ticks(
      A,
      range(0, 4).map((i) => [x(4 ** i), 4 ** i]),
      W.batches.axis,
    );
    for (const { look, line, full } of all) {
      const place = line.map(([batch, gain]) => [x(batch), y(gain)]);
      g.append(path(place, look));
      if (full >= 0) g.append(dot(...place[full], 3.5, "sd-dot-b"));
    }
    let last = 0; // their names at the right, moved apart
    for (const [top, name] of lines
      .map(({ name, line }) => [y(line[line.length - 1][1]), name])
      .sort(([one], [other]) => one - other))
      g.append(text(A.left + A.wide + 8, (last = Math.max(last + 14, top)) + 4, name));
    for (const i of crossings(gains)) {
      // below the line and beside the turn: the curve is on the other side
      const turn = x(at[i]),
        loses = gains[i] < 1,
        left = loses ? turn > A.left + 200 : turn > A.left + A.wide - 150;
      g.append(
        line(turn, y(1), turn, A.floor, "sd-dots"),
        text(
          turn + (left ? -6 : 6),
          y(1) + 18,
          words(loses ? W.batches.loses : W.batches.wins, { n: Math.ceil(at[i]) }),
          "sd-b",
          left ? "end" : "start",
        ),
      );
    }
    const now = gains[8 * Math.log2(S.batch)],
      right = S.batch > 64;
    g.append(
      dot(x(S.batch), y(now), 6.5, "sd-th-you"),
      text(
        x(S.batch) + (right ? -12 : 12),
        y(now) - 10,
        times(now),
        "sd-th-mine sd-b",
        right ? "end" : "start",
      ),
    );
    part.batches.replaceChildren(g);
    part.batchsay.textContent = sentences(
      lines.map(({ name, line }) =>
        words(V.gain, { name, n: 512, one: times(line[0][1]), all: times(line[72][1]) }),
      ),
    );
  }

  return { batches: () => paintBatches(...chosen()) };
}
