// The engine in the browser against Python's, on the built-in models: the same bits, the same runs.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { Model, loadLayers } from "#page/engine/model.js";
import { DraftModel, NoDrafter, PromptLookup } from "#page/engine/drafters.js";
import { generate } from "#page/engine/engine.js";
import { ASSETS } from "../page.js";
import { Tokenizer } from "#page/engine/text.js";

const { TARGET, DRAFT, TOKENIZER, RUNS, LOGITS, LAYERS = "" } = process.env;
const json = (file) => JSON.parse(fs.readFileSync(file, "utf8"));
const TIMES = ["start", "end", "at", "step_ends", "prefill", "draft", "verify", "other"];
const THREADS = 3; // where the module has several
const NEAR = 1e-4,
  EDGE = 1e-6;

const help = (told) =>
  new Promise((ready) => {
    const worker = new Worker(path.join(import.meta.dirname, "helper.js"), { workerData: told });
    worker.once("message", () => {
      worker.unref(); // it ends with this process
      ready(undefined);
    });
  });

async function loaded() {
  const binary = fs.readFileSync(path.join(ASSETS, "page", "engine", LAYERS)),
    layers = await loadLayers(binary, THREADS, help),
    model = (file) => new Model(layers, new Uint8Array(fs.readFileSync(file)).buffer);
  const tokenizer = new Tokenizer(json(TOKENIZER));
  return { target: model(TARGET), draft: DRAFT && model(DRAFT), tokenizer };
}

test("logits are Python's to the bit, in a batch of rows and one by one", async () => {
  const { target } = await loaded(),
    { tokens, rows } = json(LOGITS),
    cache = target.newCache(64),
    again = target.newCache(64);
  const together = target.forward(tokens, cache, tokens.length),
    apart = tokens.map((token) => target.forward([token], again)[0]);
  for (const [i, row] of rows.entries())
    for (const [token, value] of row.entries()) {
      assert.equal(together[i][token], value);
      assert.equal(apart[i][token], value);
    }
});

const near = (one, other, what) => assert.ok(Math.abs(one - other) < NEAR, `${what}: ${one}, ${other}`);

function nearly(mine, theirs, what) {
  const probs = new Map(mine.top.map(({ token, prob }) => [token, prob]));
  for (const { token, prob } of theirs.top) near(probs.get(token) || 0, prob, what);
}

test("the same seed gives the same run: tokens, verdicts, draws", async (told) => {
  const { target, draft, tokenizer } = await loaded(),
    { chat, ends = [0] } = target.head,
    around = chat && [chat.before, chat.after].map((text) => tokenizer.encode(text).length),
    counted = { runs: 0, trials: 0, "at an edge": 0 };
  const drafters = {
    draft_model: (capacity) => new DraftModel(draft, capacity),
    prompt_lookup: () => new PromptLookup(around),
    none: () => new NoDrafter(),
  };
  for (const { text, prompt, drafter, k, params, events } of json(RUNS)) {
    assert.deepEqual(tokenizer.prompt(text, chat, 0), prompt);
    const own = drafters[drafter](prompt.length + params.max_tokens + k),
      reading = { bytes: (one) => tokenizer.bytes(one), piece: (one) => tokenizer.piece(one) },
      task = {
        lane: "speculative",
        target,
        prompt,
        params,
        drafter: own,
        k,
        ends,
        ...reading,
      },
      mine = [...generate(task)];
    assert.deepEqual(
      mine.map(({ event }) => event),
      events.map(({ event }) => event),
    );
    for (const [i, { positions, distribution, bonus, p, ...theirs }] of events.entries()) {
      const said = JSON.stringify({ text, drafter, k, params, cycle: theirs.cycle });
      for (const [key, value] of Object.entries(theirs))
        if (!TIMES.includes(key)) assert.deepEqual(mine[i][key], value, `${key} of ${said}`);
      if (theirs.event !== "verified") continue;
      assert.equal(mine[i].positions.length, positions.length);
      for (const [n, one] of positions.entries()) {
        const other = mine[i].positions[n];
        for (const key of ["node", "token", "piece", "status", "u"])
          assert.equal(other[key], one[key], `${key} of ${said}`);
        for (const key of ["p", "q", "overlap"]) near(other[key], one[key], `${key} of ${said}`);
        nearly(other.target, one.target, said);
        nearly(other.draft, one.draft, said);
        counted.trials += one.u !== undefined;
        counted["at an edge"] += one.u !== undefined && Math.abs(one.u * one.q - one.p) < EDGE;
      }
      near(mine[i].p, p, said);
      // After a rejection it is a difference of two that may be nearly alike.
      if (positions.every(({ status }) => status === "accepted")) nearly(mine[i].distribution, distribution, said);
      if (bonus) nearly(mine[i].bonus, bonus, said);
    }
    own.release?.();
    counted.runs++;
  }
  told.diagnostic(JSON.stringify(counted));
});
