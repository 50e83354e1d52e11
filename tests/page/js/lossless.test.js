/* What the page reads off a certificate, on those that are recorded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as lossless from "#page/lossless/reading.js";
import { formatFigure } from "#page/lossless/format.js";
import { json } from "./page.js";

const { toy: RECORDED, embedded: REAL } = json("certificates.json");

/* Caught, or with the number of draws that it takes, on the toy pair if nowhere else, or with the length of the drafts
 * that show it. */
function isToldOf(told) {
  const { kind } = lossless.verdictOf(told, 20000),
    needed = lossless.drawsNeeded(told) || lossless.drawsNeeded(RECORDED[told.mistake]);
  return kind === "bad" || (kind === "missed" && (needed > 20000 || told.least_k > told.k));
}

test("the shipped rule passes all checks, and every mistake is caught or told of", () => {
  for (const pair of [RECORDED, REAL])
    for (const [name, told] of Object.entries(pair))
      assert.ok(name ? isToldOf(told) : lossless.verdictOf(told, 20000).kind === "good", name);
});

test("a mistake that the next token hides needs more than a hundred draws", () => {
  const told = RECORDED.extra_bonus;
  assert.deepEqual([lossless.checksOf(told, 100).sampled, lossless.checksOf(told, 20000).sampled], [true, false]);
  assert.equal(lossless.checksOf(told, 100).closed, true);
  assert.equal(lossless.verdictOf({ ...told, greedy: { equal: 4, of: 4 } }, 100).kind, "missed");
  assert.ok(lossless.drawsNeeded(told) > 100 && lossless.drawsNeeded(told) < 20000);
});

test("a small figure is written as a power of ten", () => {
  assert.deepEqual([0, 0.25, 5.6e-17, 3e-4].map(formatFigure), ["0", "0.250", "6 × 10⁻¹⁷", "3 × 10⁻⁴"]);
});
