// The account of quoted figures: what follows from a claim, and what it would give at other costs.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import { workOut, expectAt, missOf } from "#page/theory/account.js";
import { expectedTokens } from "#page/theory/formulas.js";
import { costKey } from "#page/theory/opening.js";

const { claims } = JSON.parse(fs.readFileSync("assets/sources.json", "utf8"));
const close = (got, want) => assert.ok(Math.abs(got - want) < 1e-9, `${got}, not ${want}`);

test("a claim says what its cycle cost, or what it needs and leaves out", () => {
  const { cost, draft, missing } = workOut({ tau: 3, k: 4, speedup: 2, machine: "A", batch: 1, temperature: 0 });
  close(cost, 1.5);
  close(draft, 0.125);
  assert.deepEqual(missing, ["prompts"]);
  assert.equal(workOut({ tau: 2, k: 4, speedup: 3 }).draft, null); // a cycle cannot cost less than a plain step
  close(expectedTokens(workOut({ k: 7, plain: 70, fast: 161 }).alpha, 7), 2.3);
});

test("at other costs the same τ gives another speed-up, and none without τ", () => {
  const costs = { k: 4, c: 0.1, v: 1.2, o: 0.1 };
  close(expectAt({ tau: 3.4 }, costs).speedups[0], 3.4 / 1.7); // K is not stated: the measured one
  assert.equal(expectAt({ tau: 6.4 }, costs).rows, 7); // five drafts would not give so many
  close(expectAt({ tau: 3.4, k: 8, steps: 1 }, costs).cost, 0.1 + 1.4 + 0.1);
  close(expectAt({ tau: 3.4, k: 4, rows: 64 }, costs).v, 1 + (0.2 * 63) / 4);
  close(expectAt({ tau: 3.4, k: 8 }, { ...costs, v: 0.9 }).v, 0.9);
  assert.equal(expectAt({ k: 4, speedup: 2 }, costs), null);
});

test("a prediction that misses says whether τ or the costs were others", () => {
  const miss = missOf({ predicted_tau: 3, predicted_cost: 1.5, unseen_tau: 2.4, unseen_cost: 1.5 });
  close(miss.error, 0.25);
  close(miss.tau, 0.25);
  close(miss.cost, 0);
});

test("every quoted figure has a day, an account that can be, and its method's name in both languages", () => {
  assert.ok(claims.length >= 14 && new Set(claims.map((claim) => claim.id)).size === claims.length);
  for (const language of ["en", "zh"]) {
    const { methods, notes } = JSON.parse(fs.readFileSync(`assets/text/${language}/theory.json`, "utf8")).atlas;
    for (const claim of claims) {
      const { speedups, taus, cost } = workOut(claim);
      assert.ok(claim.checked && (speedups || taus) && (!cost || cost >= 1) && methods[claim.method], claim.id);
    }
    for (const id of Object.keys(notes))
      assert.ok(
        claims.some((claim) => claim.id === id),
        id,
      );
  }
});

test("a machine computes longer than it reads only where Race calls a check dear", () => {
  const keys = [1.04, 1.25, 1.35, 1.36].map((v) => costKey(true, v));
  assert.deepEqual(keys, ["below", "near", "near", "slow"]);
  assert.equal(costKey(false, 2), "below"); // the sliders, not a run
});
