// The tour's panel never covers what it points at; its steps have their words.
import test from "node:test";
import assert from "node:assert";
import * as place from "#page/guide/place.js";
import * as stops from "#page/guide/stops.js";
import { PAGES } from "#page/guide/guide.js";
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
          place = tour.placeOf(target, PANEL, WIDE);
        if (place === "sheet") continue;
        assert.ok(tour.apart(tour.boxAt(place, PANEL, WIDE), target));
        corners++;
      }
  assert.ok(corners > 500);
  assert.equal(tour.placeOf(box(0, 0, 1280, 800), PANEL, WIDE), "sheet");
  assert.equal(tour.placeOf(box(10, 10, 40, 40), PANEL, PHONE), "sheet");
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

test("a drawn draft that is dropped for its own low q bends the text by what the answer says", () => {
  const [p, q, least] = [[0.5, 0.5], [0.9, 0.1], 0.5],
    kept = p.map((one, i) => (q[i] < least ? 0 : Math.min(one, q[i]))),
    dropped = q.reduce((sum, one) => sum + (one < least ? one : 0), 0),
    rest = p.map((one, i) => Math.max(0, one - q[i])),
    gap = rest.reduce((sum, one) => sum + one),
    lost = q.reduce((sum, one, i) => sum + (one < least ? 0 : one - kept[i]), 0),
    text = p.map((one, i) => kept[i] + (lost * rest[i]) / gap + dropped * one);
  const short = text.map((one) => one.toFixed(2).slice(1)).join(", ");
  assert.ok(words.answers.list.gate.say[1].includes(`(${short})`), short);
});

test("what a draft's cache takes is what its layers and key heads give", () => {
  const kib = (layers, heads, width) => (layers * heads * width * 2 * 2) / 1024,
    [small, large, layer] = [kib(28, 8, 128), kib(36, 8, 128), kib(1, 8, 128)], // Qwen3 0.6B, 8B
    [said] = words.answers.list.memory.say;
  for (const figure of [small, large, layer, Math.round((100 * small) / (small + large)) + " %"])
    assert.ok(said.includes(String(figure)), String(figure));
});
