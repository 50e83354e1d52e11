// The page's formulas against tests/figures/test_theory.py; what it reads off a run against specdec/figures/stats.py.
// CASES names both.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import * as formulasOfPage from "#page/theory/formulas.js";
import * as hardware from "#page/theory/hardware.js";
import * as measured from "#page/theory/measured.js";
import { player } from "../page.js";

const theory = {
  ...formulasOfPage,
  ...hardware,
  ...measured,
};

const { formulas, worked, runs } = JSON.parse(fs.readFileSync(process.env.CASES, "utf8"));
const foldOf = (log) =>
  player.foldEvents(
    log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  );

function close(got, want, what) {
  if (Array.isArray(want)) {
    assert.equal(got.length, want.length, what);
    return want.forEach((one, i) => close(got[i], one, what));
  }
  assert.ok(Math.abs(got - want) <= 1e-9 * Math.max(1, Math.abs(want)), `${what}: ${got}, not ${want}`);
}

test("every formula gives what Python gives", () => {
  const seen = {};
  for (const { name, args, want } of formulas) {
    const given = args.map((arg) => (arg && arg.growing ? theory.growingCost(...arg.growing) : arg));
    close(theory[name](...given), want, `${name}(${JSON.stringify(args)})`);
    seen[name] = (seen[name] || 0) + 1;
  }
  assert.ok(Object.keys(seen).length >= 8 && Object.values(seen).every((n) => n >= 40), JSON.stringify(seen));
});

test("the memory wall gives the numbers worked out by hand", () => {
  const read = (arg) => (arg.tflops ? theory.toMachine(arg) : arg.layers ? theory.toModel(arg) : arg);
  for (const { name, args, want } of worked)
    close(theory[name](...args.map(read)), want, `${name}(${JSON.stringify(args)})`);
});

test("a run's figures are those of stats.py, and its account closes alike", () => {
  for (const { log, want } of runs) {
    const got = theory.measureRun(foldOf(log));
    for (const [name, value] of Object.entries(want))
      if (name !== "c" || !got.tree) close(got[name === "measured" ? "speedup" : name], value, name);
  }
});

test("a run without drafts, or with nothing beside it, has no place on the curves", () => {
  const lines = runs[0].log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(
    theory.measureRun(player.foldEvents(lines.filter((event) => event.event !== "drafted" && event.lane !== "plain"))),
    null,
  );
  assert.equal(theory.measureRun(player.foldEvents(lines.slice(0, 4))), null);
});
