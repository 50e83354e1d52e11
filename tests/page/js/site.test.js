// The page as files reads runs itself: what has the form of one is played, anything else is not.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { ASSETS } from "./page.js";
import { readTrace } from "#page/site/trace.js";

const MOST = 1000000,
  TRACES = path.join(ASSETS, "traces");
const recorded = fs.readdirSync(TRACES, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
const story = fs.readFileSync(path.join(TRACES, "story.jsonl"), "utf8");
const changed = (change) => {
  const lines = story
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  change(lines);
  return lines.map((line) => JSON.stringify(line)).join("\n");
};
const first = (lines, event) =>
  lines.find((line) => line.event === event && (!line.positions || line.positions.length));

test("every recorded run is one, and comes back as it was", () => {
  assert.ok(recorded.length > 10);
  for (const name of recorded) {
    const log = fs.readFileSync(path.join(TRACES, name), "utf8"),
      values = (text) =>
        text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line));
    assert.deepEqual(values(readTrace(log, MOST)), values(log), name);
  }
});

test("a run that went on is over here; marks and blank lines of editors do not matter", () => {
  const live = changed((lines) => (lines[0].source = "live"));
  assert.match(readTrace("\uFEFF" + live + "\n\n", MOST), /"source":"recorded"/);
});

test("what is no run is nothing", () => {
  const wrong = [
    "",
    "{",
    "[]",
    "null",
    '"text"',
    story.split("\n")[0],
    changed((lines) => lines.shift()),
    changed((lines) => (lines[0].lanes = ["another"])),
    changed((lines) => (lines[0].prompt = 1)),
    changed((lines) => (first(lines, "committed").pieces = null)),
    "[".repeat(100000),
  ];
  for (const text of wrong) assert.equal(readTrace(text, MOST), "", String(text).slice(0, 60));
  for (const none of [null, undefined, 3, {}]) assert.equal(readTrace(none, MOST), "");
  assert.equal(readTrace(story, story.length - 1), "");
});
