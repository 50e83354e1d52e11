// The engine in the browser chooses K from costs as Python does (tests/lanes/test_default.py), and measures them.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { chooseDepth, createCosts, ROWS, warmUp } from "#page/engine/costs.js";
import { checkRequest } from "#page/shared/runner.js";

const TABLE = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "costs.json"), "utf8"));

for (const { name, rates, times, k, speedup } of TABLE)
  test(`the depth is Python's: ${name}`, () => {
    const choice = chooseDepth(rates, createCosts(times));
    assert.equal(choice.k, k);
    if (speedup === null) assert.ok(choice.speedup <= 1);
    else assert.ok(Math.abs(choice.speedup - speedup) < 1e-9, String(choice.speedup));
  });

test("each kind of pass and a drafting step are measured while the code warms, without the first, slow ones", (told) => {
  let now = 0,
    slowness = 5;
  const tick = 0.125;
  told.mock.method(performance, "now", () => (now += tick));
  const target = {
      newCache: () => ({ keep() {}, release() {} }),
      forward(block, _, rows) {
        assert.equal(block.length, rows);
        now += (slowness = Math.max(1, slowness - 1)) * (10 + 4 * rows);
        return block.map(() => Float32Array.of(0, 1));
      },
    },
    propose = (tokens, k) => (now += k),
    params = { temperature: 0.8, top_k: 0, top_p: 1, seed: 0 };
  const times = warmUp(target, () => ({ propose }), ROWS, params);
  assert.deepEqual(times, { draft: 1 + tick, passes: { 1: 14 + tick, 2: 18 + tick, 3: 22 + tick, 5: 30 + tick } });
  assert.ok(now < 1000, "the warm-up takes no longer for it");
  const known = { draft: 0.5, passes: { 1: 13, 2: 19 } };
  assert.deepEqual(warmUp(target, () => ({ propose }), ROWS, params, known).passes, { ...times.passes, 1: 13 });
});

test("K 0 is left to the worker, with the drafter's acceptance; any other K stays", () => {
  const acceptance = { embedded: { draft_model: { agreement: [0.6] } } },
    offer = {
      acceptance,
      drafters: { embedded: { draft_model: "Draft model" } },
      numbers: { k: { low: 0, high: 8, step: 1, label: "K" } },
    },
    ask = (k, stop = "") =>
      checkRequest({}, { prompt: "Once", target: "embedded", drafter: "default", k, stop }, offer);
  assert.equal(ask("3").k, 3);
  assert.deepEqual(ask("3", "a\\n\\\\n\n\\d").params.stop, ["a\n\\n", "\\d"]);
  assert.deepEqual([ask("0").k, ask("0").acceptance], [0, acceptance.embedded.draft_model]);
});
