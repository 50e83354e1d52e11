// What stands in the address: settings that differ from the usual ones, and the tab.
import test from "node:test";
import assert from "node:assert";
import { queryOf, searchOf, stored, isOther } from "#page/shared/keep.js";

const NAMES = ["prompt", "k", "peer"],
  USUAL = { prompt: "Once", k: 3, peer: false };

test("usual values are left out, other wishes stay", () => {
  assert.equal(searchOf(queryOf("?lang=zh&k=9", NAMES, ["Once", 3, false], USUAL)), "?lang=zh");
  assert.equal(
    searchOf(queryOf("?tab=step", NAMES, ["a & b", 4, true], USUAL)),
    "?tab=step&prompt=a+%26+b&k=4&peer=true",
  );
  assert.equal(searchOf(queryOf("?k=4", NAMES, ["Once", 3, false], USUAL)), "");
});

test("a prompt that is too long for the address is stored, wherever it stands among the settings", () => {
  const long = "x".repeat(5000),
    USUALLY = { k: 3, prompt: "Once", peer: false };
  for (const names of [
    ["prompt", "k", "peer"],
    ["k", "prompt", "peer"],
  ]) {
    const values = names.map((name) => ({ prompt: long, k: 4, peer: false })[name]);
    const [query, prompt] = stored("?lang=zh", names, values, USUALLY);
    assert.equal(searchOf(query), "?lang=zh&k=4");
    assert.equal(prompt, long);
  }
  const [query, prompt] = stored("", ["k", "prompt"], [4, "short"], USUALLY);
  assert.deepEqual([searchOf(query), prompt], ["?k=4&prompt=short", null]);
});

test("a run is of other settings where its prompt, drafter, depth or sampling differ", () => {
  const names = ["prompt", "drafter", "k", "temperature", "family"],
    values = ["Once", "draft_model", 5, 0.8, "embedded"];
  const made = (prompt, drafter, k, temperature, more = {}) => ({
    names: ["one"],
    header: { prompt },
    lanes: { one: { started: { drafter, k, params: { temperature }, ...more } } },
  });
  const is = (...told) => isOther(made(...told), names, values);
  assert.equal(is("Once", "draft_model", 5, 0.8), false);
  assert.equal(is("Twice", "draft_model", 5, 0.8), true);
  assert.equal(is("Once", "suffix", 5, 0.8), true);
  assert.equal(is("Once", "draft_model", 4, 0.8), true);
  assert.equal(is("Once", "draft_model", 5, 0), true);
  assert.equal(is("Once", "suffix", 4, 0, { server: "vllm" }), false, "a server decides the rest");
  const open = ["Once", "default", 0, 0.8, "embedded"];
  assert.equal(isOther(made("Once", "suffix", 4, 0.8), names, open), false, "the page chose");
});
