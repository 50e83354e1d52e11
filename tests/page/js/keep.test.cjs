// What stands in the address: settings that differ from the usual ones, and the tab.
const test = require("node:test");
const assert = require("node:assert");
const path = require("node:path");
const { queryOf, searchOf, withTab } = require(path.join(__dirname, "..", "..", "..", "assets", "page", "shared", "keep.js"));

const NAMES = ["prompt", "k", "peer"], USUAL = { prompt: "Once", k: 3, peer: false };

test("usual values are left out, other wishes stay", () => {
  assert.equal(searchOf(queryOf("?lang=zh&k=9", NAMES, ["Once", 3, false], USUAL)), "?lang=zh");
  assert.equal(searchOf(queryOf("?tab=step", NAMES, ["a & b", 4, true], USUAL)), "?tab=step&prompt=a+%26+b&k=4&peer=true");
  assert.equal(searchOf(queryOf("?k=4", NAMES, ["Once", 3, false], USUAL)), "");
});

test("an emptied prompt is a value of its own", () => {
  assert.equal(searchOf(queryOf("", NAMES, ["", 3, null], USUAL)), "?prompt=&peer=");
});

test("the first tab needs no word", () => {
  assert.equal(searchOf(withTab("?k=4", "theory", "race")), "?k=4&tab=theory");
  assert.equal(searchOf(withTab("?k=4&tab=theory", "race", "race")), "?k=4");
});
