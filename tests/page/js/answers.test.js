// One run's acceptance is the same, said as vLLM says it, as α, or as τ; and answers lead somewhere.
import test from "node:test";
import assert from "node:assert";
import { convert, GROUPS, SEE_ALSO } from "#page/guide/answers.js";
import { expectedTokens } from "#page/theory/formulas.js";
import { json } from "./page.js";

const words = json("text/en/guide.json");
const near = (a, b, by = 1e-9) => assert.ok(Math.abs(a - b) < by, `${a} ${b}`);

test("each of the three gives the other two, by the formulas of Theory", () => {
  for (const k of [1, 2, 4, 7, 16, 64])
    for (const alpha of [0, 0.1, 0.5, 0.8, 0.99, 1]) {
      const tau = expectedTokens(alpha, k),
        known = { rate: (tau - 1) / k, alpha, tau };
      for (const [name, value] of Object.entries(known)) {
        const found = convert(name, Math.min(value, name === "tau" ? k + 1 : 1), k);
        for (const other of ["rate", "alpha", "tau"]) near(found[other], known[other], 1e-6);
      }
    }
});

test("a log of vLLM bears it out: 49 of 2,160 drafted were accepted at K = 15, mean length 1.34", () => {
  assert.equal(convert("rate", 49 / 2160, 15).tau.toFixed(2), "1.34"); // speculators issue 613
});

test("every question stands in one group, and every group has its name", () => {
  assert.deepEqual(Object.values(GROUPS).flat().sort(), Object.keys(words.answers.list).sort());
  assert.deepEqual(Object.keys(GROUPS), Object.keys(words.answers.groups));
});

test("an answer that leads on is one that there is, and leads to a section of the Guide", () => {
  for (const [id, { sections = [] }] of Object.entries(SEE_ALSO)) {
    assert.ok(id in words.answers.list, id);
    for (const name of sections) assert.ok(name in words.sections, name);
  }
});
