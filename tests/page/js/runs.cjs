// The runs in `runs/`: pytest holds them against those of tests/toyrun.py.
const fs = require("node:fs");
const path = require("node:path");

/* The events of one, in order. */
const eventsOf = (name) =>
  fs
    .readFileSync(path.join(__dirname, "runs", name + ".jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

module.exports = { eventsOf };
