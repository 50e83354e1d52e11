// Be the big model: which guesses are asked, and what the score says. `node --test tests/page/js`.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { GAME, chanceOf, guessesOf, rounds, scored } from "#page/step/guesses.js";
import { ASSETS, json, player } from "./page.js";

const { read, newReader, speculative } = player;
const W = json("text/en/game.json");

const laneOf = (name) => {
  const reader = newReader();
  read(reader, fs.readFileSync(path.join(ASSETS, "traces", name + ".jsonl"), "utf-8"));
  return speculative(reader.run);
};
const lane = laneOf("tips"),
  all = guessesOf(lane);

test("a guess stands behind the text that it was made for, and the rule's verdict follows from p, q and the coin", () => {
  const text = [lane.first, ...lane.cycles].flatMap((one) => one.pieces).join("");
  assert.ok(all.length > 2 * GAME);
  for (const { before, piece, p, q, u, kept } of all) {
    assert.ok(text.startsWith(before));
    assert.equal(kept, u * q < p);
    if (kept) assert.ok(text.startsWith(before + piece));
  }
});

test("where no coin decided there is nothing to judge", () => {
  assert.deepEqual(guessesOf(laneOf("coding")), []); // temperature 0
  assert.deepEqual(
    guessesOf({ ...lane, started: { ...lane.started, rule: "typical acceptance" } }),
    [],
  );
  assert.deepEqual(
    guessesOf({ ...lane, cycles: lane.cycles.map((one) => ({ ...one, tree: true })) }),
    [],
  );
});

test("a game asks ten, most of them open, in the order of the text; the next game asks others", () => {
  const [one, two] = [rounds(all, 0), rounds(all, 1)];
  for (const game of [one, two]) {
    assert.equal(new Set(game).size, GAME);
    assert.ok(game.filter((guess) => chanceOf(guess) < 1).length >= 5);
    assert.deepEqual(
      game,
      all.filter((guess) => game.includes(guess)),
    );
  }
  assert.ok(two.some((guess) => !one.includes(guess)));
});

test("the score against the coin, and what the likelier verdict and a second toss would reach", () => {
  const judged = [
    { p: 0.2, q: 0.8, kept: false }, // r = 1/4
    { p: 0.5, q: 0.5, kept: true }, // r = 1
    { p: 0.3, q: 0.4, kept: true }, // r = 3/4
  ];
  const found = scored(judged, [true, false, true]);
  assert.deepEqual([found.agreed, found.eager, found.wasted], [1, 1, 1]);
  assert.ok(Math.abs(found.likelier - 2.5) < 1e-9);
  assert.ok(Math.abs(found.coin - (10 / 16 + 1 + 10 / 16)) < 1e-9);
  assert.ok(W.lesson.includes("{likelier}") && W.lesson.includes("{coin}"));
});
