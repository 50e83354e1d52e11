// Token flow: pure functions of a cycle and a moment.
import test from "node:test";
import assert from "node:assert";
import { progressAt, chooseFitting, DRAFTED_SHARE, PASSED_SHARE } from "#page/race/flow.js";
import { eventsOf, player } from "./page.js";

const { foldEvents, speculativeOf } = player;

const run = foldEvents(eventsOf("toy"));
const cycle = speculativeOf(run).cycles[1];

test("a cycle's progress goes from its draft over its pass to its verdicts", () => {
  assert.equal(progressAt(cycle, cycle.drafting.start), 0);
  assert.ok(Math.abs(progressAt(cycle, cycle.drafting.end) - DRAFTED_SHARE) < 1e-9);
  assert.ok(progressAt(cycle, (cycle.check.start + cycle.check.end) / 2) < PASSED_SHARE);
  assert.equal(progressAt(cycle, cycle.endMs, 0), PASSED_SHARE);
  assert.equal(progressAt(cycle, cycle.endMs), 1);
});

test("where there is little room the first kept drafts go, and the decision stays", () => {
  const items = ["accepted", "accepted", "accepted", "rejected", "discarded"].map((state) => ({ state, width: 44 }));
  items.push({ state: "resampled", width: 44, isTarget: true });
  const states = (room) => chooseFitting(items, room).map(({ state }) => state);
  assert.equal(states(300).length, 6);
  assert.deepEqual(states(200), ["accepted", "rejected", "discarded", "resampled"].slice(0, 4));
  assert.deepEqual(states(100), ["rejected", "resampled"]);
});
