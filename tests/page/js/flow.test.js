// Token flow: pure functions of a cycle and a moment.
import test from "node:test";
import assert from "node:assert";
import { progressAt, chooseFitting, DRAFTED_SHARE, PASSED_SHARE } from "#page/race/flow.js";
import { eventsOf, player } from "./page.js";

const { foldEvents, speculativeOf } = player;

const run = foldEvents(eventsOf("toy"));
const cycle = speculativeOf(run).cycles[1];
const ENDS = ["before", "after"].map(() => ({ state: "…", width: 20 }));

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
  const states = (room) => chooseFitting(items, room, ...ENDS).map(({ state }) => state);
  assert.equal(states(250).length, 6, "the target's own token takes the place of the rejected one");
  assert.deepEqual(states(200), ["…", "accepted", "rejected", "discarded", "resampled"]);
  assert.deepEqual(states(110), ["…", "rejected", "…", "resampled"]);
});

test("a bonus token needs room of its own, and its end has no mark where nothing was dropped", () => {
  const items = ["accepted", "accepted"].map((state) => ({ state, width: 44 }));
  items.push({ state: "bonus", width: 44, isTarget: true });
  const states = (room) => chooseFitting(items, room, ...ENDS).map(({ state }) => state);
  assert.deepEqual(states(150), ["accepted", "accepted", "bonus"]);
  assert.deepEqual(states(149), ["…", "accepted", "bonus"]);
});
