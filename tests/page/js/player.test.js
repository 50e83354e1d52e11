// The pure half of the player: what a run adds up to.
import test from "node:test";
import assert from "node:assert";
import { eventsOf, player } from "./page.js";

const lines = eventsOf("toy");
const run = player.foldEvents(lines);
const { speculative } = run.lanes;

test("tokens behind a rejection are discarded, and nobody judged them", () => {
  const cycle = speculative.cycles[2];
  assert.deepEqual(
    cycle.drafts.map((draft) => draft.state),
    ["accepted", "rejected", "discarded"],
  );
  assert.equal(cycle.judged, 2);
});

test("figures at the end", () => {
  const figures = player.figuresAt(run, player.replayEnd(run));
  assert.equal(figures.speculative.accepted, 3 + 2 + 1 + 0 + 2);
  assert.equal(figures.speculative.judged, 3 + 3 + 2 + 1 + 3);
  assert.equal(figures.speculative.drafted, 15);
  assert.equal(figures.speculative.passes, 6);
  assert.ok(Math.abs(figures.tau - (8 + 6) / 6) < 1e-9);
  assert.ok(Math.abs(figures.c - 0.25) < 1e-6, "one draft costs a quarter of a pass");
  assert.ok(Math.abs(figures.v - 1) < 1e-6);
  assert.ok(Math.abs(figures.speedup - 14 / 39 / (14 / 56)) < 1e-6);
  assert.equal(figures.speculative.written, 15);
});

test("drafts that were lost while sampling are counted, and none of a greedy run or of the target's own draws", () => {
  const failed = { event: "failed", lane: "speculative", where: "drafter", cycle: 2, reason: "x", fatal: false },
    of = (temperature, event, rule = "rejection sampling") =>
      player.countLostDrafts(
        player.foldEvents([
          ...lines.map((line) =>
            line.event === "started" ? { ...line, rule, params: { ...line.params, temperature } } : line,
          ),
          event,
        ]),
      );
  assert.equal(of(0.8, failed), 1);
  assert.equal(of(0, failed), 0);
  assert.equal(of(0.8, failed, "sample and match"), 0);
  assert.equal(of(0.8, { ...failed, where: "engine" }), 0);
  assert.equal(of(0.8, { ...failed, lane: "plain" }), 0);
});

test("a growing log is read once, line by line, and a new first line begins a new run", () => {
  const reader = player.createReader(),
    log = lines.map((line) => JSON.stringify(line) + "\n").join(""),
    half = log.indexOf("\n", log.length / 2) + 7;
  player.readLog(reader, log.slice(0, half));
  const before = reader.run.lanes.speculative.cycles[0];
  player.readLog(reader, log);
  assert.equal(reader.run.lanes.speculative.cycles[0], before);
  assert.equal(reader.run.lanes.speculative.cycles.length, 6);
  assert.equal(player.readLog(reader, log.replace("toy-recorded", "other")), true);
  assert.equal(reader.run.header.run, "other");
});

test("a run that goes on shows no lane ahead of what the other has done", () => {
  const going = player.foldEvents(lines.filter((line) => line.event !== "finished").slice(0, -6));
  assert.equal(player.replayEnd(going), Math.min(going.lanes.speculative.endMs, going.lanes.plain.endMs));
  going.closed = true;
  assert.equal(player.replayEnd(going), Math.max(going.lanes.speculative.endMs, going.lanes.plain.endMs));
  assert.ok(player.wasStopped(going));
  assert.ok(!player.wasStopped(run));
});

/* The first cycle of the toy run, as another verdict and another commit would leave it. */
function firstCycle(statuses, committed) {
  const rest = {
    event: "committed",
    lane: "speculative",
    cycle: 1,
    kind: "bonus",
    text: "",
    total: 3,
    at: 0.02,
  };
  const mine = lines.filter(
    (line) =>
      line.event === "header" || (line.lane === "speculative" && (line.cycle || 0) <= 1 && line.event !== "finished"),
  );
  const judged = mine
    .slice(0, -1)
    .map((line) =>
      line.event === "verified" && line.cycle === 1
        ? { ...line, positions: line.positions.map((one, i) => ({ ...one, status: statuses[i] })) }
        : line,
    );
  const cut = player.foldEvents([...judged, { ...rest, ...committed }]),
    cycle = cut.lanes.speculative.cycles[0];
  return {
    cycle,
    states: cycle.drafts.map((draft) => draft.state),
    F: player.figuresAt(cut, cycle.endMs),
  };
}

test("what stands behind the end of the text counts neither as accepted nor as judged", () => {
  const ends = { tokens: [1, 2], pieces: ["a", "b"], accepted: 2 };
  for (const statuses of [
    ["accepted", "accepted", "accepted"],
    ["accepted", "accepted", "rejected"],
    ["accepted", "accepted", "discarded"],
  ]) {
    const { cycle, states, F: figures } = firstCycle(statuses, ends);
    assert.deepEqual(states, ["accepted", "accepted", "cut"]);
    assert.equal(cycle.targetToken, null);
    assert.deepEqual([cycle.accepted, cycle.judged], [2, 2]);
    assert.deepEqual([figures.alpha, figures.draftAcceptance], [1, 2 / 3]);
  }
});

