// @ts-check
/* Quantise or draft? What the bench measured in 32, 16 and 8 bits, plain and with drafts, as multiples of plain decoding in 32. */

const { h, words, sentences, fixed } = require("../race/player.js");
const { times, plainTable } = require("./axes.js");

const OURS = "specdec", PLAIN = "plain", EXACT = "float32", LEAST = "int8";
const unique = (values) => [...new Set(values)];
const median = (values) => { const sorted = [...values].sort((x, y) => x - y), half = sorted.length >> 1; return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2; };

/* Of every text the plain lane, or the fastest that drafts; [] unless all were measured. */
function cellOf(report, engine, precision, temperature, drafted) {
  const rows = report.rows.filter((row) => row.engine === engine && row.precision === precision && row.temperature === temperature && (row.method !== PLAIN) === drafted);
  const domains = unique(report.rows.map((row) => row.domain)), best = domains.map((domain) => rows.filter((row) => row.domain === domain).sort((x, y) => y.ratio - x.ratio)[0]);
  return best.every(Boolean) ? best : [];
}

const middleOf = (cell) => median(cell.map((row) => row.ratio));

function quantiseOrDraft(W, part, report) {
  const P = W.precision, temperatures = unique(report.rows.map((row) => row.temperature)), lanes = unique(report.rows.map((row) => row.precision)).flatMap((precision) => unique(report.rows.map((row) => row.engine)).map((engine) => [engine, precision]));
  part.precision.closest("section").hidden = !report.rows.length;
  if (!report.rows.length) return;
  const columns = temperatures.flatMap((t) => [[t, false], [t, true]]), cells = lanes.map(([engine, precision]) => columns.map(([t, drafted]) => cellOf(report, engine, precision, t, drafted)));
  const most = columns.map((_, i) => Math.max(...cells.map((row) => (row[i].length ? middleOf(row[i]) : 0))));
  const heads = [P.lane, ...columns.map(([t, drafted]) => words(drafted ? P.drafted : P.plain, { t: fixed(t, t ? 1 : 0) })), P.moved];
  const shown = (cell, top) => h("td", {}, cell.length ? [h(middleOf(cell) === top ? "b" : "span", {}, times(middleOf(cell))), h("span", { class: "sd-th-each" }, cell.map((row) => fixed(row.ratio)).join(" · "))] : "–");
  const moved = (engine, precision) => (engine !== OURS ? "–" : precision === EXACT ? "0" : fixed(report.law_moved[precision] ?? 0, 3));
  const rows = lanes.map(([engine, precision], i) => h("tr", {}, h("th", { scope: "row" }, P.bits[precision] || precision, h("span", { class: "sd-th-each" }, engine === OURS ? P.ours : engine)), cells[i].map((cell, j) => shown(cell, most[j])), h("td", {}, moved(engine, precision))));
  part.precision.replaceChildren(plainTable(heads, rows));
  part.precisionsay.textContent = sentences(temperatures.map((t) => said(P, report, t)));
  const { cpu, cores } = report.machine;
  const where = words(P.note, { cpu, cores, threads: report.threads, date: report.measured.slice(0, 10), commit: report.commit, tokens: report.tokens });
  part.precisionnote.textContent = sentences(where, report.llama_cpp ? words(P.beside, { version: report.llama_cpp }) : P.alone);
}

/* Of this engine: what each does alone, and both. */
function said(P, report, t) {
  const at = (precision, drafted) => cellOf(report, OURS, precision, t, drafted), [quantised, drafted, both] = [at(LEAST, false), at(EXACT, true), at(LEAST, true)];
  if (![quantised, drafted, both].every((cell) => cell.length)) return "";
  const told = { t: fixed(t, t ? 1 : 0), quantised: times(middleOf(quantised)), drafted: times(middleOf(drafted)), both: times(middleOf(both)) };
  return words(middleOf(both) > middleOf(quantised) ? P.pays : P.loses, told);
}

module.exports = { quantiseOrDraft, cellOf, middleOf };
