/* What the formulas say, with sliders; and how far a measured run bears them out.
 *
 * First the formulas, without a document: the same as in specdec/theory.py, under the same names, and a test holds the
 * two equal. Then what is read off a run. Then the drawing. The run and the makers of elements are the player's. */

const KIT = typeof module === "undefined" ? document.querySelector(".sd-player").kit : require("../race/player.js");

/* ---- the formulas: see theory.py for the equations and their papers ------------------------------------------- */

const expectedTokens = (alpha, k) => (alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha));

function expectedAccepted(alpha, k, kept = 0) {
  let further = 0;
  for (let j = k; j > kept; j--) further = alpha * (1 + further);
  return further;
}

const acceptedDistribution = (alpha, k) => Array.from({ length: k + 1 }, (_, n) => (n < k ? alpha ** n * (1 - alpha) : alpha ** k));
const throughput = (probability, n, draftSeconds, verifySeconds) => (expectedAccepted(probability, n) + 1) / (n * draftSeconds + verifySeconds);

function tokensByPosition(alphas, k) {
  let total = 1, survival = 1;
  alphas.slice(0, Math.ceil(k)).forEach((alpha, place) => {
    survival *= alpha;
    total += survival * Math.min(1, k - place);
  });
  return total;
}

const speedup = (alpha, k, c, v = 1, o = 0) => expectedTokens(alpha, k) / (k * c + v + o);

function accountedSpeedup(alphas, k, c, v, o, share = 1, step = 1, drafted = k) {
  return (share * tokensByPosition(alphas, k) + 1 - share) / (share * (drafted * c + v) + (1 - share) * step + o);
}

const growing = (v, at) => (k) => 1 + ((v - 1) * k) / at;

function bestK(alpha, c, v = 1, o = 0, largest = 32) {
  const cost = typeof v === "function" ? v : () => v, gain = (k) => speedup(alpha, k, c, cost(k), o);
  let best = 1;
  for (let k = 2; k <= largest; k++) if (gain(k) > gain(best)) best = k;
  return gain(best) > 1 ? best : 0;
}

const breakEven = (c, v = 1, o = 0) => Math.max(0, c + v + o - 1);

function wilson(accepted, judged, z = 1.96) {
  if (!judged) return [0, 1];
  const rate = accepted / judged, square = (z * z) / judged, middle = (rate + square / 2) / (1 + square);
  const reach = (z / (1 + square)) * Math.sqrt((rate * (1 - rate)) / judged + square / (4 * judged));
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}

const CACHE_BYTES = 2;
const machineOf = ({ tflops, gbps, mib }) => ({ flops: tflops * 1e12, bandwidth: gbps * 1e9, memory: mib * 2 ** 20 });
const modelOf = (one) => ({ experts: 1, chosen: 1, ...one, parameters: one.parameters * 1e9, active: (one.active ?? one.parameters) * 1e9, embedding: (one.embedding ?? 0) * 1e9 });

function weightsRead(model, rows) {
  const read = model.parameters - model.embedding;
  if (model.experts === model.chosen) return read;
  const share = model.chosen / model.experts, inExperts = (model.parameters - model.active) / (1 - share);
  return read - inExperts * (1 - share) ** rows;
}

const cacheBytes = (model, tokens) => 2 * model.layers * model.kv_heads * model.head_dim * CACHE_BYTES * tokens;

function readingSeconds(machine, model, bits, batch, rows, context) {
  return ((weightsRead(model, batch * rows) * bits) / 8 + cacheBytes(model, batch * context)) / machine.bandwidth;
}

function computingSeconds(machine, model, batch, rows, context) {
  return (batch * rows * (2 * (model.active - model.embedding) + 4 * model.layers * model.heads * model.head_dim * context)) / machine.flops;
}

function passSeconds(machine, model, bits, batch, rows, context) {
  return Math.max(readingSeconds(machine, model, bits, batch, rows, context), computingSeconds(machine, model, batch, rows, context));
}

function freeRows(machine, model, bits, batch, context) {
  let low = 0, high = 2 ** 24;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2, free = computingSeconds(machine, model, batch, middle, context) <= readingSeconds(machine, model, bits, batch, middle, context);
    [low, high] = free ? [middle, high] : [low, middle];
  }
  return low;
}

/* What a pair costs at a batch size, in plain steps. */
function batchCosts(machine, target, draft, bits, k, batch, context) {
  const plain = passSeconds(machine, target, bits, batch, 1, context);
  return { plain, c: passSeconds(machine, draft, bits, batch, 1, context) / plain, v: passSeconds(machine, target, bits, batch, k + 1, context) / plain };
}

function batchSpeedup(machine, target, draft, bits, alpha, k, batch, context) {
  const { c, v } = batchCosts(machine, target, draft, bits, k, batch, context);
  return speedup(alpha, k, c, v);
}

const crossings = (speedups) => speedups.flatMap((gain, i) => (i && gain < 1 !== speedups[i - 1] < 1 ? [i] : []));

function memoryBytes(target, draft, bits, batch, context) {
  return [...[target, draft].map((model) => (model.parameters * bits) / 8), ...[target, draft].map((model) => cacheBytes(model, batch * context))];
}

/* ---- what a run measured -------------------------------------------------------------------------------------- */

