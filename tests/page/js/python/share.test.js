// A run in a link: what goes in comes out, whatever else comes is refused. RUNS is a folder of runs, OUT one for
// what came back.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import * as share from "#page/traces/share.js";

const runs = fs.readdirSync(process.env.RUNS, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
const read = (name) => fs.readFileSync(path.join(process.env.RUNS, name), "utf8");
const hashOf = async (text, kind = "deflate") =>
  "#run=" +
  Buffer.from(
    await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream(kind))).arrayBuffer(),
  ).toString("base64url");

test("every run of the page fits into a link and comes out with its texts and verdicts", async () => {
  assert.ok(runs.length > 3);
  for (const name of runs) {
    const fragment = await share.createFragment(read(name));
    assert.ok(
      fragment.startsWith("run=") && fragment.length <= share.MAX_FRAGMENT && /^[\w=-]+$/.test(fragment),
      `${name}: ${fragment.length}`,
    );
    const back = await share.readFragment("#" + fragment);
    assert.ok(share.isSame(read(name), back), name);
    fs.writeFileSync(path.join(process.env.OUT, name.replace(/[\\/]/g, ".")), back);
  }
});

test("a number that decides keeps its digits", () => {
  const position = { token: 1, piece: "a", status: "rejected", p: 0.30001, q: 1, u: 0.300015 };
  const log = [{ event: "header" }, { event: "verified", lane: "x", positions: [position], start: 0, end: 1 }]
    .map((one) => JSON.stringify(one))
    .join("\n");
  const [, verified] = share
      .unpackLog(share.packLog(log))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
    { p, q, u } = verified.positions[0];
  assert.equal(u * q < p, position.u * position.q < position.p);
});

test("a run that is too long has no link", async () => {
  const noise = Array.from({ length: 9000 }, (_, i) => String.fromCodePoint(0x4e00 + ((i * 7919) % 20000))).join("");
  assert.equal(await share.createFragment(JSON.stringify({ event: "header", prompt: noise }) + "\n"), "");
});

test("what a stranger puts there is bounded and refused", async () => {
  const bomb = await hashOf("[" + "0,".repeat(share.MAX_INFLATED_BYTES) + "0]");
  assert.ok(bomb.length < share.MAX_FRAGMENT, "else it would be refused for its length");
  const whole = "#" + (await share.createFragment(read(runs[0])));
  const wrong = [
    "",
    "#",
    "#run=",
    "#run=%%%",
    "#run=" + "A".repeat(share.MAX_FRAGMENT),
    "#other=1",
    bomb,
    whole.slice(0, -40),
    whole.slice(0, 60) + "AAAA" + whole.slice(64),
    await hashOf("{}"),
    await hashOf("[1"),
    await hashOf("[null]"),
    await hashOf('[["v","x"]]'),
    await hashOf("[]", "gzip"),
  ];
  for (const hash of wrong) await assert.rejects(share.readFragment(hash), hash.slice(0, 40));
});

test("a lane that ends again and again is refused: each end would hold its whole text", async () => {
  const ends = [1, 2].map(() => ({ event: "finished", lane: "s", at: 1, prefill: 0, draft: 0 }));
  const list = (count) => JSON.stringify([["c", "s", 1, 0, [1], ["x".repeat(1000)], 0, 0], ...ends.slice(0, count)]);
  assert.ok((await share.readFragment(await hashOf(list(1)))).includes("xxx"));
  await assert.rejects(hashOf(list(2)).then(share.readFragment), /ends twice/);
});
