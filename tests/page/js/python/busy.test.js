// Whether a machine was busy, by the rule of Python. CASES is a folder of runs, EXPECTED what Python says of each.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { player } from "../page.js";

test("the page doubts the speed-ups that the summary doubts", () => {
  const expected = Object.entries(JSON.parse(fs.readFileSync(process.env.EXPECTED, "utf8")));
  assert.ok(expected.length > 20);
  for (const [name, busy] of expected) {
    const run = player.foldEvents(
      fs
        .readFileSync(path.join(process.env.CASES, name), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    );
    assert.equal(player.wasMachineBusy(run), busy, name);
  }
});
