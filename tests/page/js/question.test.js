// A question to the class asks for a chance that can be worked out, not for the fall of a coin.
import test from "node:test";
import assert from "node:assert";
import { quarterOfChance, formatChances, cycleToAsk, draftToAsk } from "#page/class/question.js";

test("a chance falls into one quarter", () => {
  assert.deepEqual([quarterOfChance(0.2, 0.8), quarterOfChance(0.3, 0.4), quarterOfChance(0, 0)], [1, 3, 3]);
  assert.deepEqual(formatChances(0.0074, 0.029), ["0.00740", "0.0290"]);
  for (let q = 0.0102; q < 0.98; q *= 1.07)
    for (let p = q * 0.03; p < q * 0.98; p += q * 0.0047)
      if (draftToAsk({ drafts: [{ piece: " a", p, q, state: "accepted" }] }))
        assert.equal(quarterOfChance(...formatChances(p, q).map(Number)), quarterOfChance(p, q), `${p} ${q}`);
});

test("a class is asked about a word that a coin decides, where there is one", () => {
  const draft = (piece, p, state = "accepted") => ({ piece, p, q: 0.8, state }),
    cycle = (...drafts) => ({ check: {}, drafts }),
    sure = cycle(draft(" a", 0.8), draft(" b", 0.8)),
    breaks = cycle(draft("\n", 0.5), draft(" a", 0.8), draft(" edge", 0.41)),
    word = cycle(draft("\n", 0.5), draft(" river", 0.5, "rejected"), draft(" never", 0.5, "discarded"));
  assert.equal(cycleToAsk([sure, breaks, word]), word);
  assert.equal(cycleToAsk([sure, breaks]), breaks);
  assert.equal(cycleToAsk([{ drafts: [] }, sure]), sure);
  assert.equal(cycleToAsk([]), undefined);
  assert.deepEqual(
    [word, breaks, sure].map((one) => draftToAsk(one).piece),
    [" river", "\n", " a"],
  );
});
