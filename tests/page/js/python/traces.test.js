// The link to a run's settings. TRACE names a recorded run.
import test from "node:test";
import fs from "node:fs";
import assert from "node:assert";
import * as traces from "#page/traces/links.js";
import { player } from "../page.js";

const SETTINGS = JSON.parse(process.env.SETTINGS);
const RULES = { "rejection sampling": "rejection", "block verification": "block" };
const run = () =>
  player.foldEvents(
    fs
      .readFileSync(process.env.TRACE, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  );
const asked = (link) => Object.fromEntries(new URL(link).searchParams);

test("a link names what matters, and what is not as usual", () => {
  const plain = asked(traces.settingsLink(run(), "http://x/", RULES, SETTINGS));
  assert.deepEqual(Object.keys(plain), ["prompt", "drafter", "k", "temperature", "max_tokens", "seed"]);
  assert.equal(plain.prompt, run().header.prompt);
  const odd = run();
  odd.header.prompt = "a&b=c #1\n<é>";
  odd.header.models = { family: "smollm2" };
  odd.names = ["speculative", "transformers", "plain"];
  Object.assign(odd.lanes.speculative.started, { rule: "block verification" });
  Object.assign(odd.lanes.speculative.started.params, {
    stop: ["\n\n", "end"],
    top_k: 5,
    max_tokens: 64,
  });
  const full = asked(traces.settingsLink(odd, "http://x/", RULES, SETTINGS));
  assert.equal(full.prompt, "a&b=c #1\n<é>");
  assert.deepEqual(
    [full.target, full.rule, full.stop, full.top_k, full.peer, full.max_tokens],
    ["smollm2", "block", "\\n\\n\nend", "5", "1", undefined],
  );
});
