// Which tokens stand beside a test, and which beside the draw that follows it.
import test from "node:test";
import assert from "node:assert";
import { formatRatio } from "#page/step/marks.js";
import { rankByTarget, rankDrawnFirst, rowsToShow } from "#page/step/distributions.js";

const entry = (token, prob) => ({ token, piece: "abcd"[token], prob }),
  drawn = entry(3, 0.05);
const draft = {
  ...{ token: 0, piece: "a", p: 0.2, q: 0.6 },
  target: { top: [entry(1, 0.4), entry(0, 0.2), entry(2, 0.1), drawn], rest: 0.25, sample: drawn },
  draft: { top: [entry(0, 0.6), entry(2, 0.3), entry(1, 0.05), entry(3, 0.01)], rest: 0.04 },
};
const names = (rank) => rowsToShow(draft, rank, 1, 3).shown.map(({ piece }) => piece);

test("a token has a place because it was drawn only after it was drawn", () => {
  assert.deepEqual(names(rankByTarget), ["a", "b", "c"]);
  assert.deepEqual(names(rankDrawnFirst(drawn)), ["a", "d", "b"]);
  assert.deepEqual(names(rankDrawnFirst(null)), ["a", "b", "c"]);
});

test("the quotient of a test is that of its operands as printed", () => {
  assert.deepEqual(formatRatio(0.21, 0.78), ["0.21", "0.78", "0.27"]);
  assert.deepEqual(formatRatio(0.978, 0.8702), ["0.978", "0.870", "1.12"]); // 0.98 / 0.87 would be 1.13
  const value = (text) => Number(text.replace("−", "-"));
  for (let i = 1; i < 200; i++) {
    const [p, q, ratio] = formatRatio((i * 0.37) % 1 || 0.5, (i * 0.61) % 1 || 0.5).map(value);
    assert.ok(Math.abs(p / q - ratio) <= 0.0051 * Math.max(1, ratio), `${p} / ${q} = ${ratio}`);
  }
});
