// A question to the class asks for a chance that can be worked out, not for the fall of a coin.
import test from "node:test";
import assert from "node:assert";
import { quarterOfChance } from "#page/class/question.js";

test("a chance falls into one quarter", () => {
  for (const [p, q, quarter] of [
    [0.11, 0.61, 0],
    [0.2, 0.8, 1],
    [0.3, 0.6, 2],
    [0.3, 0.4, 3],
    [0.6, 0.3, 3],
    [0, 0, 3],
  ])
    assert.equal(quarterOfChance(p, q), quarter, `${p} ${q}`);
});
