// What the stage says of a run on its way: ratios, whole words, the pace. `node --test tests/page/js`.
import test from "node:test";
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { speedupSoFar, countSavedPasses, MIN_TOKENS } from "#page/race/meters.js";
import { explainSpeed, noteOnScript } from "#page/race/why.js";
import { summarize } from "#page/race/verdict.js";
import { wordOf, targetWord } from "#page/race/spelling.js";
import { nameOf } from "#page/race/text.js";
import { setUp } from "#page/race/html.js";
import { formatDuration } from "#page/race/format.js";
import { player } from "./page.js";

const { foldEvents, figuresAt, replayEnd } = player;

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
  for (const lane of ["speculative", "plain"]) log.push({ event: "finished", lane, reason: "limit" });
  return foldEvents(log);
}

test("a ratio waits until it means something; passes saved are told meanwhile", () => {
  const run = made(20);
  for (const { endMs: at } of run.lanes.speculative.cycles) {
    const figures = figuresAt(run, at),
      ratio = speedupSoFar(run, figures);
    assert.equal(ratio === null, figures.speculative.written < MIN_TOKENS);
    assert.equal(countSavedPasses(figures), 3 * figures.speculative.passes);
  }
  assert.ok(figuresAt(run, replayEnd(run)).speculative.written > MIN_TOKENS);
});

test("a figure that is struck out is not explained", () => {
  const texts = { why: { known: "known", cheap: "cheap", dear: "dear" } },
    run = made(20);
  assert.equal(explainSpeed(texts, run, replayEnd(run)), "known");
  run.header.machine = { busy: true };
  assert.equal(explainSpeed(texts, run, replayEnd(run)), "");
  assert.equal(explainSpeed(texts, run, replayEnd(run) / 2), "known");
});

test("of a prompt in another script a note says how long it is, in characters and in bytes", () => {
  const run = made(20),
    texts = { meta: { english: "{n}, {bytes}" } };
  run.header.prompt = "写 sum";
  assert.equal(noteOnScript(texts, run), "5, 7");
  run.header.models = { family: "qwen" };
  assert.equal(noteOnScript(texts, run), "");
  Object.assign(run.header, { prompt: "Schreib sum, señor", models: undefined });
  assert.equal(noteOnScript(texts, run), "");
});

test("of drafts of one token the line does not speak of several", () => {
  const lane = "speculative",
    log = [{ event: "header", lanes: [lane, "plain"], source: "live", models: {} }],
    commit = (lane, cycle, at, tokens, accepted) =>
      log.push({
        event: "committed",
        lane,
        cycle,
        tokens,
        pieces: tokens.map(() => "a"),
        at,
        accepted,
      });
  for (const lane of ["speculative", "plain"]) commit(lane, 0, 0, [1], 0);
  log.push({ event: "drafted", lane, cycle: 1, tokens: [1], parents: [-1], start: 0, end: 0.001 });
  const positions = [{ node: 0, token: 1, piece: "a", status: "accepted" }];
  log.push({ event: "verified", lane, cycle: 1, positions, start: 0.001, end: 0.013 });
  commit(lane, 1, 0.013, [1, 1], 1);
  log.push({ event: "verified", lane: "plain", cycle: 1, positions: [], start: 0, end: 0.01 });
  commit("plain", 1, 0.01, [1], 0);
  const texts = { why: { cheap: "checking {n} guesses", cheap_one: "checking one guess", known: "known" } },
    run = foldEvents(log);
  assert.equal(explainSpeed(texts, run, 20), "known"); // it still runs, and its times may be disturbed
  run.closed = true;
  assert.equal(explainSpeed(texts, run, 20), "checking one guess");
});

test("no ratio below 1 on the way to a gain, and every one on the way to a loss", () => {
  const gain = made(20, 12, 200); // its first cycle takes as long as twenty tokens
  const told = gain.lanes.speculative.cycles.map(({ endMs: at }) => figuresAt(gain, at));
  assert.ok(told.some((figures) => figures.speculative.written >= MIN_TOKENS && figures.speedup < 1));
  assert.ok(told.every((figures) => speedupSoFar(gain, figures) === null || speedupSoFar(gain, figures) >= 1));
  const loss = made(60),
    late = figuresAt(loss, replayEnd(loss));
  assert.ok(late.speedup < 1 && speedupSoFar(loss, late) === late.speedup);
});

test("a part of a sentence that is left out leaves no word behind", () => {
  const node = { children: [], setAttribute() {}, append: (...children) => node.children.push(...children) };
  setUp(node, {}, ["arc", ["qual", false, null, undefined], 0]);
  assert.deepEqual(node.children, ["arc", "qual", 0]);
});

