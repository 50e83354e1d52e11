// What Gradio's events run in the browser: the lines below the menus, and what waited in the browser tab.
import test from "node:test";
import assert from "node:assert";
import { restoreUpdates } from "#page/handlers/restore.js";
import * as choices from "#page/handlers/choices.js";

const NOTHING = { __type__: "update" },
  KEPT = JSON.stringify({ left: 1000, log: "lines" }),
  SHOWN = { ...NOTHING, value: "lines", ended: "kept" };

test("a run that was left a minute ago is shown again, an older one after a reload alone", () => {
  const after = (now, here, hash = "") => restoreUpdates(null, KEPT, { hash, cameBack: here, now });
  assert.deepEqual(after(60000, false), [NOTHING, SHOWN]);
  assert.deepEqual(after(61000, false), [NOTHING, NOTHING]);
  assert.deepEqual(after(61000, true), [NOTHING, SHOWN]);
  assert.deepEqual(after(1000, true, "#run=abc"), [NOTHING, NOTHING]); // the address brings another
});

test("the lines follow drafter, rule and target; an unknown target has lines of its own", () => {
  const follow = choices.handler({
    drafters: {
      ours: { exact: { copy: "a" }, lossy: { copy: "b" } },
      "": { exact: { copy: "c" } },
    },
    rules: { exact: "R", lossy: "" },
    peers: { copy: "P" },
    same: { rounded: "ours" },
    here: { ours: ["copy"] },
    moved: "M",
  });
  const told = (...chosen) =>
    follow(...chosen, "own")
      .slice(0, 3)
      .map(({ __type__, info }) => [__type__, info].join(" "));
  assert.deepEqual(told("copy", "exact", "ours"), ["update a", "update R", "update P"]);
  assert.deepEqual(told("copy", "lossy", "rounded"), ["update b", "update ", "update P"]);
  assert.deepEqual(told("copy", "exact", "somebody's"), ["update c", "update R", "update P"]);
  assert.deepEqual(told("other", "exact", "ours"), ["update ", "update R", "update "]);
  // a drafter that the browser lacks moves the run to the page's own engine, until it has one again
  const moved = (drafter, engine) => {
    const [{ info }, , , { value }] = follow(drafter, "exact", "ours", engine);
    return [info, value];
  };
  assert.deepEqual(moved("other", "browser"), ["M", "own"]);
  assert.deepEqual(moved("other", "own"), ["M", undefined]);
  assert.deepEqual(moved("copy", "own"), ["a", "browser"]);
  assert.deepEqual(moved("copy", "browser"), ["a", undefined]);
  assert.deepEqual(moved("other", "own"), ["", undefined]); // chosen by hand, it stays
});