test("in a tree levels count, and a path may lead through a second sibling", () => {
  const grown = player.foldEvents(eventsOf("tree"));
  const { cycles } = grown.lanes.speculative,
    figures = player.figuresAt(grown, player.replayEnd(grown));
  assert.deepEqual(
    cycles[0].drafts.map((draft) => draft.level),
    [1, 1, 2, 2, 2, 2, 3],
  );
  assert.deepEqual(
    cycles.map((cycle) => [cycle.tree, cycle.accepted, cycle.judged, cycle.targetToken.state]),
    [
      [true, 2, 2, "bonus"],
      [true, 1, 2, "resampled"],
      [true, 0, 1, "resampled"],
    ],
  );
  assert.deepEqual(
    [figures.speculative.accepted, figures.speculative.judged, figures.speculative.drafted, figures.speculative.trees],
    [3, 5, 21, 3],
  );
  assert.equal(player.findFirstRejection(grown), cycles[1]);
  assert.deepEqual(cycles.map(player.findTip), [5, 0, -1]);
  assert.ok(run.lanes.speculative.cycles.every((cycle) => !cycle.tree));
});

test("a text that ends inside a tree cuts the levels behind it, and parents that make no tree make a chain", () => {
  const grown = eventsOf("tree");
  const ended = grown.map((line) =>
    line.event === "committed" && line.cycle === 1 && line.lane === "speculative"
      ? { ...line, accepted: 1, tokens: [1], pieces: ["a"] }
      : line,
  );
  const cycle = player.foldEvents(ended).lanes.speculative.cycles[0];
  assert.deepEqual(
    cycle.drafts.map((draft) => draft.state),
    ["rejected", "accepted", "cut", "cut", "cut", "cut", "cut"],
  );
  assert.deepEqual([cycle.accepted, cycle.judged, cycle.targetToken], [1, 1, null]);
  const odd = grown.map((line) => (line.event === "drafted" ? { ...line, parents: [5, 1, "x", -7] } : line));
  assert.deepEqual(
    player.foldEvents(odd).lanes.speculative.cycles[0].drafts.map((draft) => draft.parent),
    [-1, 0, 1, 2, 3, 4, 5],
  );
});

test("one check costs what passes over a draft cost; a pass without one is no check", () => {
  const slow = lines.map((line) =>
    line.event === "verified" && line.cycle === 5 && line.lane === "speculative"
      ? { ...line, end: line.end + 1 }
      : line,
  );
  const figures = player.figuresAt(player.foldEvents(slow), player.replayEnd(run));
  assert.ok(Math.abs(figures.v - 1) < 1e-6);
  assert.ok(Math.abs(figures.passCost - (6 * 4 + 1000) / 6 / 4) < 1e-6);
});

test("a third lane has its own text and clock, and counts from its first commit on", () => {
  const raced = player.foldEvents(eventsOf("peer"));
  const peer = raced.lanes.transformers,
    figures = player.figuresAt(raced, player.replayEnd(raced));
  assert.deepEqual(
    peer.prefill.cycle.drafts.map((draft) => draft.state),
    ["accepted", "accepted"],
  );
  assert.deepEqual(
    [peer.prefill.cycle.number, peer.prefill.cycle.targetToken.state, peer.cycles.length],
    [0, "bonus", 3],
  );
  assert.deepEqual(
    [figures.peer.written, figures.peer.tokens, figures.peer.accepted, figures.peer.judged],
    [9, 6, 3, 5],
  );
  assert.ok(Math.abs(figures.peerSpeedup - 6 / 27 / (14 / 56)) < 1e-6);
  assert.ok(Math.abs(figures.inPlainPasses(figures.peer.checkMs, figures.peer.checks) - 2) < 1e-6);
  assert.equal(figures.speedup, player.figuresAt(run, player.replayEnd(run)).speedup, "the other lanes do not notice");
  assert.equal(player.figuresAt(run, 5).peer, null);
});

test("a third lane that goes on holds the others back, and one that failed does not", () => {
  const all = eventsOf("peer");
  const going = player.foldEvents(
    all
      .filter((line) => line.lane !== "transformers" || (line.cycle || 0) <= 1)
      .filter((line) => line.event !== "finished"),
  );
  assert.equal(player.replayEnd(going), going.lanes.transformers.endMs);
  const failed = [
    ...all.filter((line) => line.lane !== "transformers"),
    { event: "failed", lane: "transformers", reason: "x", fatal: true, cycle: 0 },
    { event: "finished", lane: "transformers", reason: "failed" },
  ];
  const over = player.foldEvents(failed),
    figures = player.figuresAt(over, player.replayEnd(over));
  assert.deepEqual([figures.peerSpeedup, figures.peer.written, player.wasStopped(over)], [null, 0, false]);
  assert.equal(player.replayEnd(over), player.replayEnd(run));
});