test("the bytes of a character are joined in the text, across tokens and cycles", () => {
  const log = [{ event: "header", lanes: ["speculative"], source: "recorded" }],
    commit = (cycle, ...pieces) =>
      log.push({
        ...{ event: "committed", lane: "speculative", cycle, at: cycle, accepted: 0 },
        ...{ tokens: pieces.map(() => 1), pieces },
      });
  commit(0, "<0xE7>");
  commit(1, "<0x9F>", "<0xAD>", "!");
  commit(2, "<0x20><0xE7>", " lost", "<0xC3>", "<0xA9>");
  const { prefill, cycles } = foldEvents(log).lanes.speculative;
  assert.deepEqual(prefill.texts, [""]);
  assert.deepEqual(cycles[0].texts, ["", "短", "!"]);
  assert.deepEqual(cycles[1].texts, ["", " lost", "", "é"]);
});

test("a draft of bytes is told as the character that it is a part of", () => {
  const lane = "speculative",
    base = { lane, cycle: 1, start: 1, end: 2 },
    position = (node, piece, status) => ({ node, token: 1, piece, status }),
    positions = [
      position(0, "<0x9F>", "rejected"),
      position(1, "<0xAD>", "discarded"),
      position(2, "<0xE7>", "discarded"),
    ];
  const run = foldEvents([
    { event: "header", lanes: [lane], source: "recorded" },
    { event: "committed", lane, cycle: 0, at: 0, accepted: 0, tokens: [1], pieces: ["<0xE7>"] },
    { event: "drafted", ...base, parents: [-1, 0, 1], tokens: [1, 1, 1] },
    { event: "verified", ...base, positions },
    { event: "committed", lane, cycle: 1, at: 2, accepted: 0, kind: "resampled", tokens: [1], pieces: ["<0x9C>"] },
    { event: "committed", lane, cycle: 2, at: 3, accepted: 0, tokens: [1], pieces: ["<0x9F>"] },
  ]);
  const [cycle] = run.lanes.speculative.cycles,
    texts = { byte: { of: "part of {character}", unknown: "part of a character" } };
  assert.deepEqual(
    cycle.drafts.map((draft) => nameOf(texts, draft)),
    ["part of 短", "part of 短", "part of a character"],
  );
  assert.equal(nameOf(texts, targetWord(run.lanes.speculative, cycle, 0)), "part of 真");
});

test("within a word only the token that was judged is told", () => {
  assert.deepEqual(wordOf({ piece: "wood" }, ["said", " Black"], "!"), {
    piece: "wood",
    head: " Black",
    goesOn: false,
  });
  assert.deepEqual(wordOf({ piece: "be" }, [" Black"], "ard"), { piece: "be", head: " Black", goesOn: true });
  assert.equal(wordOf({ piece: " sum" }, [" to"]).head, "");
  assert.equal(wordOf({ piece: "," }, [" to"]).head, "");
  assert.equal(wordOf({ piece: "en" }, [" " + "long".repeat(6)]).head, "");
});

test("the verdict is of passes and words, which no busy machine can spoil; the clock comes second", () => {
  const texts = JSON.parse(readFileSync(new URL("../../../assets/text/en/player.json", import.meta.url), "utf-8")),
    verdict = (run) => summarize(texts, run),
    gain = made(20);
  assert.equal(verdict(gain).headline, "12 passes instead of 48, same words");
  assert.deepEqual([verdict(gain).clock, verdict(gain).busy], ["2.0× faster on the clock", false]);
  gain.header.machine = { busy: true };
  assert.equal(verdict(gain).headline, "12 passes instead of 48, same words");
  assert.deepEqual([verdict(gain).clock, verdict(gain).busy], ["On the clock 2.0×, but the machine was busy", true]);
  const loss = made(60);
  assert.equal(verdict(loss).clock, "Slower on the clock: 0.67× the speed of plain");
  loss.header.machine = { busy: true };
  assert.deepEqual([verdict(made(60)).slower, verdict(loss).slower, verdict(gain).slower], [true, false, false]);
});

test("no time at all is 0 ms, and a very short one is not", () => {
  assert.deepEqual([0, 0.04, 5].map(formatDuration), ["0 ms", "0.040 ms", "5.00 ms"]);
});

test("the faster lane has the shorter bar, whatever lengths the lanes have", () => {
  const texts = JSON.parse(readFileSync(new URL("../../../assets/text/en/player.json", import.meta.url), "utf-8")),
    run = made(30, 24);
  run.lanes.plain.cycles.length = 60; // it ended sooner, so it took less time in all
  run.lanes.plain.endMs = 600;
  const [speculative, plain] = summarize(texts, run).rows;
  assert.ok(run.lanes.speculative.endMs > run.lanes.plain.endMs && speculative.share < plain.share);
  assert.ok(Math.abs(plain.share / speculative.share - figuresAt(run, Infinity).speedup) < 1e-9);
  assert.equal(speculative.label, "24 passes, 7.50 ms a token");
});

test("no more tokens are compared than are on the screen", () => {
  const run = made(20);
  assert.equal(player.findDivergence(run, run.lanes.speculative, 20).compared, 3);
  assert.equal(player.findDivergence(run).compared, 49);
});