/* In the letters of the formulas; null if nothing was drafted or nothing stands beside it. Costs are in plain steps. */
function ofRun(run) {
  if (run.names.length < 2) return null;
  const F = KIT.figuresAt(run, KIT.horizon(run)), { a } = F, lane = KIT.speculative(run), cycles = lane.cycles.slice(0, a.k), drafting = cycles.filter((cycle) => cycle.draft);
  if (!a.judged || F.c == null || F.v == null || !F.speedup) return null;
  const { drafter = "", k: asked = 0, params } = lane.started || {}, count = (of) => (place) => cycles.filter((cycle) => of(cycle) > place).length;
  const places = Array.from({ length: Math.max(...cycles.map((cycle) => cycle.judged)) }, (_, place) => place);
  const judgedAt = places.map(count((cycle) => cycle.judged)), acceptedAt = places.map(count((cycle) => cycle.accepted));
  const alphas = acceptedAt.map((kept, place) => kept / judgedAt[place]), passing = acceptedAt.map((kept, place) => kept / ((place ? acceptedAt[place - 1] : drafting.length) || 1)), mean = a.drafted / drafting.length, share = drafting.length / a.k, tree = a.trees > 0;
  const o = F.perPass(Math.max(0, a.time - a.drafting - a.passing), a.k), step = F.perPass(a.passing - a.checking, a.k - a.checks) ?? 1;
  const k = tree ? asked : Math.max(1, Math.round(mean)), c = tree ? F.perPass(a.drafting, drafting.length * k) : F.c;
  return {
    drafter, k, c, v: F.v, o, share, tree, varied: !tree && Math.abs(mean - k) > 0.1, tau: F.tau, alpha: F.alpha, alphas, judgedAt, acceptedAt, judged: a.judged, accepted: a.accepted, measured: F.speedup,
    accounted: accountedSpeedup(passing, passing.length, F.c, F.v, o, share, step, mean), temperature: params ? params.temperature : 0, kind: run.header.kind || "",
    family: (run.header.models || {}).family, passMs: F.b.time / F.b.k, keptOf: drafting.filter((cycle) => cycle.own && deep(cycle) === k).map((cycle) => cycle.accepted), checks: checksOf(cycles, F.perPass),
  };
}

const deep = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

/* The mean cost of a pass by the rows in it. */
function checksOf(cycles, perPass) {
  const seen = new Map();
  for (const { check, drafts } of cycles) {
    if (!check) continue;
    const rows = drafts.length + 1, [n, ms] = seen.get(rows) || [0, 0];
    seen.set(rows, [n + 1, ms + check.end - check.start]);
  }
  return [...seen].map(([rows, [n, ms]]) => ({ rows, n, cost: perPass(ms, n) })).sort((x, y) => x.rows - y.rows);
}

/* What the bench's runs on the same kind of text foretell for this one; null if it has none with this drafter. */
function predicted(reports, here) {
  if (here.family !== "embedded") return null;
  const rows = reports.flatMap(({ rows, machine }) => rows.map((row) => ({ ...row, machine })));
  const fit = rows.filter((row) => row.drafter === here.drafter && row.domain === here.kind && row.alpha_by_position && row.alpha_by_position.length && row.draft_cost != null && row.verify_cost != null);
  const row = fit.sort((x, y) => Math.abs(x.temperature - here.temperature) - Math.abs(y.temperature - here.temperature) || Math.abs(x.k - here.k) - Math.abs(y.k - here.k))[0];
  if (!row) return null;
  const drafted = (row.tau - 1) / row.draft_acceptance_rate, adaptive = row.drafter.startsWith("adaptive"); // tokens per cycle
  if (adaptive) return { row, value: row.tau / (drafted * row.draft_cost + row.verify_cost + row.overhead) };
  const share = Math.min(1, drafted / row.k), alphas = Array.from({ length: here.k }, (_, i) => row.alpha_by_position[Math.min(i, row.alpha_by_position.length - 1)]);
  return { row, value: accountedSpeedup(alphas, here.k, row.draft_cost, growing(row.verify_cost, row.k)(here.k), row.overhead, share) };
}

/* ---- the drawing ---------------------------------------------------------------------------------------------- */

const LARGEST = 16, BENDS = [0.5, 0.6, 0.7, 0.8, 0.9]; // the deepest draft; the grey curves
const EXAMPLE = { alpha: 0.8, k: 4, c: 0.1, v: 1, o: 0 };