test("a server's run has no split of its time, and what it does not tell is null", () => {
  const served = player.foldEvents(eventsOf("served")),
    figures = player.figuresAt(served, player.replayEnd(served)),
    [first, second] = served.lanes.speculative.cycles;
  assert.ok(player.isServed(served) && figures.reported && player.countMethodOf(served.lanes.speculative) === "exact");
  assert.deepEqual([first.drafting, first.served, first.drafts[0].readyMs], [null, true, first.endMs]);
  assert.deepEqual(
    second.drafts.map((draft) => [draft.state, draft.token, draft.p]),
    [
      ["rejected", player.UNNAMED, undefined],
      ["discarded", player.UNNAMED, undefined],
    ],
  );
  assert.deepEqual(
    [figures.speculative.accepted, figures.speculative.judged, figures.speculative.drafted, figures.draftAcceptance],
    [5, 7, 8, 5 / 8],
  );
  assert.deepEqual([figures.c, figures.v, figures.draftCost, figures.passCost], [null, null, null, null]);
  assert.ok(Math.abs(figures.alpha - 5 / 7) < 1e-9 && Math.abs(figures.speedup - 9 / 4) < 1e-6);
  const gaps = player.gapsOf(served.lanes.speculative, Infinity);
  assert.ok(Math.abs(gaps.median - 4) < 1e-6 && Math.abs(gaps.longest - 4) < 1e-6);
  assert.equal(player.gapsOf(served.lanes.speculative, 0), null);
});

test("of sums alone there is no acceptance rate, and without a plain lane no speed-up", () => {
  const sums = player.foldEvents(eventsOf("sums")),
    figures = player.figuresAt(sums, player.replayEnd(sums));
  assert.deepEqual([player.plainOf(sums), player.lanesOf(sums).length], [null, 1]);
  assert.deepEqual(
    [figures.reported, figures.alpha, figures.draftAcceptance, figures.speedup, figures.plain.rate],
    [false, null, 5 / 8, null, 0],
  );
  assert.deepEqual(player.findDivergence(sums), { at: -1, compared: 0 });
  const going = player.foldEvents(eventsOf("served").filter((line) => line.event !== "finished"));
  assert.deepEqual(
    [player.figuresAt(going, Infinity).alpha, player.figuresAt(going, Infinity).reported],
    [null, false],
    "nothing is known before the server's own list",
  );
});

test("unknown events, lanes and half-known cycles do no harm", () => {
  const odd = [
    { event: "news" },
    { event: "news", lane: "speculative" },
    { event: "committed", lane: "third", tokens: [] },
  ];
  assert.doesNotThrow(() => player.foldEvents([lines[0], ...odd, ...lines.slice(1)]));
  assert.doesNotThrow(() => player.figuresAt(player.foldEvents(lines.slice(0, 2)), 0));
});

test("odd characters are visible, and numbers never lie at the edges", () => {
  assert.equal(player.makeVisible("\u202ea\n"), "⟨202E⟩a↵");
  assert.equal(player.formatChance(0.9999), ">0.99");
  assert.equal(player.formatChance(1), "1.00");
  assert.equal(player.formatChance(0.00001), "<0.0001");
  assert.equal(player.formatChance(0.0268), "0.027");
  assert.deepEqual(player.fillTemplate("a {x} b", { x: 1 }), ["a ", 1, " b"]);
});

test("a line break ends its line, and the indentation begins the next", () => {
  for (const [piece, ends] of [
    ["\n    ", ["\n", "    "]],
    [" :\n\n  x", [" :\n\n", "  x"]],
    ["\n", ["\n"]],
    ["    ", ["    "]],
    ["", [""]],
  ])
    assert.deepEqual(player.splitAtBreak(piece), ends);
});

test("in slow motion time stands still after each of the first cycles, while its verdicts move", async () => {
  const { createPlayback } = await import("#page/race/playback.js");
  let frame = /** @type {any} */ (null);
  globalThis.requestAnimationFrame = (callback) => ((frame = callback), 1);
  globalThis.cancelAnimationFrame = () => {};
  const view = {
      run,
      timeMs: 0,
      onScreen: true,
      autoSpeed: true,
      slowdown: 1,
      rejectionPause: "spent",
      playing: false,
    },
    playback = createPlayback(
      /** @type {any} */ (view),
      false,
      () => {},
      () => {},
    ),
    firstEnd = speculative.cycles[0].endMs;
  playback.play(true);
  let now = performance.now();
  const settled = [];
  for (let i = 0; i < 4000 && view.timeMs <= firstEnd; i++) {
    frame((now += 50));
    if (view.timeMs === firstEnd) settled.push(view.settleProgress);
  }
  const { settleMs, readMs } = (await import("#page/race/slowdown.js")).FIRST_CYCLES[0];
  assert.ok(settled[0] < 0.1 && settled.includes(1) && settled.some((share) => share > 0.3 && share < 0.7));
  assert.ok(Math.abs(settled.length * 50 - settleMs - readMs) < 200, `it stands for ${settled.length * 50} ms`);
});
