// What if: the page's verdicts against those of the engine's rules on the same drafts, rows and coins. CASES
// names them.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import * as judge from "#page/step/judge.js";
import * as own from "#page/step/token.js";
import * as distributions from "#page/step/distributions.js";
import { player } from "../page.js";

const step = { ...judge, ...own, ...distributions };

const STATE = { accepted: "accepted", rejected: "rejected", discarded: "discarded" };
const lines = (log) =>
  log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const cycleOf = (events) => player.foldEvents(events).lanes.speculative.cycles[0];
const CASES = JSON.parse(fs.readFileSync(process.env.CASES, "utf8")).map((one) => ({
  ...one,
  events: lines(one.log),
  cycle: cycleOf(lines(one.log)),
}));
const coinsOf = (one) => Object.fromEntries(one.coins.map((u, node) => [node, u]));

test("every rule, draft length and coin gives the engine's verdict", () => {
  const seen = {};
  let named = 0;
  for (const one of CASES)
    for (const want of one.wanted) {
      assert.equal(step.whatIsMissing(one.cycle, want.rule), null);
      const verdict = step.judge(one.cycle, { rule: want.rule, k: want.k, coins: coinsOf(one) }),
        own = step.targetTokenOf(one.cycle, verdict, step.recordedVerdict(one.cycle, one.rule));
      assert.deepEqual(verdict.path, want.path, want.rule);
      assert.deepEqual(
        step.statesOf(one.cycle, verdict).filter((state) => state !== "out"),
        want.states.map((state) => STATE[state]),
        want.rule,
      );
      assert.equal(own.state, want.kind === "bonus" ? "bonus" : "resampled");
      if (own.sample && want.token !== null) {
        assert.equal(own.sample.token, want.token, want.rule + " from " + one.rule);
        named++;
      }
      seen[want.rule] = (seen[want.rule] || 0) + 1;
    }
  assert.deepEqual(Object.keys(seen).sort(), [...step.RULES].sort());
  assert.ok(named > 300, String(named));
});

test("the recorded verdict, judged again with its own coins, is itself", () => {
  for (const { cycle, rule } of CASES) {
    const recorded = step.recordedVerdict(cycle, rule),
      again = step.judge(cycle, { rule });
    assert.deepEqual([again.path, again.order], [recorded.path, recorded.order], rule);
    for (const node of recorded.order) assert.equal(again.trials[node].accepted, recorded.trials[node].accepted);
    assert.deepEqual(
      step.statesOf(cycle, recorded),
      cycle.drafts.map((draft) => draft.state),
    );
    const own = step.targetTokenOf(cycle, again, recorded);
    assert.deepEqual([own.sample.token, own.state], [cycle.targetToken.token, cycle.targetToken.state]);
  }
});

test("what the target drew in a run of sample and match stays what it drew", () => {
  const { cycles } = player.foldEvents(lines(fs.readFileSync(process.env.MATCHED, "utf8"))).lanes.speculative,
    drafting = cycles.filter((cycle) => cycle.drafts.length);
  const other = drafting.filter((cycle) => {
    const recorded = step.recordedVerdict(cycle, step.SAMPLE_AND_MATCH),
      again = step.judge(cycle, { rule: step.SAMPLE_AND_MATCH }, step.SAMPLE_AND_MATCH);
    assert.deepEqual(
      [again.path, again.order, again.trials],
      [
        recorded.path,
        recorded.order,
        Object.fromEntries(
          Object.entries(again.trials).map(([node, trial]) => [node, { ...trial, ...recorded.trials[node] }]),
        ),
      ],
    );
    assert.equal(step.targetTokenOf(cycle, again, recorded)?.sample.token, cycle.targetToken?.token);
    return (
      String(step.judge(cycle, { rule: player.SHARED_NOISE }, step.SAMPLE_AND_MATCH).path) !== String(recorded.path)
    );
  });
  assert.ok(drafting.length > 10 && other.length > 0); // the noise of a place draws otherwise than the run did
});

test("another coin turns a verdict round at min(1, p/q), and nowhere else", () => {
  let turned = 0;
  for (const { cycle, rule } of CASES.filter((one) => one.rule === step.RULES[0])) {
    const node = step.recordedVerdict(cycle, rule).order[0],
      { p, q } = cycle.drafts[node],
      r = Math.min(1, p / q);
    const kept = (u) => step.judge(cycle, { rule, coins: { [node]: u } }).trials[node].accepted;
    assert.ok(kept(r * 0.999));
    if (r < 0.999) {
      assert.ok(!kept(r * 1.001));
      turned++;
    }
  }
  assert.ok(turned > 3);
});

/* The same trace without what was added later. */
function older(events) {
  const strip = (distribution) =>
    distribution && {
      top: distribution.top.slice(0, 2),
      rest: 1 - distribution.top.slice(0, 2).reduce((sum, one) => sum + one.prob, 0),
      entropy: distribution.entropy,
    };
  return events.map((event) =>
    event.event !== "verified"
      ? event
      : {
          ...event,
          bonus: undefined,
          positions: event.positions.map(({ block: _, ...one }) => ({
            ...one,
            target: strip(one.target),
            draft: strip(one.draft),
            residual: strip(one.residual),
          })),
        },
  );
}

test("an older trace is taken apart, and says which questions it cannot answer", () => {
  const chains = CASES.filter((one) => !one.cycle.tree && one.rule === step.RULES[0]);
  for (const one of chains) {
    const cycle = cycleOf(older(one.events)),
      recorded = step.recordedVerdict(cycle, one.rule);
    assert.deepEqual(recorded.path, step.recordedVerdict(one.cycle, one.rule).path);
    assert.deepEqual(
      step.RULES.map((rule) => step.whatIsMissing(cycle, rule)),
      [null, "sample", "sample", "block", null, null],
    );
    const open = step.judge(cycle, {
      rule: one.rule,
      coins: Object.fromEntries(cycle.drafts.map((_, node) => [node, 0])),
    });
    assert.deepEqual(
      [step.targetTokenOf(cycle, open, recorded).distribution, step.targetTokenOf(cycle, open, recorded).state],
      [recorded.path.length === cycle.drafts.length ? cycle.targetToken.distribution : null, "bonus"],
    );
    for (const draft of cycle.drafts) {
      const distributions = step.distributionsOf(draft);
      assert.ok(Math.abs(distributions.overlap - draft.overlap) < 1e-6);
      assert.ok(Math.abs(distributions.surplus - (1 - draft.overlap)) < 1e-5);
    }
  }
  assert.ok(chains.length > 5);
});

test("sub-steps: one for each judgement, one for all that nobody judged; a cycle without a draft has three", () => {
  const [one] = CASES.filter(
    ({ cycle, rule }) =>
      !cycle.tree && rule === step.RULES[0] && cycle.drafts.some((draft) => draft.state === "discarded"),
  );
  const verdict = step.recordedVerdict(one.cycle, one.rule),
    own = step.targetTokenOf(one.cycle, verdict, verdict);
  assert.deepEqual(step.stepsOf(one.cycle, verdict, step.statesOf(one.cycle, verdict), own), [
    "draft",
    "check",
    ...verdict.order,
    "late",
    "own",
    "commit",
  ]);
  assert.deepEqual(step.stepsOf({ drafts: [] }, { order: [] }, [], own), ["check", "own", "commit"]);
});
