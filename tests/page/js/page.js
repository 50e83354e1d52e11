// What the tests share: the files of `assets`, the runs in `runs/`, and all that decides in the player.
import fs from "node:fs";
import path from "node:path";
import * as measure from "#page/race/measure.js";
import * as format from "#page/race/format.js";
import * as tokens from "#page/race/tokens.js";
import * as cycle from "#page/race/cycle.js";
import * as log from "#page/race/log.js";
import * as run from "#page/race/run.js";
import * as text from "#page/race/text.js";

export const ASSETS = path.join(import.meta.dirname, "..", "..", "..", "assets");
export const player = { ...run, ...cycle, ...log, ...text, ...measure, ...format, ...tokens };
export const json = (name) => JSON.parse(fs.readFileSync(path.join(ASSETS, name), "utf8"));

/* The events of a run, in order: pytest holds `runs/` against those of tests/toyrun.py. */
export const eventsOf = (name) =>
  fs
    .readFileSync(path.join(import.meta.dirname, "runs", name + ".jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
