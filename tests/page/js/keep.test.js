// What stands in the address: settings that differ from the usual ones, and the tab.
import test from "node:test";
import assert from "node:assert";
import { settingsQuery, formatQuery, splitQuery, hasOtherSettings } from "#page/shared/keep.js";

const NAMES = ["prompt", "k", "peer"],
  USUAL = { prompt: "Once", k: 3, peer: false };

test("usual values are left out, other wishes stay", () => {
  assert.equal(formatQuery(settingsQuery("?lang=zh&k=9", NAMES, ["Once", 3, false], USUAL)), "?lang=zh");
  assert.equal(
    formatQuery(settingsQuery("?tab=step", NAMES, ["a & b", 4, true], USUAL)),
    "?tab=step&prompt=a+%26+b&k=4&peer=true",
  );
  assert.equal(formatQuery(settingsQuery("?k=4", NAMES, ["Once", 3, false], USUAL)), "");
});

test("a prompt that is too long for the address is stored, wherever it stands among the settings", () => {
  const long = "x".repeat(5000),
    USUALLY = { k: 3, prompt: "Once", peer: false };
  for (const names of [
    ["prompt", "k", "peer"],
    ["k", "prompt", "peer"],
  ]) {
    const values = names.map((name) => ({ prompt: long, k: 4, peer: false })[name]);
    const [query, prompt] = splitQuery("?lang=zh", names, values, USUALLY);
    assert.equal(formatQuery(query), "?lang=zh&k=4");
    assert.equal(prompt, long);
  }
  const [query, prompt] = splitQuery("", ["k", "prompt"], [4, "short"], USUALLY);
  assert.deepEqual([formatQuery(query), prompt], ["?k=4&prompt=short", null]);
});

test("a run is of other settings where its prompt, drafter, depth or sampling differ", () => {
  const names = ["prompt", "drafter", "k", "temperature", "target"],
    values = ["Once", "draft_model", 5, 0.8, "embedded"];
  const made = (prompt, drafter, k, temperature, more = {}) => ({
    names: ["one"],
    header: { prompt },
    lanes: { one: { started: { drafter, k, params: { temperature }, ...more } } },
  });
  const is = (...told) => hasOtherSettings(made(...told), names, values);
  assert.equal(is("Once", "draft_model", 5, 0.8), false);
  assert.equal(is("Twice", "draft_model", 5, 0.8), true);
  assert.equal(is("Once", "suffix", 5, 0.8), true);
  assert.equal(is("Once", "draft_model", 4, 0.8), true);
  assert.equal(is("Once", "draft_model", 5, 0), true);
  assert.equal(is("Once", "suffix", 4, 0, { server: "vllm" }), false, "a server decides the rest");
  const ruled = [...names, "rule", "peer", "stop"],
    matched = (...chosen) =>
      hasOtherSettings(
        made("Once", "draft_model", 5, 0.8, { rule: "sample and match" }),
        ruled,
        [...values, ...chosen],
        { "sample and match": "match" },
      );
  assert.equal(matched("match", false, ""), false);
  assert.equal(matched("rejection", false, ""), true);
  assert.equal(matched("match", true, ""), true);
  assert.equal(matched("match", false, "."), true);
  const stopped = made("Once", "draft_model", 5, 0.8);
  stopped.lanes.one.started.params.stop = ["\n\\n", "."];
  assert.equal(
    hasOtherSettings(stopped, [...names, "stop"], [...values, "\\n\\\\n\n."]),
    false,
    "line breaks and backslashes",
  );
  const open = ["Once", "default", 0, 0.8, "embedded"];
  assert.equal(hasOtherSettings(made("Once", "suffix", 4, 0.8), names, open), false, "the page chose");
});
