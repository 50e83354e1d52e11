// What the stage says of a run on its way: ratios, whole words, the pace. `node --test tests/page/js`.
import test from "node:test";
import assert from "node:assert";
import { speedupSoFar, countSavedPasses, MIN_TOKENS } from "#page/race/meters.js";
import { explainSpeed, noteOnScript } from "#page/race/why.js";
import { summarize } from "#page/race/verdict.js";
import { describeSetup } from "#page/race/setup.js";
import { paceOf } from "#page/race/heading.js";
import { chooseLiveSlowdown } from "#page/race/slowdown.js";
import { createStory } from "#page/race/story.js";
import { isClear } from "#page/race/columns.js";
import { wordOf, targetWord } from "#page/race/spelling.js";
import { countOfTokens, nameOf } from "#page/race/text.js";
import { setUp } from "#page/race/html.js";
import { formatDuration } from "#page/race/format.js";
import { eventsOf, json, player } from "./page.js";

const { foldEvents, figuresAt, replayEnd } = player;
const TEXTS = json("text/en/player.json");

/* A run of one token a pass beside one of `gain`; speculative cycles take `cycle` ms, plain passes 10. */
function made(cycle, cycles = 12, first = cycle, gain = 4) {
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
  for (let n = 1; n <= cycles; n++) commit("speculative", n, end(n), Array(gain).fill(1));
  for (let n = 1; n <= gain * cycles; n++) commit("plain", n, n / 100, [1]);
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

test("a gain is told by passes and words, which no busy machine can spoil; the clock comes second", () => {
  const verdict = (run) => summarize(TEXTS, run),
    gain = made(20);
  assert.equal(verdict(gain).headline, "12 passes instead of 48, same words");
  assert.deepEqual([verdict(gain).clock, verdict(gain).busy], ["2.0× faster on the clock", false]);
  gain.header.machine = { busy: true };
  assert.equal(verdict(gain).headline, "12 passes instead of 48, same words");
  assert.deepEqual([verdict(gain).clock, verdict(gain).busy], ["On the clock 2.0×, but the machine was busy", true]);
});

test("a loss is told before the passes, on a busy machine too, and of a tie or no drafts nothing is", () => {
  const verdict = (run) => summarize(TEXTS, run),
    loss = made(60),
    told = ({ headline, clock, rows }) => [headline, clock, rows[0].fill];
  assert.deepEqual(told(verdict(loss)), ["1.5× slower: 12 passes instead of 48", "", "rejected"]);
  loss.header.machine = { busy: true };
  const note = "On the clock 0.67×, but the machine was busy";
  assert.deepEqual(told(verdict(loss)), ["1.5× slower: 12 passes instead of 48", note, "line-2"]);
  for (const cycle of [39, 40, 41]) {
    const clock = "On the clock as fast as plain decoding";
    assert.deepEqual(told(verdict(made(cycle))), ["12 passes instead of 48, same words", clock, "line-2"]);
  }
  assert.deepEqual(told(verdict(made(11, 12, 11, 1))), ["Nothing was drafted: the same 12 passes", "", "line-2"]);
  assert.equal(verdict(made(42.5)).headline, "1.06× slower: 12 passes instead of 48");
  assert.equal(verdict(made(37.5)).clock, "1.07× faster on the clock");
});

test("a run that was stopped says who was ahead, by tokens, unless a lane had ended", () => {
  for (const [cycle, place] of [
    [20, "ahead"],
    [40, "level"],
    [60, "behind"],
  ]) {
    const run = made(cycle),
      lanes = [run.lanes.speculative, run.lanes.plain],
      say = () =>
        createStory(TEXTS, { run, timeMs: replayEnd(run) }, ...[0, 1, 2].map(() => () => null)).momentSentence(
          figuresAt(run, Infinity),
          null,
        )[0];
    for (const lane of lanes) {
      lane.finished = null;
      lane.cycles = lane.cycles.filter(({ endMs }) => endMs <= 240);
      lane.endMs = lane.cycles.at(-1).endMs;
    }
    run.closed = true;
    const [n, m] = lanes.map(({ cycles }) => 1 + cycles.at(-1).totals.tokens),
      verdict = summarize(TEXTS, run);
    assert.deepEqual([verdict.headline, verdict.clock], [`Stopped ${place}, ${n} tokens to ${m}`, ""]);
    const time = n === m ? "240 ms" : `${formatDuration(240 / (m - 1))} a token`;
    assert.equal(verdict.rows[1].label, `${time}, ${lanes[1].cycles.length} passes`);
    assert.ok(Math.abs(verdict.rows[0].share / verdict.rows[1].share - (m - 1) / (n - 1)) < 1e-9);
    assert.equal(say(), `Speculation was ${place} when it stopped: ${n} tokens to plain’s ${m} in 240 ms.`);
    lanes[0].finished = { reason: "limit" };
    assert.match(say(), /^Stopped\. Speculation had/);
  }
});

test("the cost of a check over that of a token is v", () => {
  const run = foldEvents(eventsOf("toy")),
    [check, one] = explainSpeed({ why: { cheap: "{check} {one}", dear: "{check} {one}" } }, run, 0)
      .match(/[\d.]+(?= ms)/g)
      .map(Number);
  assert.ok(Math.abs(check / one - figuresAt(run, Infinity).v) < 0.02);
});

test("the cause of a loss is told from its own figures, busy machine or not", () => {
  const run = foldEvents(eventsOf("toy"));
  for (const cycle of run.lanes.plain.cycles) cycle.endMs /= 3;
  run.lanes.plain.endMs /= 3;
  run.header.machine = { busy: true };
  const view = { run, timeMs: replayEnd(run) },
    { momentSentence } = createStory(
      TEXTS,
      view,
      () => null,
      () => null,
      () => {},
    ),
    [told] = momentSentence(figuresAt(run, Infinity), null);
  assert.match(told, /a cycle cost .* plain passes \(.* to draft, .* to check, .* around\) and gave only/);
});

test("models and machine are named, and what a run does not tell is left out", () => {
  const run = made(20),
    texts = { ...TEXTS, names: { draft_model: "Draft model" } },
    models = { family: "smollm2", target: { parameters: 134515008 }, draft_model: { parameters: 5696320 } };
  run.lanes.speculative.started = { drafter: "draft_model", k: 4 };
  assert.equal(describeSetup(texts, run), "Draft model");
  Object.assign(run.header, { models, machine: { cores: 2 } });
  assert.equal(describeSetup(texts, run), "SmolLM2 (135 M) · Draft model (5.7 M) · 2 CPU cores");
  Object.assign(models, { family: "embedded:tuned", device: "cuda" });
  Object.assign(run.header.machine, { gpu: "NVIDIA H200" });
  assert.equal(describeSetup(texts, run), "target (135 M) · Draft model (5.7 M) · NVIDIA H200");
});

test("the pace of a live run is its own, and a replay at its end has none", () => {
  const run = made(20),
    view = { run, timeMs: 10, playing: true, slowdown: 1 },
    pace = (isFresh) => paceOf(TEXTS.meta, view, isFresh);
  assert.equal(pace(false), "at the speed it ran");
  view.timeMs = replayEnd(run);
  assert.equal(pace(false), "");
  for (const lane of Object.values(run.lanes)) lane.finished = null;
  assert.equal(pace(true), "");
  run.header.models = { target: { parameters: 134515008 } };
  assert.equal(pace(true), "a small model: watch the method, not the prose");
  run.closed = true;
  assert.equal(pace(true), "a small model: watch the method, not the prose");
});

test("a live run is not slowed down before its speed is known", () => {
  const run = made(20),
    slowdownAt = (endMs) => chooseLiveSlowdown({ ...run, lanes: { speculative: { ...run.lanes.speculative, endMs } } });
  assert.deepEqual([0, 1, 1e6].map(slowdownAt), [1, 100, 1]);
});

test("one token is a token", () => {
  assert.deepEqual(
    [1, 2].map((n) => countOfTokens(TEXTS, n)),
    ["1 token", "2 tokens"],
  );
});

test("no number of a cycle touches the word at the end of the axis", () => {
  const clear = (columnPx) => [58, 59].map((i) => isClear({ slots: 60, columnPx }, i));
  assert.deepEqual(
    [clear(7), clear(9), clear(15)],
    [
      [false, false],
      [true, false],
      [true, true],
    ],
  );
});

test("no time at all is 0 ms, and a very short one is not", () => {
  assert.deepEqual([0, 0.04, 5].map(formatDuration), ["0 ms", "0.040 ms", "5.00 ms"]);
});

test("the faster lane has the shorter bar, whatever lengths the lanes have", () => {
  const run = made(30, 24);
  run.lanes.plain.cycles.length = 60; // it ended sooner, so it took less time in all
  run.lanes.plain.endMs = 600;
  const [speculative, plain] = summarize(TEXTS, run).rows;
  assert.ok(run.lanes.speculative.endMs > run.lanes.plain.endMs && speculative.share < plain.share);
  assert.ok(Math.abs(plain.share / speculative.share - figuresAt(run, Infinity).speedup) < 1e-9);
  assert.equal(speculative.label, "7.50 ms a token, 24 passes");
});

test("no more tokens are compared than are on the screen", () => {
  const run = made(20);
  assert.equal(player.findDivergence(run, run.lanes.speculative, 20).compared, 3);
  assert.equal(player.findDivergence(run).compared, 49);
});
