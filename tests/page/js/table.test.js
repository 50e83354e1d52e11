// The order of a table's rows after a press on a heading.
import test from "node:test";
import assert from "node:assert";
import { sortRows } from "#page/shared/table.js";

const rows = [
  ["b", 2, "first"],
  ["a", null, "none"],
  ["c", 10, "ten"],
  ["a", -1, "less"],
  ["B", 2, "second"],
];
const names = (at, down) => sortRows(rows, at, down).map((row) => row[2]);

test("figures are ordered as figures, and a row without one is last either way", () => {
  assert.deepEqual(names(1, false), ["less", "first", "second", "ten", "none"]);
  assert.deepEqual(names(1, true), ["ten", "first", "second", "less", "none"]);
});

test("words are ordered as words, and even rows keep their order", () => {
  assert.deepEqual(names(0, false), ["none", "less", "first", "second", "ten"]);
});

test("a figure with its interval is ordered by the figure", () => {
  const spans = [
    ["slow", [0.9, 0.5, 3]],
    ["fast", [2, 1, 2.5]],
    ["none", null],
  ];
  assert.deepEqual(
    sortRows(spans, 1, true).map(([name]) => name),
    ["fast", "slow", "none"],
  );
});