function mount(element, props) {
  const { h, s, text, line, rect, svg, words, sentences, fixed, clamp, niceStep, duration } = KIT;
  const W = props.words, { models, read } = props.hardware, machines = props.hardware.machines.map((one) => ({ ...one, name: W.machines[one.id] ?? one.name })), reports = props.results, player = document.querySelector(".sd-player");
  const root = element.querySelector(".sd-theory"), part = {};
  for (const node of root.querySelectorAll("[data-part]")) part[node.dataset.part] = node;
  const S = { ...EXAMPLE, grows: true, mine: false, touched: false, machine: "h100", target: "llama8", draft: "llama1", bits: 16, batch: 1, context: 512 };
  const SLIDERS = { alpha: 2, k: 0, c: 3, v: 2, o: 3 }; // and the digits that they show
  const CHARTS = ["curves", "measured", "kept", "positions", "checks", "roof", "batches"], room = {}; // their widths, read only when the page's changes
  let here = null;

  const cost = (k) => (S.grows ? growing(S.v, S.k)(k) : S.v);
  const gain = (k, alpha = S.alpha) => speedup(alpha, k, S.c, cost(k), S.o);
  const best = () => bestK(S.alpha, S.c, cost, S.o, LARGEST);
  const times = (x, digits = 2) => fixed(x, digits) + "×";
  const byId = (list, id) => list.find((one) => one.id === id);
  const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const path = (points, cls) => s("path", { d: "M" + points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L"), class: cls, fill: "none" });
  const dot = (x, y, r, cls) => s("circle", { cx: x, cy: y, r, class: cls });

  /* -- the run -- */

  function pull() {
    const run = player.run();
    here = run ? ofRun(run) : null;
    if (here && (S.mine || !S.touched)) return goHere();
    S.mine = S.mine && Boolean(here);
    draw();
  }

  function goHere() {
    const { alpha, k, c, v, o } = here;
    Object.assign(S, { alpha, c, v, o, k: clamp(k, 1, LARGEST), grows: S.mine ? S.grows : true, mine: true });
    draw();
  }

  function set(values) {
    Object.assign(S, values, { mine: false, touched: true });
    draw();
  }

  function slide(name, value) {
    set(name === "k" && S.grows ? { k: value, v: growing(S.v, S.k)(value) } : { [name]: value });
  }

  const announce = () => { part.announce.textContent = part.headline.textContent; };

  /* -- everything from the state -- */

  function measure() {
    for (const name of CHARTS) room[name] = part[name].clientWidth;
    pull();
  }

  function draw() {
    if (!room.curves) return;
    paintSliders();
    paintCurves();
    paintTable();
    paintMeasured();
    paintKept();
    paintPositions();
    paintChecks();
    paintWall();
    paintClaims();
  }

  function paintSliders() {
    for (const [name, digits] of Object.entries(SLIDERS)) {
      part[name].value = S[name];
      part[name + "value"].textContent = fixed(S[name], digits);
    }
    for (const node of part.growth.children) node.setAttribute("aria-pressed", String((node.dataset.growth === "grows") === S.grows));
    part.here.disabled = !here;
    part.here.setAttribute("aria-pressed", String(S.mine));
    part.units.textContent = sentences(W.units, !here && W.no_run);
    const now = gain(S.k), told = { times: times(now), tokens: fixed(expectedTokens(S.alpha, S.k)), passes: fixed(S.k * S.c + S.v + S.o) };
    part.headline.textContent = words(now >= 1 ? W.headline.faster : W.headline.slower, told);
  }

  /* -- the curves -- */

  function frame(name, height, label, { left = 34, right = 14, top = 14, bottom = 44 } = {}) {
    const width = room[name];
    return { width, height, left, right, top, wide: width - left - right, tall: height - top - bottom, floor: height - bottom, g: svg(width, height, label) };
  }

  /* Speed-ups upwards from 0, with what is slower than plain decoding shaded. */
  function speedAxis(A, most, aside) {
    const y = (value) => A.floor - (value / most) * A.tall, step = niceStep(most, 5);
    A.g.append(rect(A.left, y(1), A.wide, A.floor - y(1), { class: "sd-th-shade" }));
    for (let v = 0; v <= most + 1e-9; v += step) A.g.append(line(A.left, y(v), A.left + A.wide, y(v), "sd-grid"), text(A.left - 8, y(v) + 4, fixed(v, step < 1 ? 1 : 0) + "×", "", "end"));
    A.g.append(line(A.left, y(1), A.left + A.wide, y(1), "sd-th-one"));
    if (A.floor - y(1) > 26) A.g.append(text(aside ? A.left + A.wide - 10 : A.left + 10, A.floor - 9, W.slower, "", aside ? "end" : "start"));
    return y;
  }

  function paintCurves() {
    const roomy = room.curves > 560, A = frame("curves", roomy ? 420 : 372, W.curves.aria, { right: roomy ? 62 : 40 }), { g } = A, ks = range(1, LARGEST);
    const own = Math.max(...ks.map((k) => gain(k)), S.mine ? here.measured : 0), highest = Math.max(...ks.map((k) => gain(k, BENDS[BENDS.length - 1]))), y = speedAxis(A, Math.max(2, own * 1.1, Math.min(highest * 1.06, own * 2.2)), S.k < 9), x = (k) => A.left + ((k - 1) / (LARGEST - 1)) * A.wide;
    for (const k of ks) if (roomy || k % 2 || k === S.k) g.append(text(x(k), A.floor + 20, String(k), k === S.k ? "sd-b" : "", "middle"));
    g.append(text(A.left + A.wide / 2, A.height - 4, W.curves.axis, "", "middle"));
    const label = (alpha) => (roomy ? "α " : "") + fixed(alpha, alpha === S.alpha ? 2 : 1), taken = [y(gain(LARGEST))];
    for (const alpha of BENDS.filter((one) => Math.abs(one - S.alpha) > 0.035)) {
      const points = ks.map((k) => [x(k), y(gain(k, alpha))]).filter(([, at]) => at >= A.top), [, at] = points[points.length - 1];
      if (points.length < LARGEST) continue;
      g.append(path(points, "sd-th-bend"));
      const k = bestK(alpha, S.c, cost, S.o, LARGEST);
      if (k) g.append(dot(x(k), y(gain(k, alpha)), 3.5, "sd-dot-b"));
      if (taken.every((other) => Math.abs(other - at) > 13)) { taken.push(at); g.append(text(A.width - A.right + 8, at + 4, label(alpha))); }
    }
    g.append(path(ks.map((k) => [x(k), y(gain(k))]), "sd-line-a"), text(A.width - A.right + 8, taken[0] + 4, label(S.alpha), "sd-b"));
    paintPoints(A, x, y);
    part.curves.replaceChildren(g);
  }

  /* Past the best K the curve falls away to the right of the point, before it to the left: there is room for words. */
  function paintPoints({ g, floor, left, wide }, x, y) {
    const k = best(), now = gain(S.k), at = x(S.k), low = y(now), name = S.mine ? words(W.curves.here, { times: times(now) }) : times(now), rising = at > left + 130 && (S.k < k || at > left + wide - 130), side = rising ? -12 : 12;
    if (k) g.append(dot(x(k), y(gain(k)), 4.5, "sd-dot-b"));
    if (k && Math.abs(k - S.k) > 1) g.append(text(clamp(x(k), left + 40, left + wide - 36), y(gain(k)) - 12, words(W.curves.best, { k }), "sd-b", "middle"));
    g.append(line(at, low, at, floor, "sd-th-drop"), dot(at, low, 7, "sd-th-you"), text(at + side, low - 12, name, "sd-th-mine sd-b", rising ? "end" : "start"));
    if (!S.mine) return;
    const real = y(here.measured), below = Math.max(real, low) + 22, over = !rising && at > left + 96;
    g.append(s("path", { d: `M${at} ${real - 7}l7 7l-7 7l-7-7z`, class: "sd-th-real" }), text(at + (over ? -12 : 12), below, words(W.curves.measured, { times: times(here.measured) }), "sd-th-mine", over ? "end" : "start"));
  }

  /* -- which K -- */

  function paintTable() {
    const top = best(), ks = range(1, LARGEST).filter((k) => k <= 10 || k === S.k || k === top), most = Math.max(...ks.map((k) => gain(k)));
    const tags = (k) => [k === S.k ? (S.mine ? W.table.mine : W.table.set) : null, k === top ? W.table.best : null].filter(Boolean).join(", ");
    const row = (k) => h("tr", { class: k === top ? "sd-th-best" : null }, h("th", { scope: "row" }, String(k), tags(k) ? h("span", { class: "sd-th-tag" }, tags(k)) : null),
      h("td", {}, fixed(expectedTokens(S.alpha, k))), h("td", {}, fixed(k * S.c + cost(k) + S.o)), h("td", {}, times(gain(k))), barCell(gain(k) / most, k === top));
    part.table.replaceChildren(headRow(W.table.heads, h("td")), h("tbody", {}, ks.map(row)));
    part.tablesub.textContent = words(top ? W.table.sub : W.table.none, { k: top });
  }

  const headRow = (heads, ...more) => h("thead", {}, h("tr", {}, Object.values(heads).map((head) => h("th", { scope: "col" }, head)), more));
  const barCell = (share, strong) => h("td", { class: "sd-th-bar" }, h("i", { style: `width:${(clamp(share, 0, 1) * 100).toFixed(1)}%`, class: strong ? "sd-th-strong" : null }));

  /* -- predicted and measured -- */

  function paintMeasured() {
    const M = W.measured;
    if (!here) { part.measured.replaceChildren(); part.measuredsay.textContent = M.none; return; }
    const [low, high] = wilson(here.accepted, here.judged).map((alpha) => speedup(alpha, here.k, here.c, here.v, here.o));
    const formula = speedup(here.alpha, here.k, here.c, here.v, here.o), other = predicted(reports, here), costs = { c: fixed(here.c), v: fixed(here.v), o: fixed(here.o) };
    const bars = [
      [M.free, expectedTokens(here.alpha, here.k), words(M.free_note, { alpha: fixed(here.alpha), k: here.k }), "sd-th-pale"],
      [M.formula, formula, words(M.formula_note, costs), "sd-f-target", [low, high]],
      ...(other ? [[M.predicted, other.value, words(M.predicted_note, { k: other.row.k, t: fixed(other.row.temperature, 1) }), "sd-f-target"]] : []),
      [M.accounted, here.accounted, words(M.accounted_note, { tau: fixed(here.tau) }), "sd-f-target"],
      [M.measured, here.measured, M.measured_note, "sd-th-you"],
    ];
    part.measured.replaceChildren(measuredBars(bars));
    part.measuredsay.textContent = explain(formula, low, high, other);
  }

  function measuredBars(bars) {
    const high = 54, width = room.measured, g = svg(width, bars.length * high + 18, W.measured.aria), most = Math.max(...bars.map(([, value, , , reach]) => (reach ? reach[1] : value))), x = (v) => (v / most) * (width - 62);
    bars.forEach(([name, value, note, cls, reach], i) => {
      const y = i * high, low = y + 21;
      g.append(text(0, y + 14, name, i === bars.length - 1 ? "sd-b" : "sd-k"), rect(0, low, x(value), 17, { class: cls }), text(x(value) + 8, y + 34, times(value), "sd-b"));
      if (width > 420) g.append(text(width, y + 14, note, "", "end"));
      if (reach) g.append(line(x(reach[0]), low + 23, x(reach[1]), low + 23, "sd-th-whisker"), ...reach.map((v) => line(x(v), low + 19, x(v), low + 27, "sd-th-whisker")));
      g.append(line(x(1), low - 2, x(1), low + 19, "sd-th-plain"));
    });
    g.append(text(x(1), bars.length * high + 10, W.measured.plain, "", "middle"));
    return g;
  }

  /* What the formula leaves out, step by step down to the clock. */
  function explain(formula, low, high, other) {
    const M = W.measured, inside = here.measured >= low && here.measured <= high, gap = here.accounted - here.measured, told = { measured: times(here.measured), low: fixed(low), high: fixed(high), n: here.judged };
    const positions = here.accounted - formula, parts = [words(inside ? M.inside : M.outside, told)];
    parts.push(words(Math.abs(positions) < 0.02 ? M.even : here.share < 0.98 ? M.shorter : here.varied ? M.varied : M.uneven, { by: times(Math.abs(positions)), way: positions < 0 ? M.less : M.more, share: fixed(here.share * 100, 0) }));
    parts.push(words(Math.abs(gap) < 0.02 * here.measured ? M.closes : M.open, { by: times(Math.abs(gap)), way: gap > 0 ? M.slower_than : M.faster_than }));
    if (other) parts.push(words(M.machine, { cores: other.row.machine.cores, measured: times(other.row.measured_speedup) }));
    return sentences(parts);
  }

  /* -- how many drafts are kept -- */

  function paintKept() {
    const A = frame("kept", 210, W.kept.aria, { left: 30, bottom: 40, top: 20 }), { g } = A, chances = acceptedDistribution(S.alpha, S.k), seen = S.mine && here.keptOf.length ? chances.map((_, n) => here.keptOf.filter((kept) => kept === n).length / here.keptOf.length) : null;
    const most = Math.max(...chances, ...(seen || [])), step = A.wide / chances.length, x = (n) => A.left + (n + 0.5) * step, y = (v) => A.floor - (v / most) * A.tall, wide = Math.min(44, step * 0.68);
    g.append(line(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"));
    chances.forEach((chance, n) => {
      g.append(rect(x(n) - wide / 2, y(chance), wide, A.floor - y(chance), { class: n === S.k ? "sd-f-bon sd-o-bon" : "sd-f-acc sd-o-acc" }), text(x(n), A.floor + 17, String(n), n === S.k ? "sd-b" : "", "middle"));
      if (step > 30) g.append(text(x(n), y(Math.max(chance, seen ? seen[n] : 0)) - 7, fixed(chance), "", "middle"));
      if (seen) g.append(line(x(n) - wide / 2 - 2, y(seen[n]), x(n) + wide / 2 + 2, y(seen[n]), "sd-th-seen"));
    });
    g.append(text(A.left + A.wide / 2, A.height - 4, W.kept.axis, "", "middle"));
    part.kept.replaceChildren(g);
    part.keptsub.textContent = words(seen ? W.kept.sub_seen : W.kept.sub, { k: S.k, n: here ? here.keptOf.length : 0 });
    paintRecursion();
  }

  function paintRecursion() {
    const R = W.recursion, shown = range(Math.max(0, S.k - 3), S.k).reverse().map((j) => `E_${j} = ${fixed(expectedAccepted(S.alpha, S.k, j))}`), first = expectedAccepted(S.alpha, S.k), told = { n: S.k, p: fixed(S.alpha), first: fixed(first), tokens: fixed(first + 1) };
    const chain = shown.join("  →  ") + (S.k > 3 ? "  →  …  →  E_0 = " + fixed(first) : ""), ms = here ? here.passMs : null, unit = ms ? ms / 1000 : 1;
    const rate = throughput(S.alpha, S.k, S.c * unit, (S.v + S.o) * unit), speeds = { ...told, draft: ms ? duration(S.c * ms) : fixed(S.c, 3), verify: ms ? duration((S.v + S.o) * ms) : fixed(S.v + S.o), rate: ms ? words(R.per_second, { rate: fixed(rate, 0) }) : words(R.per_pass, { rate: fixed(rate) }) };
    part.recursion.replaceChildren(...[words(R.rule, told), chain, words(R.closed, told), words(R.tokens, told), words(R.throughput, speeds)].map((row) => h("p", {}, lowered(row))));
    const v = cost(1), need = breakEven(S.c, v, S.o), B = W.break_even, about = { c: fixed(S.c, 3), v: fixed(v), o: fixed(S.o, 3), need: fixed(need), alpha: fixed(S.alpha) };
    part.breakeven.textContent = sentences(words(need > 1 ? B.never : S.alpha > need ? B.pays : B.loses, about), words(B.free, about));
  }

  /* What stands behind an underscore is an index. */
  const lowered = (row) => row.split(/_(\d+|\w(?:\+1)?)/).map((piece, i) => (i % 2 ? h("sub", {}, piece) : piece));

  /* -- acceptance by position, and the cost of a check -- */

  function paintPositions() {
    part.positionssub.textContent = here ? (here.tree ? W.positions.sub_tree : W.positions.sub) : W.measured.none;
    if (!here) return part.positions.replaceChildren();
    const A = frame("positions", 190, W.positions.aria, { left: 30, bottom: 40, right: 66 }), { g } = A, n = here.alphas.length, step = A.wide / Math.max(n, 3), x = (i) => A.left + (i + 0.5) * step, y = (v) => A.floor - v * A.tall;
    for (const v of [0, 0.5, 1]) g.append(line(A.left, y(v), A.left + A.wide, y(v), v ? "sd-grid" : "sd-ax"), text(A.left - 8, y(v) + 4, v === 0.5 ? "0.5" : String(v), "", "end"));
    g.append(line(A.left, y(here.alpha), A.left + A.wide, y(here.alpha), "sd-dots"), text(A.left + A.wide + 6, y(here.alpha) + 4, "α " + fixed(here.alpha), "sd-b"));
    here.alphas.forEach((alpha, i) => {
      const [low, high] = wilson(here.acceptedAt[i], here.judgedAt[i]);
      g.append(line(x(i), y(low), x(i), y(high), "sd-th-whisker"), ...[low, high].map((v) => line(x(i) - 5, y(v), x(i) + 5, y(v), "sd-th-whisker")), dot(x(i), y(alpha), 4.5, "sd-dot-a"));
      if (step > 50) g.append(text(x(i) + 9, y(alpha) + 4, fixed(alpha), "sd-b"));
      g.append(text(x(i), A.floor + 17, step > 58 ? words(W.positions.tick, { i: i + 1, n: here.judgedAt[i] }) : String(i + 1), "", "middle"));
    });
    g.append(text(A.left + A.wide / 2, A.height - 4, W.positions.axis, "", "middle"));
    part.positions.replaceChildren(g);
  }

  /* Points of this run, and those that the bench recorded for drafts of fixed length. */
  function paintChecks() {
    const mine = here ? here.checks.filter((one) => one.n > 1 || here.checks.length === 1) : [], bench = benchChecks();
    if (!mine.length && !bench.length) { part.checkssub.textContent = W.checks.none; return part.checks.replaceChildren(); }
    const A = frame("checks", 200, W.checks.aria, { left: 38, bottom: 40, top: 20 }), { g } = A, all = [...mine, ...bench], last = Math.max(6, ...all.map((one) => one.rows)), most = Math.max(2, ...all.map((one) => one.cost)) * 1.08;
    const x = (rows) => A.left + ((rows - 1) / (last - 1)) * (A.wide - 20) + 6, y = (v) => A.floor - (v / most) * A.tall, step = niceStep(most, 4), every = niceStep(last, 8);
    for (let v = 0; v <= most; v += step) g.append(line(A.left, y(v), A.left + A.wide, y(v), "sd-grid"), text(A.left - 8, y(v) + 4, fixed(v, 1), "", "end"));
    for (const rows of range(1, last)) if (rows === 1 || rows % every === 0) g.append(text(x(rows), A.floor + 17, String(rows), "", "middle"));
    g.append(line(x(1), y(1), x(last), y(1), "sd-th-one"), text(x(last), y(1) - 6, W.checks.free, "", "end"));
    if (bench.length) g.append(path([[x(1), y(1)], ...bench.map((one) => [x(one.rows), y(one.cost)])], "sd-line-b"));
    for (const one of bench) g.append(dot(x(one.rows), y(one.cost), 4, "sd-dot-b"));
    for (const one of mine) g.append(s("path", { d: `M${x(one.rows)} ${y(one.cost) - 7}l7 7l-7 7l-7-7z`, class: "sd-th-you" }), text(x(one.rows) + 13, y(one.cost) + 11, fixed(one.cost), "sd-th-mine"));
    g.append(text(A.left + A.wide / 2, A.height - 4, W.checks.axis, "", "middle"));
    part.checks.replaceChildren(g);
    part.checkssub.textContent = sentences(here && W.checks.mine, bench.length && words(W.checks.bench, { cores: reports[0].machine.cores }));
  }

  /* The middle verify cost at each K of a fixed draft, from the first report. */
  function benchChecks() {
    const at = {};
    for (const row of reports.length ? reports[0].rows : []) if (row.drafter === "draft_model" && row.verify_cost != null) (at[row.k + 1] = at[row.k + 1] || []).push(row.verify_cost);
    return Object.entries(at).map(([rows, costs]) => ({ rows: +rows, cost: costs.sort((x, y) => x - y)[costs.length >> 1] }));
  }

  /* -- the memory wall -- */

  function wall() {
    const machine = machineOf(byId(machines, S.machine)), [target, draft] = [S.target, S.draft].map((id) => modelOf(byId(models, id)));
    return { machine, target, draft, free: freeRows(machine, target, S.bits, S.batch, S.context), ...batchCosts(machine, target, draft, S.bits, S.k, S.batch, S.context) };
  }

  function paintWall() {
    for (const name of ["machine", "target", "draft", "bits"]) part[name].value = S[name];
    part.batch.value = Math.log2(S.batch);
    part.context.value = Math.log2(S.context);
    part.batchvalue.textContent = String(S.batch);
    part.contextvalue.textContent = words(W.wall.tokens, { n: S.context.toLocaleString("en") });
    for (const [name, value] of [["batch", S.batch], ["context", S.context]]) part[name].setAttribute("aria-valuetext", String(value));
    const R = wall();
    paintRoof(R);
    paintBatches(R);
    paintMemory(R);
    paintWallWords(R);
  }

  const milliseconds = (seconds) => duration(seconds * 1000);
  const gigabytes = (bytes) => (bytes >= 1e13 ? fixed(bytes / 1e12, 1) + " TB" : fixed(bytes / 1e9, bytes >= 1e11 ? 0 : bytes >= 1e9 ? 1 : 2) + " GB");

  function paintWallWords({ machine, target, draft, plain, c, v, free }) {
    const B = W.wall, now = speedup(S.alpha, S.k, c, v), bytes = readingSeconds(machine, target, S.bits, S.batch, 1, S.context) * machine.bandwidth;
    const told = { time: milliseconds(plain), rate: fixed(S.batch / plain, S.batch / plain < 10 ? 1 : 0), bytes: gigabytes(bytes), rows: S.k + 1, v: fixed(v), c: fixed(c), times: times(now), free: fixed(free, free < 10 ? 1 : 0), alpha: fixed(S.alpha), k: S.k, share: fixed((weightsRead(target, S.batch * (S.k + 1)) / target.parameters) * 100, 0) };
    const bound = free < 1 ? B.bound : target.experts > 1 ? B.experts : v > 1.005 ? B.past : B.free;
    part.wallsay.textContent = sentences(words(B.plain, told), words(bound, told), words(now >= 1 ? B.pays : B.loses, told), draft.parameters >= target.parameters && B.backwards);
  }

  function paintRoof({ machine, target, plain, free }) {
    const A = frame("roof", 270, W.roof.aria, { left: 62, bottom: 40, top: 30 }), { g } = A, B = S.batch, last = Math.max(4096, B * 16), time = (rows) => passSeconds(machine, target, S.bits, B, rows / B, S.context);
    const span = Math.log2(last), x = (rows) => A.left + (Math.log2(rows) / span) * A.wide, high = Math.log(time(last) * 1.2), low = Math.log(plain / 2), y = (v) => A.floor - ((Math.log(v) - low) / (high - low)) * A.tall, ridge = free * B;
    if (ridge > B && target.experts === 1) g.append(rect(x(B), A.top, x(Math.min(ridge, last)) - x(B), A.tall, { class: "sd-th-shade" }));
    if (ridge > B && ridge < last) g.append(line(x(ridge), A.top, x(ridge), A.floor, "sd-dots"), text(clamp(x(ridge), A.left + 40, A.width - 40), A.top - 8, words(W.roof.ridge, { rows: fixed(ridge, ridge < 10 ? 1 : 0) }), "sd-b", "middle"));
    if (x(Math.min(ridge, last)) - x(B) > 120 && target.experts === 1) g.append(text(x(B) + 10, A.top + 18, W.roof.free));
    for (let rows = 1; rows <= last; rows *= 4) g.append(text(x(rows), A.floor + 18, String(rows), "", "middle"), line(x(rows), A.floor, x(rows), A.floor + 4, "sd-ax"));
    g.append(line(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"), text(A.left + A.wide / 2, A.height - 4, W.roof.axis, "", "middle"));
    const points = range(0, 120).map((i) => B * (last / B) ** (i / 120));
    g.append(path(points.map((rows) => [x(rows), y(time(rows))]), "sd-line-a"), text(A.left - 9, y(plain) + 4, milliseconds(plain), "sd-k", "end"));
    if (y(plain) - y(time(last)) > 18) g.append(text(A.left - 9, y(time(last)) + 4, milliseconds(time(last)), "sd-k", "end"));
    const check = B * (S.k + 1), right = x(check) > A.left + A.wide - 150;
    g.append(dot(x(B), y(plain), 5, "sd-dot-b"), dot(x(check), y(time(check)), 6.5, "sd-th-you"), text(x(B) + 2, y(plain) + 22, words(W.roof.plain, { rows: B }), "sd-k", x(B) > A.left + A.wide - 90 ? "end" : "start"));
    const steep = check > ridge, aside = right ? -12 : steep ? 12 : 0; // right of a rising line there is room below it
    g.append(text(x(check) + aside, y(time(check)) + (steep && !right ? 16 : -13), words(W.roof.check, { rows: check, times: fixed(time(check) / plain) }), "sd-th-mine sd-b", right ? "end" : "start"));
    part.roof.replaceChildren(g);
  }

  function paintBatches({ machine, target, draft }) {
    const A = frame("batches", 270, W.batches.aria, { bottom: 40 }), { g } = A, at = (batch) => batchSpeedup(machine, target, draft, S.bits, S.alpha, S.k, batch, S.context), batches = range(0, 72).map((i) => 2 ** (i / 8));
    const y = speedAxis(A, Math.max(2.2, ...batches.map(at)) * 1.12), x = (batch) => A.left + (Math.log2(batch) / 9) * A.wide, now = at(S.batch), gains = batches.map(at), right = S.batch > 64;
    for (const batch of [1, 4, 16, 64, 256]) g.append(text(x(batch), A.floor + 18, String(batch), "", "middle"));
    g.append(text(A.left + A.wide / 2, A.height - 4, W.batches.axis, "", "middle"), path(batches.map((batch) => [x(batch), y(at(batch))]), "sd-line-a"));
    for (const i of crossings(gains)) { // below the line and beside the turn: the curve is on the other side
      const turn = x(batches[i]), loses = gains[i] < 1, left = loses ? turn > A.left + 200 : turn > A.left + A.wide - 150;
      g.append(line(turn, y(1), turn, A.floor, "sd-dots"), text(turn + (left ? -6 : 6), y(1) + 18, words(loses ? W.batches.loses : W.batches.wins, { n: Math.ceil(batches[i]) }), "sd-b", left ? "end" : "start"));
    }
    g.append(dot(x(S.batch), y(now), 6.5, "sd-th-you"), text(x(S.batch) + (right ? -12 : 12), y(now) - 10, times(now), "sd-th-mine sd-b", right ? "end" : "start"));
    part.batches.replaceChildren(g);
  }

  function paintMemory({ machine, target, draft }) {
    const M = W.memory, parts = memoryBytes(target, draft, S.bits, S.batch, S.context), total = parts.reduce((sum, one) => sum + one, 0), most = Math.max(total, machine.memory), row = (name, bytes, strong) => h("tr", { class: strong ? "sd-th-best" : null }, h("th", { scope: "row" }, name), h("td", {}, gigabytes(bytes)), barCell(bytes / most, strong));
    const need = Math.ceil(total / machine.memory);
    part.memory.replaceChildren(h("caption", {}, words(need > 1 ? M.too_much : M.fits, { n: need, machine: byId(machines, S.machine).name })), h("tbody", {}, Object.values(M.parts).map((name, i) => row(name, parts[i])), row(M.total, total, true), row(M.room, machine.memory)));
  }

  /* -- what the sources say -- */

  const rowsWith = (drafter) => reports.flatMap(({ rows }) => rows).filter((row) => row.drafter === drafter && row.alpha != null);
  function spread(values, digits = 2) {
    if (!values.length) return W.claims.unmeasured;
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => fixed(value, digits));
    return low === high ? low : words(W.claims.to, { low, high });
  }
  const plainTable = (heads, rows) => h("table", { class: "sd-th-table" }, headRow(heads), h("tbody", {}, rows));
  const alphasOf = (drafter) => spread(rowsWith(drafter).map((row) => row.alpha));

  /* Figures for the answers, all computed; and what a claim's button sets. */
  const ANSWERS = {
    three: () => ({ set: { alpha: 1, k: 2, c: 0, v: 1.25, o: 0 }, best: times(speedup(1, 2, 0, 1.25)), usual: times(speedup(0.8, 2, 0, 1.25)) }),
    bytes: () => {
      const model = modelOf(byId(models, "llama70")), machine = machineOf(byId(machines, "h200"));
      return { wall: { target: "llama70", draft: "llama8", machine: "h200", bits: 16, batch: 1, context: 256 }, bytes: gigabytes(model.parameters * 2), read: gigabytes(weightsRead(model, 1) * 2), left: gigabytes(machine.memory - model.parameters * 2), time: milliseconds(readingSeconds(machine, model, 16, 1, 1, 0)) };
    },
    example: () => ({ set: EXAMPLE, each: times(speedup(0.8, 4, 0.1)), all: times(speedup(0.8, 4, 0.1 / 4)) }),
    epsilon: () => ({ k: S.k, rows: S.k + 1, epsilon: fixed(S.k * S.c + S.v + S.o - 1), draft: fixed(S.k * S.c), check: fixed(S.v + S.o - 1) }),
    warfarin: () => ({ set: EXAMPLE, passes: fixed(4 * 0.1 + 1), times: times(4 / (4 * 0.1 + 1)), theirs: times(3 / 1.25) }),
    length: () => ({ best: best() || W.claims.nothing, ours: spread(rowsWith("draft_model").map((row) => row.k), 0) }),
    rates: () => ({ ours: alphasOf("draft_model"), lookup: alphasOf("prompt_lookup") }),
    pairs: () => ({}),
  };

  function paintClaims() {
    for (const [name, answer] of Object.entries(ANSWERS)) part.claims.answers[name].textContent = words(W.claims.list[name].answer, answer());
  }

  function buildClaims() {
    part.claims.answers = {};
    for (const [name, claim] of Object.entries(W.claims.list)) {
      const { set: values, wall: choice } = ANSWERS[name](), button = values || choice ? h("button", { type: "button", class: "sd-btn" }, values ? W.claims.set : W.claims.set_wall) : null;
      if (button) button.onclick = () => { values ? set({ grows: false, ...values }) : choose(choice); (values ? part.headline : part.walltitle).scrollIntoView({ block: "center" }); announce(); };
      part.claims.append(h("article", {}, h("div", {}, h("h3", {}, claim.claim), h("p", { class: "sd-sub" }, claim.source)), h("div", {}, (part.claims.answers[name] = h("p", {})), pairsOf(claim), button)));
    }
  }

  /* Rows named after a drafter stand beside what was measured with it. */
  function pairsOf({ table }) {
    const rows = table && Object.entries(table.rows).map(([name, { pair, claimed }]) => [pair, claimed, alphasOf(name)]);
    return table ? plainTable(table.heads, rows.map(([pair, ...cells]) => h("tr", {}, h("th", { scope: "row" }, pair), cells.map((cell) => h("td", {}, cell))))) : null;
  }

  /* -- what stands still, and listening -- */

  function choose(values) {
    Object.assign(S, values);
    paintWall();
  }

  function furniture() {
    for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
    for (const name of ["controls", "growth"]) part[name].setAttribute("aria-label", W.aria[name]);
    part.growth.append(...["same", "grows"].map((name) => h("button", { type: "button", "data-growth": name }, W.growth[name])));
    const options = (list) => list.map(({ id, name }) => h("option", { value: id }, name));
    part.machine.append(...options(machines));
    part.target.append(...options(models));
    part.draft.append(...options(models));
    part.bits.append(...[16, 8, 4].map((bits) => h("option", { value: bits }, words(W.wall.bits, { bits }))));
    buildSources();
    buildClaims();
  }

  function buildSources() {
    const cells = (values) => values.map((value) => h("td", {}, String(value))), { active, experts } = W.sources;
    part.sources.append(plainTable(W.sources.heads, machines.map(({ id, name, tflops, gbps, gb, mib, link }) => h("tr", {}, h("th", { scope: "row" }, name, h("span", { class: "sd-sub" }, W.sources.machines[id], link ? [" ", h("a", { class: "sd-th-link", href: link, target: "_blank", rel: "noreferrer" }, new URL(link).hostname)] : null)), cells([tflops, gbps, gb, mib.toLocaleString("en")])))));
    part.sources.append(plainTable(W.sources.model_heads, models.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name),
      cells([one.active ? words(active, { all: one.parameters, active: one.active }) : one.parameters, one.embedding ?? "–", one.layers, one.heads + " × " + one.head_dim, one.kv_heads, one.experts ? words(experts, { all: one.experts, chosen: one.chosen }) : "–"])))));
    part.sources.append(h("p", { class: "sd-sub" }, words(W.sources.models, { read })));
  }

  function listen() {
    for (const name of Object.keys(SLIDERS)) {
      part[name].oninput = () => slide(name, +part[name].value);
      part[name].onchange = announce;
    }
    part.growth.onclick = (event) => { if (event.target.dataset.growth) { S.grows = event.target.dataset.growth === "grows"; draw(); announce(); } };
    part.here.onclick = () => { goHere(); announce(); };
    part.example.onclick = () => { set({ ...EXAMPLE, grows: false }); announce(); };
    for (const name of ["machine", "target", "draft"]) part[name].onchange = () => choose({ [name]: part[name].value });
    part.bits.onchange = () => choose({ bits: +part.bits.value });
    for (const name of ["batch", "context"]) part[name].oninput = () => choose({ [name]: 2 ** part[name].value });
    player.addEventListener("sd-run", () => room.curves && pull());
    new ResizeObserver(measure).observe(root);
  }

  furniture();
  listen();
  measure();
}

if (typeof module !== "undefined" && module.exports) {
  module.exports = {
    expectedTokens, expectedAccepted, acceptedDistribution, throughput, tokensByPosition, speedup, accountedSpeedup, growing, bestK, breakEven, wilson,
    machineOf, modelOf, weightsRead, cacheBytes, passSeconds, freeRows, batchSpeedup, crossings, memoryBytes, ofRun, predicted,
  };
} else mount(element, props);
