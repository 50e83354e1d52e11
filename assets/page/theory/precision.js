// @ts-check
/* Quantise or draft? What the bench measured in 32, 16 and 8 bits, plain and with drafts, as multiples of plain decoding in 32. */

const { h, words, sentences, fixed } = require("../race/player.js");
const { times, plainTable } = require("./axes.js");

const OURS = "specdec",
  PLAIN = "plain",
  EXACT = "float32",
  LEAST = "int8";
const unique = (values) => [...new Set(values)];

/* Of every kind of text the plain lane, or the fastest that drafts; [] unless all were measured. */
function cellOf(report, engine, precision, temperature, drafted) {
  const rows = report.rows.filter(
    (row) =>
      row.engine === engine &&
      row.precision === precision &&
      row.temperature === temperature &&
      (row.method !== PLAIN) === drafted,
  );
  const domains = unique(report.rows.map((row) => row.domain)),
    best = domains.map(
      (domain) => rows.filter((row) => row.domain === domain).sort((x, y) => y.ratio - x.ratio)[0],
    );
  return best.every(Boolean) ? best : [];
}

/* Geometric: the ratio of two such means is the mean of the ratios, kind by kind. Of medians that does not hold. */
const meanOf = (cell) =>
  Math.exp(cell.reduce((sum, row) => sum + Math.log(row.ratio), 0) / cell.length);

function quantiseOrDraft(W, part, report) {
  const P = W.precision,
    temperatures = unique(report.rows.map((row) => row.temperature)),
    lanes = unique(report.rows.map((row) => row.precision)).flatMap((precision) =>
      unique(report.rows.map((row) => row.engine)).map((engine) => [engine, precision]),
    );
  part.precision.closest("section").hidden = !report.rows.length;
  if (!report.rows.length) return;
  const columns = temperatures.flatMap((t) => [
      [t, false],
      [t, true],
    ]),
    cells = lanes.map(([engine, precision]) =>
      columns.map(([t, drafted]) => cellOf(report, engine, precision, t, drafted)),
    );
  const most = columns.map((_, i) =>
    Math.max(...cells.map((row) => (row[i].length ? meanOf(row[i]) : 0))),
  );
  const heads = [
    P.lane,
    ...columns.map(([t, drafted]) =>
      words(drafted ? P.drafted : P.plain, { t: fixed(t, t ? 1 : 0) }),
    ),
    P.moved,
  ];
  const shown = (cell, top) =>
    h(
      "td",
      {},
      cell.length
        ? [
            h(meanOf(cell) === top ? "b" : "span", {}, times(meanOf(cell))),
            h("span", { class: "sd-th-each" }, cell.map((row) => fixed(row.ratio)).join(" · ")),
          ]
        : "–",
    );
  const moved = (engine, precision) =>
    engine !== OURS ? "–" : precision === EXACT ? "0" : fixed(report.law_moved[precision] ?? 0, 3);
  const rows = lanes.map(([engine, precision], i) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        P.bits[precision] || precision,
        h("span", { class: "sd-th-each" }, engine === OURS ? P.ours : engine),
      ),
      cells[i].map((cell, j) => shown(cell, most[j])),
      h("td", {}, moved(engine, precision)),
    ),
  );
  part.precision.replaceChildren(plainTable(heads, rows));
  part.precisionsay.textContent = sentences(temperatures.map((t) => said(W, report, t)));
  const { cpu, cores } = report.machine;
  const where = words(P.note, {
    cpu,
    cores,
    threads: report.threads,
    date: report.measured.slice(0, 10),
    commit: report.commit,
    tokens: report.tokens,
  });
  part.precisionnote.textContent = sentences(
    where,
    report.llama_cpp ? words(P.beside, { version: report.llama_cpp }) : P.alone,
  );
}

/* What drafting does to one kind of text, by the ratios of the same texts where the bench told them; else it is too close
 * to tell where the intervals of the two lanes overlap, which is the stricter rule. */
function changeOf(plain, drafted) {
  const paired = drafted.over_plain != null,
    [low, high] = paired ? drafted.over_plain_interval : drafted.ratio_interval,
    [least, most] = paired ? [1, 1] : plain.ratio_interval;
  return {
    change: (paired ? drafted.over_plain : drafted.ratio / plain.ratio) - 1,
    way: low > most ? "faster" : high < least ? "slower" : "close",
  };
}

/* Of this engine: what drafting adds to the fewest bits, on the same kinds of text. */
function said({ precision: P }, report, t) {
  const [plain, drafted] = [false, true].map((drafts) => cellOf(report, OURS, LEAST, t, drafts));
  if (!plain.length || !drafted.length) return "";
  const changes = plain.map((row, i) => changeOf(row, drafted[i])),
    count = (way) => changes.filter((one) => one.way === way).length,
    percent = (x) => (x < 0 ? "−" : "+") + Math.round(Math.abs(100 * x));
  const each = plain
    .map(({ domain }, i) =>
      words(P.change, { domain: P.kinds[domain] || domain, change: percent(changes[i].change) }),
    )
    .join(P.comma);
  return words(P.onto, {
    t: fixed(t, t ? 1 : 0),
    each,
    all: changes.length,
    faster: count("faster"),
    slower: count("slower"),
    close: count("close"),
  });
}

module.exports = { quantiseOrDraft, cellOf, meanOf, changeOf, said };
