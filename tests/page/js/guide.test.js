// The tour's panel never covers what it points at; its steps have their words.
import test from "node:test";
import assert from "node:assert";
import * as place from "#page/guide/place.js";
import * as stops from "#page/guide/stops.js";
import { PAGES } from "#page/guide/guide.js";
import { findHits } from "#page/guide/search.js";
import { json } from "./page.js";

const tour = { ...place, ...stops };
const words = json("text/en/guide.json");

const box = (left, top, width, height) => ({
  left,
  top,
  right: left + width,
  bottom: top + height,
});
const PANEL = { width: 348, height: 280 },
  WIDE = { width: 1280, height: 800 },
  PHONE = { width: 375, height: 740 };

test("the panel stands in a corner that leaves its target free, else along the bottom", () => {
  let corners = 0;
  for (let left = 0; left < 1200; left += 60)
    for (let top = 0; top < 760; top += 60)
      for (const size of [40, 300, 700]) {
        const target = box(left, top, size, size / 2),
          place = tour.choosePlace(target, PANEL, WIDE);
        if (place === "sheet") continue;
        assert.ok(tour.areApart(tour.cornerBox(place, PANEL, WIDE), target));
        corners++;
      }
  assert.ok(corners > 500);
  assert.equal(tour.choosePlace(box(0, 0, 1280, 800), PANEL, WIDE), "sheet");
  assert.equal(tour.choosePlace(box(10, 10, 40, 40), PANEL, PHONE), "sheet");
  const [play, meters] = [box(20, 700, 80, 740), box(900, 300, 1200, 500)];
  assert.notEqual(tour.choosePlace(play, PANEL, WIDE, "", meters), "right bottom");
});

test("every step has its words, and asks for something just where it knows when that is done", () => {
  assert.deepEqual(
    tour.STEPS.map((step) => step.id),
    Object.keys(words.tour.steps),
  );
  assert.ok(tour.STEPS.length >= 8 && tour.STEPS.length <= 12);
  for (const step of tour.STEPS) {
    const told = words.tour.steps[step.id];
    assert.ok(told.title && told.text && step.tab && step.at, step.id);
    for (const has of [Boolean(step.show), Boolean(told.task), Boolean(told.after)])
      assert.equal(has, Boolean(step.done), step.id);
  }
});

test("every section stands on one sub-page, and each sub-page has its name", () => {
  assert.deepEqual(PAGES.flat(), Object.keys(words.sections));
  assert.deepEqual(
    PAGES.map(([first]) => first),
    Object.keys(words.pages),
  );
});

test("search finds questions, answers, steps, terms and places that hold the query or all its words, whatever the case", () => {
  const ids = (typed, language = "en") => findHits(json(`text/${language}/guide.json`), typed).questions;
  assert.equal(findHits(words, "  "), null);
  assert.deepEqual(findHits(words, "no suchtext"), { questions: [], terms: [], places: [] });
  assert.deepEqual(ids("Beam Search"), ["beam"]); // a question
  assert.ok(ids(" ADAPTIVE mode ").includes("load")); // an answer
  assert.ok(ids("p99").includes("measure")); // a step
  assert.deepEqual(ids("GPU  memory"), ["memory"]); // two words that stand together
  assert.ok(ids("memory GPU").includes("memory")); // and apart
  assert.deepEqual(ids("键头数", "zh"), ["memory"]);
  const [term, meaning] = words.glossary[findHits(words, "residual").terms[0]];
  assert.ok((term + meaning).toLowerCase().includes("residual"));
  const places = [
    ["methods", "Draft model", "It learns from the target."],
    ["theory", "Methods", "A map."],
  ];
  assert.deepEqual(findHits(words, "learns model", places).places, [0]);
  assert.deepEqual(findHits(words, "methods", places).places, [1]); // the name of a place is not its text
});
