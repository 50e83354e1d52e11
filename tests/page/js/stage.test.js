// What the stage says of a run on its way: ratios, whole words, the pace. `node --test tests/page/js`.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { soFar, saved, ENOUGH } from "#page/race/live.js";
import { whole } from "#page/race/spelling.js";
import { pace, livePace } from "#page/race/tempo.js";
import { why } from "#page/race/why.js";
import { harder } from "#page/race/hardest.js";
import { linesOf, tokensAt } from "#page/race/frames.js";
import { ASSETS, eventsOf, player } from "./page.js";

const { fold, figuresAt, horizon, read, newReader } = player;

const lines = eventsOf("toy");

/* A run of one token a pass and a draft of three, all kept; speculative cycles take `cycle` ms, plain passes 10. */
function made(cycle, cycles = 12, first = cycle) {
  const log = [{ event: "header", lanes: ["speculative", "plain"], source: "recorded" }];
  const commit = (lane, n, at, tokens) =>
    log.push({
      event: "committed",
      lane,
      cycle: n,
      tokens,
      pieces: tokens.map(() => " a"),
      at,
      accepted: 0,
    });
  commit("speculative", 0, 0, [1]);
  commit("plain", 0, 0, [1]);
  const end = (n) => (first + (n - 1) * cycle) / 1000;
  for (let n = 1; n <= cycles; n++) commit("speculative", n, end(n), [1, 1, 1, 1]);
  for (let n = 1; n <= 4 * cycles; n++) commit("plain", n, n / 100, [1]);
  for (const lane of ["speculative", "plain"])
    log.push({ event: "finished", lane, reason: "limit" });
  return fold(log);
}

test("a ratio waits until it means something; passes saved are told meanwhile", () => {
  const run = made(20);
  for (const { at } of run.lanes.speculative.cycles) {
    const F = figuresAt(run, at),
      ratio = soFar(run, F);
    assert.equal(ratio === null, F.a.written < ENOUGH);
    assert.equal(saved(F), 3 * F.a.k);
  }
  assert.ok(figuresAt(run, horizon(run)).a.written > ENOUGH);
});

test("no ratio below 1 on the way to a gain, and every one on the way to a loss", () => {
  const gain = made(20, 12, 200); // its first cycle takes as long as twenty tokens
  const told = gain.lanes.speculative.cycles.map(({ at }) => figuresAt(gain, at));
  assert.ok(told.some((F) => F.a.written >= ENOUGH && F.speedup < 1));
  assert.ok(told.every((F) => soFar(gain, F) === null || soFar(gain, F) >= 1));
  const loss = made(60),
    late = figuresAt(loss, horizon(loss));
  assert.ok(late.speedup < 1 && soFar(loss, late) === late.speedup);
});

test("half a token is told as its whole word, in scripts that part words by spaces", () => {
  assert.equal(whole(" c", ["the"], ["raw", "led", " up"]), " crawled");
  assert.equal(whole("led", [" the", " craw"], ["."]), " crawled");
  assert.equal(whole(" milk", [" drank"], [" and"]), " milk");
  assert.equal(whole("水", ["喝"], ["了"]), "水");
  assert.equal(whole("a", Array(40).fill("a"), []), "a");
});

test("a model that is slow enough to read plays in real time after its first cycles", () => {
  const slow = made(40); // 100 tokens a second
  assert.equal(pace(slow, horizon(slow)), 1);
  assert.ok(pace(slow, 0) >= 20, "the first cycle is told slowly");
  assert.equal(livePace(slow), 1);
  const fast = made(2);
  assert.ok(pace(fast, fast.lanes.speculative.cycles[8].at) > 1 && livePace(fast) > 1);
});

test("why it is faster is told with this run's own two numbers", () => {
  const W = { why: { known: "known", cheap: "{n} {check} {one}", dear: "{times}" } };
  assert.equal(why(W, fold(lines), 0), "3 4.00 ms 4.00 ms");
  assert.equal(why(W, made(20), 0), "known"); // nothing was timed
});

test("a frame's tokens are those of the text until then, each in its state", () => {
  const run = fold(lines),
    lane = run.lanes.speculative,
    all = tokensAt(lane, Infinity);
  assert.equal(
    all.map((token) => token.piece).join(""),
    [lane.first, ...lane.cycles].flatMap((cycle) => cycle.pieces).join(""),
  );
  const end = lane.cycles[1].at,
    then = tokensAt(lane, end);
  assert.equal(
    then.length,
    lane.first.pieces.length + lane.cycles[0].gained + lane.cycles[1].gained,
  );
  assert.deepEqual(
    then.slice(lane.first.pieces.length).map((token) => token.state),
    [0, 1].flatMap((i) => [
      ...lane.cycles[i].drafts.filter((draft) => draft.state === "acc").map(() => "acc"),
      lane.cycles[i].own.state,
    ]),
  );
  assert.ok(tokensAt(run.lanes.plain, end).every((token) => token.state === "pla"));
});

test("a frame breaks its lines before words and at breaks, and no word in two", () => {
  const tokens = ["One", " two", " thr", "ee", "\n\n", "    four", "x".repeat(30)].map((piece) => ({
    piece,
    state: "acc",
  }));
  const told = linesOf(tokens, (text) => text.length, 12).map((line) =>
    line.map((part) => part.shown).join(""),
  );
  assert.deepEqual(told, ["One two", "three", "    four", "x".repeat(30)]);
  const last = linesOf(
    [" twelve", " le", "tt", "ers"].map((piece) => ({ piece, state: "acc" })),
    (text) => text.length,
    12,
  );
  assert.deepEqual(
    last.map((line) => line.map((part) => part.shown).join("")),
    ["twelve", "letters"],
  );
  for (const line of linesOf(tokens, (text) => text.length, 12))
    line.slice(1).forEach((part, i) => assert.equal(part.x, line[i].x + line[i].width));
});

/* A recorded run of the page, as if the visitor had just made it. */
function live(name) {
  const file = path.join(ASSETS, "traces", name + ".jsonl"),
    reader = newReader();
  read(reader, fs.readFileSync(file, "utf-8"));
  return { ...reader.run, header: { ...reader.run.header, source: "live", prompt: name } };
}

test("the hardest prompt is that of the ended run whose judged guesses were kept least", () => {
  const [easy, hard] = [live("coding"), live("summarization")];
  const rate = (run) => figuresAt(run, Infinity).alpha;
  assert.ok(rate(hard) < rate(easy));
  for (const order of [
    [easy, hard],
    [hard, easy],
  ])
    assert.deepEqual(order.reduce(harder, null), { prompt: "summarization", alpha: rate(hard) });
  assert.equal(harder(null, { ...easy, header: { source: "recorded" } }), null, "nobody's prompt");
  assert.equal(harder(null, made(20)), null, "nothing was judged");
  const stopped = { ...hard, closed: true };
  stopped.lanes = { ...hard.lanes, plain: { ...hard.lanes.plain, finished: null } };
  assert.equal(harder(null, stopped), null, "stopped");
});
