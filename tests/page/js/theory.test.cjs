// The page's formulas against specdec/theory.py, and what it reads off a run against specdec/stats.py. CASES names both.
const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const player = require(
  path.join(__dirname, "..", "..", "..", "assets", "page", "race", "player.js"),
);
const folder = path.join(__dirname, "..", "..", "..", "assets", "page", "theory");
const theory = {
  ...require(path.join(folder, "formulas.js")),
  ...require(path.join(folder, "measured.js")),
};

const { formulas, runs, reports } = JSON.parse(fs.readFileSync(process.env.CASES, "utf8"));
const foldOf = (log) =>
  player.fold(
    log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  );

function close(got, want, what) {
  if (Array.isArray(want)) {
    assert.equal(got.length, want.length, what);
    return want.forEach((one, i) => close(got[i], one, what));
  }
  assert.ok(
    Math.abs(got - want) <= 1e-9 * Math.max(1, Math.abs(want)),
    `${what}: ${got}, not ${want}`,
  );
}

test("every formula gives what theory.py gives", () => {
  const seen = {};
  for (const { name, args, want } of formulas) {
    const given = args.map((arg) => (arg && arg.growing ? theory.growing(...arg.growing) : arg));
    close(theory[name](...given), want, `${name}(${JSON.stringify(args)})`);
    seen[name] = (seen[name] || 0) + 1;
  }
  assert.ok(
    Object.keys(seen).length >= 15 && Object.values(seen).every((n) => n >= 40),
    JSON.stringify(seen),
  );
});

test("a run's figures are those of stats.py, and its account closes alike", () => {
  for (const { log, want } of runs) {
    const got = theory.ofRun(foldOf(log));
    for (const [name, value] of Object.entries(want))
      if (name !== "c" || !got.tree) close(got[name], value, name);
  }
});

test("a run without drafts, or with nothing beside it, has no place on the curves", () => {
  const lines = runs[0].log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(
    theory.ofRun(
      player.fold(lines.filter((event) => event.event !== "drafted" && event.lane !== "plain")),
    ),
    null,
  );
  assert.equal(theory.ofRun(player.fold(lines.slice(0, 4))), null);
});

test("other runs foretell the same K from the rows as they stand, and nothing for a drafter that they do not know", () => {
  for (const row of reports[0].rows) {
    const found = theory.predicted(reports, { ...row, kind: row.domain, family: "embedded" });
    assert.equal(found.row.k, row.k);
    assert.ok(
      Math.abs(found.value / row.measured_speedup - 1) < 0.12,
      `${row.drafter} ${row.domain} ${row.temperature}: ${found.value} for ${row.measured_speedup}`,
    );
  }
  assert.equal(
    theory.predicted(reports, {
      drafter: "oracle",
      kind: "story",
      family: "embedded",
      k: 3,
      temperature: 0,
    }),
    null,
  );
  assert.equal(
    theory.predicted(reports, { ...reports[0].rows[0], kind: "story", family: "tuned" }),
    null,
  );
});

test("a law at a temperature, and how far two overlap", () => {
  close(theory.tempered([0.5, 0.3, 0.2], 1), [0.5, 0.3, 0.2], "T 1");
  assert.deepEqual(theory.tempered([0.3, 0.5, 0.2], 0), [0, 1, 0]);
  close(theory.tempered([0.8, 0.2], 2), [2 / 3, 1 / 3], "T 2");
  assert.equal(theory.overlap([1, 0], [0, 1]), 0);
  close(theory.overlap([0.5, 0.5], [0.75, 0.25]), 0.75, "overlap");
});

test("of every kind of text the fastest way to draft counts, and a cell that was not measured whole is empty", () => {
  const { cellOf, meanOf } = require(path.join(folder, "precision.js"));
  const row = (domain, method, ratio, precision = "int8") => ({
    engine: "specdec",
    precision,
    method,
    domain,
    temperature: 0,
    ratio,
  });
  const rows = [
    row("story", "plain", 2),
    row("code", "plain", 1.5),
    row("facts", "plain", 1.75),
    row("story", "block", 3),
    row("story", "draft_model", 2.5),
    row("code", "draft_model", 1),
    row("facts", "draft_model", 4),
  ];
  const drafted = cellOf({ rows }, "specdec", "int8", 0, true);
  assert.deepEqual(
    drafted.map(({ domain, method, ratio }) => [domain, method, ratio]),
    [
      ["story", "block", 3],
      ["code", "draft_model", 1],
      ["facts", "draft_model", 4],
    ],
  );
  close(
    meanOf(drafted),
    Math.cbrt(12),
    "geometric, so that the ratio of two means is the mean of the ratios",
  );
  for (const other of [
    ["specdec", "int8", 0.8],
    ["specdec", "float32", 0],
    ["llama.cpp", "int8", 0],
  ])
    assert.deepEqual(cellOf({ rows }, ...other, false), []);
  assert.deepEqual(
    cellOf({ rows: [...rows, row("poem", "plain", 1)] }, "specdec", "int8", 0, true),
    [],
  );
});

test("drafting on top of 8 bits is held against 8 bits alone on the same kind of text", () => {
  const { said } = require(path.join(folder, "precision.js"));
  const report = JSON.parse(
    fs.readFileSync(
      path.join(__dirname, "..", "..", "..", "assets", "results", "precision.json"),
      "utf8",
    ),
  );
  const W = JSON.parse(
    fs.readFileSync(
      path.join(__dirname, "..", "..", "..", "assets", "text", "en", "theory.json"),
      "utf8",
    ),
  );
  assert.equal(
    said(W, report, 0.8),
    "At T = 0.8, drafting on top of 8 bits changes the speed of stories by −26 %, code by −30 %, facts by +31 %: faster in 1 of 3 kinds of text, slower in 2, too close to tell in 0.",
  );
  assert.equal(
    said(W, report, 0),
    "At T = 0, drafting on top of 8 bits changes the speed of stories by +27 %, code by −5 %, facts by +62 %: faster in 2 of 3 kinds of text, slower in 0, too close to tell in 1.",
  );
});

test("where the bench told ratios text by text, these count", () => {
  const { changeOf } = require(path.join(folder, "precision.js"));
  const plain = { ratio: 2, ratio_interval: [1, 3] },
    drafted = { ratio: 3, ratio_interval: [1, 4] };
  assert.deepEqual(changeOf(plain, drafted), { change: 0.5, way: "close" });
  assert.deepEqual(
    changeOf(plain, { ...drafted, over_plain: 1.4, over_plain_interval: [1.1, 1.6] }),
    { change: 1.4 - 1, way: "faster" },
  );
  assert.deepEqual(
    changeOf(plain, { ...drafted, over_plain: 0.75, over_plain_interval: [0.7, 0.9] }),
    { change: -0.25, way: "slower" },
  );
});
