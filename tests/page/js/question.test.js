// A question to the class asks for a chance that can be worked out, not for the fall of a coin.
import test from "node:test";
import assert from "node:assert";
import { quarterOf, questions } from "#page/class/question.js";
import { json } from "./page.js";

const W = json("text/en/class.json");

test("p and q come first, and the answer is min(1, p/q)", () => {
  const { worded } = questions(W, { list: [] }, (tag, attributes, text) => text);
  const told = worded({ kind: "keep", piece: " the", choices: 4, p: 0.11, q: 0.61 });
  assert.equal(
    told.text.join(""),
    "The draft said the with probability q = 0.61; the target gives it p = 0.11. With what chance does it stay?",
  );
  assert.equal(told.choices.length, 4);
  assert.ok(told.why({ right: 0 }).startsWith("min(1, p/q) = min(1, 0.11/0.61) = 0.18."));
});

test("a chance falls into one quarter", () => {
  for (const [p, q, quarter] of [
    [0.11, 0.61, 0],
    [0.2, 0.8, 1],
    [0.3, 0.6, 2],
    [0.3, 0.4, 3],
    [0.6, 0.3, 3],
    [0, 0, 3],
  ])
    assert.equal(quarterOf(p, q), quarter, `${p} ${q}`);
});
