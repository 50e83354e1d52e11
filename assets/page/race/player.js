/* Plays one run: a growing NDJSON log of events in, two lanes of text or three, a timeline and charts out.
 *
 * First the pure part, `fold` and what is read off it: no document, so that Node can test it. Then the drawing. Text
 * from the log enters the page by `append` and `textContent` alone: a token may be `<script>`. Times inside are
 * milliseconds since the end of a lane's prefill, because the page compares decoding. */

/* ---- the model of a run ------------------------------------------------------------------------------------ */

const MARK = { acc: "✓", rej: "✗", dis: "·", res: "↻", bon: "+1", pen: "", pla: "", cut: "·" };
const STATE = { accepted: "acc", rejected: "rej", discarded: "dis", resampled: "res", bonus: "bon" };
const BLOCK = "block verification", NOISE = "shared noise"; // rules with words of their own
const EPS = 1e-6;

function newRun(header) {
  const names = header.lanes && header.lanes.length ? header.lanes : ["speculative", "plain"];
  const lanes = {};
  for (const name of names) lanes[name] = newLane(name);
  return { header, names, lanes, closed: false };
}

function newLane(name) {
  return { name, started: null, zero: null, first: null, open: null, cycles: [], failures: [], finished: null, end: 0 };
}

function fold(lines) {
  let run = null;
  for (const event of lines) run = apply(run, event);
  return run;
}

/* Events of unknown kinds or lanes pass by: a newer log still plays. */
function apply(run, event) {
  if (event.event === "header") return newRun(event);
  if (!run || typeof event.lane !== "string") return run;
  const lane = run.lanes[event.lane];
  if (!lane) return run;
  if (event.event === "started") lane.started = event;
  else if (event.event === "drafted") lane.open = { drafted: event };
  else if (event.event === "verified") lane.open = { ...sameCycle(lane.open, event), verified: event };
  else if (event.event === "committed") commit(lane, event);
  else if (event.event === "failed") lane.failures.push(event);
  else if (event.event === "finished") lane.finished = event;
  return run;
}

const sameCycle = (open, event) => (open && open.drafted && open.drafted.cycle === event.cycle ? open : {});

function commit(lane, event) {
  const open = lane.open || {};
  lane.open = null;
  if (lane.zero === null) {
    lane.zero = event.at;
    lane.first = { pieces: event.pieces, tokens: event.tokens, law: open.verified && open.verified.law, p: open.verified && open.verified.p };
    if (open.drafted) lane.first.cycle = { ...newCycle(lane, open, event), number: 0 }; // a peer may draft before it reads the prompt
    return;
  }
  const cycle = newCycle(lane, open, event);
  lane.cycles.push(cycle);
  lane.end = cycle.at;
}

function newCycle(lane, open, event) {
  const ms = (seconds) => (seconds - lane.zero) * 1000;
  const before = lane.cycles.length ? lane.cycles[lane.cycles.length - 1] : null;
  const { drafted, verified } = open;
  const positions = (verified && verified.positions) || [];
  const draft = drafted ? { start: ms(drafted.start), end: ms(drafted.end), steps: (drafted.step_ends || []).map(ms) } : null;
  const check = verified ? { start: ms(verified.start), end: ms(verified.end) } : null;
  const kept = event.tokens.length, parents = parentsOf((drafted && drafted.parents) || [], positions.length), levels = [];
  const drafts = positions.map((position, i) => {
    const level = levels[i] = parents[i] < 0 ? 1 : levels[parents[i]] + 1;
    const state = kept === event.accepted && level > kept ? "cut" : STATE[position.status] || "dis"; // cut: the text ended before it
    return { ...position, state, level, parent: parents[i], ready: draft ? (draft.steps[i] ?? draft.end) : 0 };
  });
  const own = kept > event.accepted ? ownToken(event, verified, drafts.length) : null;
  const reached = [...new Set(drafts.filter((one) => one.state === "acc" || one.state === "rej").map((one) => one.level))];
  const cycle = {
    number: lane.cycles.length + 1, draft, check, drafts, own, at: ms(event.at), gained: kept, tokens: event.tokens, pieces: event.pieces,
    bonus: verified && verified.bonus,
    start: draft ? draft.start : check ? check.start : before ? before.at : 0, tree: new Set(parents).size < parents.length,
    accepted: reached.filter((level) => drafts.some((one) => one.level === level && one.state === "acc")).length, judged: reached.length,
  };
  cycle.sum = addUp(before && before.sum, cycle);
  return cycle;
}

/* The node that each token follows, -1 for the text. Without a word about it, the draft is a chain. */
const parentsOf = (told, n) => Array.from({ length: n }, (_, i) => (Number.isInteger(told[i]) && told[i] >= -1 && told[i] < i ? told[i] : i - 1));

/* The last token of the path that was kept, -1 if none was. */
const tipOf = (cycle) => cycle.drafts.reduce((tip, draft, i) => (draft.state === "acc" ? i : tip), -1);

/* When a cycle's first token shows. */
const beginning = (cycle) => Math.min(cycle.at, ...cycle.drafts.map((draft) => draft.ready));

function ownToken(event, verified, drafted) {
  const last = event.tokens.length - 1;
  return {
    piece: event.pieces[last], token: event.tokens[last], state: drafted ? STATE[event.kind] || "pla" : "pla",
    law: verified && verified.law, p: verified && verified.p,
  };
}

/* Totals up to and with this cycle: figures at any time are a look-up, not a sum. A check is a pass over a draft. */
const NOTHING = { tokens: 0, accepted: 0, judged: 0, drafted: 0, trees: 0, drafting: 0, passing: 0, checks: 0, checking: 0 };
function addUp(sum, cycle) {
  const last = sum || NOTHING, pass = cycle.check ? cycle.check.end - cycle.check.start : 0, checks = Number(pass > 0 && cycle.drafts.length > 0);
  return {
    tokens: last.tokens + cycle.gained,
    accepted: last.accepted + cycle.accepted,
    judged: last.judged + cycle.judged,
    drafted: last.drafted + cycle.drafts.length,
    trees: last.trees + Number(cycle.tree),
    drafting: last.drafting + (cycle.draft ? cycle.draft.end - cycle.draft.start : 0),
    passing: last.passing + pass,
    checks: last.checks + checks,
    checking: last.checking + checks * pass,
  };
}

const speculative = (run) => run.lanes[run.names[0]];
const plain = (run) => run.lanes[run.names[run.names.length - 1]];
const peerOf = (run) => (run.names.length > 2 ? run.lanes[run.names[1]] : null);
const isOver = (run) => run.closed || run.names.every((name) => run.lanes[name].finished);
const wasStopped = (run) => run.closed && !run.names.every((name) => run.lanes[name].finished);

/* How far the replay may go: while the run goes on, no lane may be shown ahead of what the other has done. */
function horizon(run) {
  const lanes = run.names.map((name) => run.lanes[name]);
  if (isOver(run)) return Math.max(...lanes.map((lane) => lane.end));
  const busy = lanes.filter((lane) => !lane.finished);
  return Math.min(...busy.map((lane) => lane.end));
}

function doneBy(cycles, t) {
  let low = 0, high = cycles.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (cycles[mid].at <= t + EPS) low = mid + 1;
    else high = mid;
  }
  return low;
}

/* Tokens in the lane's text after so many cycles, the prefill's own included. */
const written = (lane, k) => (lane.first ? lane.first.pieces.length : 0) + (k ? lane.cycles[k - 1].sum.tokens : 0);

/* Everything the figures line needs at time t. Costs are in plain passes of the target. */
function figuresAt(run, t) {
  const laneAt = (lane) => {
    const k = doneBy(lane.cycles, t), last = k ? lane.cycles[k - 1] : null;
    const sum = last ? last.sum : NOTHING;
    return { k, last, ...sum, written: written(lane, k), time: last ? last.at : 0, rate: last && last.at > 0 ? (sum.tokens / last.at) * 1000 : 0 };
  };
  const a = laneAt(speculative(run)), b = laneAt(plain(run)), peer = peerOf(run) && laneAt(peerOf(run));
  const pass = b.k ? b.time / b.k : 0;
  const perPass = (ms, n) => (pass && n ? ms / n / pass : null);
  return {
    a, b, peer, speedup: a.rate && b.rate ? a.rate / b.rate : null, against: peer && peer.rate && b.rate ? peer.rate / b.rate : null,
    alpha: a.judged ? a.accepted / a.judged : null, tau: a.k ? a.tokens / a.k : null,
    dar: a.drafted ? a.accepted / a.drafted : null, perPass,
    c: perPass(a.drafting, a.drafted), v: perPass(a.checking, a.checks), cost: perPass(a.time, a.k), draftCost: perPass(a.drafting, a.k), passCost: perPass(a.passing, a.k),
  };
}

const firstRejection = (run) => speculative(run).cycles.find((cycle) => cycle.own && cycle.own.state === "res") || null;

/* Where does a lane part from the plain one? -1 if nowhere among the tokens that both have: greedy ones must agree. */
function partAt(run, lane = speculative(run)) {
  const ids = (lane) => (lane.first ? lane.first.tokens : []).concat(...lane.cycles.map((cycle) => cycle.tokens));
  const a = ids(lane), b = ids(plain(run)), n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return { at: i, of: n };
  return { at: -1, of: n };
}

/* Reads a growing text line by line; a first line that differs begins a new run. */
function newReader() {
  return { head: null, length: 0, run: null };
}

function read(reader, text) {
  const fresh = reader.head !== null && (text.length < reader.length || !text.startsWith(reader.head));
  if (fresh) Object.assign(reader, newReader());
  let end;
  while ((end = text.indexOf("\n", reader.length)) >= 0) {
    const line = text.slice(reader.length, end);
    reader.length = end + 1;
    if (reader.head === null) reader.head = line + "\n";
    try {
      reader.run = apply(reader.run, JSON.parse(line));
    } catch (error) {
      console.warn("a line of the run cannot be read", error);
    }
  }
  return fresh;
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const fixed = (x, digits = 2) => x.toFixed(digits);

/* A probability: two digits, but never a false 0 or 1. */
function chance(x) {
  if (x == null || Number.isNaN(x)) return "–";
  if (x > 0 && x < 0.005) return "<0.01";
  if (x < 1 && x > 0.995) return ">0.99";
  return fixed(x);
}

function duration(ms) {
  if (ms >= 10000) return fixed(ms / 1000, 1) + " s";
  return fixed(ms, ms < 10 ? 2 : 1) + " ms";
}

function size(n) {
  if (!(n > 0)) return "";
  if (n >= 1e9) return fixed(n / 1e9, 1) + " B";
  return n >= 1e6 ? fixed(n / 1e6, n >= 1e7 ? 0 : 1) + " M" : Math.round(n / 1e3) + " k";
}

/* Characters that would be invisible or would turn the line round are shown by their number. */
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = (piece) => piece.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(ODD, (c) => "⟨" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
const blank = (piece) => (/^ {4,}$/.test(piece) ? "␣×" + piece.length : piece.replace(/ /g, "␣"));
const shown = (piece) => visible(piece.trim() ? piece.replace(/^ /, "") : blank(piece)) || "∅";

/* The words for a name, or those for any other. */
const pick = (map, name) => (Object.hasOwn(map, name) ? map[name] : map.other);

/* "a {name} b" with values that may be nodes. */
function fill(template, values) {
  return template.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? (values && values[part] != null ? values[part] : "") : part)).filter((part) => part !== "");
}
const words = (template, values) => fill(template, values).join("");

/* Side by side; a Chinese full stop is as wide as a character, so no space follows it. */
const sentences = (...parts) => parts.flat().filter(Boolean).join(" ").replace(/([。：？！]) /g, "$1");

function niceStep(span, count) {
  const rough = Math.max(span, EPS) / count, power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
}
const tick = (v, step) => (step >= 1 ? String(Math.round(v)) : v.toFixed(Math.min(3, Math.ceil(-Math.log10(step)))));

/* About how wide a label is at 12 px, before it is drawn: a Chinese character is square. */
const widthOf = (label) => [...label].reduce((width, one) => width + (one > "\u2e80" ? 12 : 5.8), 0);

/* ---- small makers of elements -------------------------------------------------------------------------------- */

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) if (value != null && value !== false) node.setAttribute(name, value);
  node.append(...children.flat(9).filter((child) => child != null));
  return node;
}
const h = (tag, attributes, ...children) => dress(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const text = (x, y, words, cls, anchor) => s("text", { x, y, class: cls, "text-anchor": anchor }, words);
const line = (x1, y1, x2, y2, cls, more) => s("line", { x1, y1, x2, y2, class: cls, ...more });
const rect = (x, y, width, height, more) => s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...more });
const svg = (width, height, label, ...children) => s("svg", { width, height, role: "img", "aria-label": label }, children);

/* Bars of one look make one path: a long run has thousands of them. */
function bundle() {
  const looks = new Map(), at = (v) => v.toFixed(2);
  function add(look, x, y, width, height, round = 0) {
    if (!(width > 0 && height > 0)) return;
    const r = width < 6 ? 0 : round, corner = (dx, dy, ex, ey) => (r ? `q${dx} ${dy} ${ex} ${ey}` : "");
    const bar = `M${at(x + r)} ${at(y)}h${at(width - 2 * r)}${corner(r, 0, r, r)}v${at(height - 2 * r)}${corner(0, r, -r, r)}h${at(2 * r - width)}${corner(-r, 0, -r, -r)}v${at(2 * r - height)}${corner(0, -r, r, -r)}z`;
    looks.set(look, (looks.get(look) || "") + bar);
  }
  return { add, paths: (dressing) => [...looks].map(([look, d]) => s("path", { d, ...dressing(look) })) };
}

let hatches = 0;
function hatch() {
  const id = "sd-hatch-" + hatches++;
  const pattern = s("pattern", { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    rect(0, 0, 5, 5, { class: "sd-f-rej" }), line(0, 0, 0, 5, "sd-s-rej", { "stroke-width": 1.6 }));
  return { defs: s("defs", {}, pattern), fill: `url(#${id})` };
}

/* The visible body of a token: leading space as a small tray, runs of spaces counted. */
function body(piece) {
  const lead = /^ +/.exec(piece), spaces = lead ? lead[0].length : 0, rest = visible(piece.slice(spaces));
  const trays = Array.from({ length: Math.min(spaces, 3) }, () => h("i", { class: "sd-sp" }));
  return h("span", { class: "sd-x" }, trays, spaces > 3 ? "×" + spaces + (rest ? " " : "") : null, rest || (spaces ? null : "∅"));
}

function chip(W, piece, state, tag = "button", status = W.status[state]) {
  const name = (/^ /.test(piece) ? W.space + " " : "") + (piece.trim() || (/\n/.test(piece) ? W.line_break : ""));
  const node = h(tag, { class: "sd-tok sd-" + state, "aria-label": name + ", " + status, type: tag === "button" ? "button" : null, tabindex: tag === "button" ? -1 : null }, body(piece));
  if (MARK[state]) node.append(h("span", { class: "sd-m", "aria-hidden": "true" }, MARK[state]));
  return node;
}

/* ---- the player ---------------------------------------------------------------------------------------------- */

const SPEEDS = [[1, "1×"], [10, "1/10"], [100, "1/100"], [400, "1/400"]];
const HOLD = 7000; // how long the first rejection may be read before the replay goes on by itself
const FRAME = 30; // ms at least between two drawings: a page that draws more takes a core from the engine beside it

function mount(element, props, watch) {
  const W = props.words, root = element.querySelector(".sd-player"), part = {};
  for (const node of root.querySelectorAll("[data-part]")) part[node.dataset.part] = node;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const S = { t: 0, playing: false, slow: 100, zoom: "close", zoomChosen: false, hold: "armed", timer: 0, touched: false, last: 0 };
  const reader = newReader();
  const clipId = "sd-clip-" + hatches++;
  const room = { gantt: 0, bars: 0, alpha: 0, curve: 0 }; // widths of the charts, read only when the page's changes
  let run = null, drawn = null, chips = [], trees = [], built = [], card = null;

  /* -- taking in the log -- */

  function pull() {
    const fresh = read(reader, props.value || "");
    const begun = reader.run && (fresh || run === null || reader.run !== run);
    run = reader.run;
    if (!run) return empty();
    run.closed ||= run.header.source !== "live"; // all of a recorded run is there, even if it was stopped
    if (begun) begin();
    build();
    if (calm && run.header.source === "live") S.t = horizon(run);
    draw();
    root.dispatchEvent(new Event("sd-run"));
  }

  /* The stream is over, by its end, by Stop or by a failure: what is there may be played to its end. */
  function ended() {
    if (!run || run.header.source !== "live") return;
    run.closed = true;
    if (calm) S.t = horizon(run);
    draw();
  }

  /* Another run in place of this one, by hand of the visitor: even one with the same first line begins anew. */
  function load(log) {
    props.value = log;
    Object.assign(reader, newReader());
    run = null;
    pull();
  }

  function empty() {
    part.say.textContent = W.empty;
    root.dataset.state = "empty";
  }

  function begin() {
    clearTimeout(S.timer);
    hideCard();
    const live = run.header.source === "live";
    Object.assign(S, { t: 0, zoom: S.zoomChosen ? S.zoom : "close", hold: live || S.touched ? "spent" : "armed", playing: false });
    chips = [];
    trees = [];
    built = run.names.map(() => -1);
    part.peer.hidden = !peerOf(run);
    laneBoxes().forEach((box) => {
      box.replaceChildren(h("span", { class: "sd-prompt" }, clip(run.header.prompt || "")));
      letGo(box);
    });
    if (drawn !== null && innerWidth <= 1040) part.stage.scrollIntoView({ behavior: calm ? "auto" : "smooth" }); // the button is far below
    drawn = null;
    heading();
    if (!calm) S.timer = setTimeout(() => play(true), live ? 0 : 400);
    else if (!live) whenCalm();
  }

  /* Reduced motion: no replay by itself; open where there is something to see. */
  function whenCalm() {
    build();
    const stop = firstRejection(run);
    S.hold = "spent";
    S.t = stop ? stop.at : horizon(run);
  }

  const clip = (prompt) => visible(prompt.length > 260 ? "… " + prompt.slice(-240) : prompt).replace(/↵/g, "↵\n");
  const laneBoxes = () => [part.lane0, part.lane1, part.lane2];
  const shownLanes = () => [speculative(run), plain(run), peerOf(run)].filter(Boolean);
  const isDrafting = (l) => l !== 1; // all lanes but the plain one

  /* The lanes are built as their cycles arrive; time only changes classes. */
  function build() {
    shownLanes().forEach((lane, l) => {
      if (built[l] < 0 && lane.first) {
        if (lane.first.cycle) buildCycle(l, lane.first.cycle);
        else lane.first.pieces.forEach((piece) => put(l, laneBoxes()[l], piece, "pla", 0, 0, { own: lane.first, place: "first" }));
        laneBoxes()[l].append(h("span", { class: "sd-gap" }));
        built[l] = 0;
      }
      for (; built[l] >= 0 && built[l] < lane.cycles.length; built[l]++) buildCycle(l, lane.cycles[built[l]]);
    });
  }

  function buildCycle(l, cycle) {
    const box = laneBoxes()[l];
    const group = h("span", { class: "sd-cyc" }), judged = cycle.check ? cycle.check.end : cycle.at;
    const place = cycle.tree ? plant(group, cycle) : () => group;
    cycle.drafts.forEach((draft, i) => put(l, place(i, draft.parent), draft.piece, draft.state, draft.ready, judged, { cycle, draft, i }));
    if (cycle.own) put(l, place(cycle.drafts.length, tipOf(cycle)), cycle.own.piece, cycle.own.state, cycle.at, cycle.at, { cycle, own: cycle.own });
    box.append(group);
    if (isDrafting(l)) box.append(h("span", { class: "sd-gap" }), " ");
  }

  /* A draft with siblings: they hang below each other, and what follows a token stands right of it. Says where a token goes. */
  function plant(tree, cycle) {
    const nodes = { "-1": tree };
    dress(tree, { class: "sd-cyc sd-tree", role: "group", "aria-label": words(W.tree.aria, { n: cycle.drafts.length, levels: depthOf(cycle) }) }, []);
    trees.push({ tree, cycle });
    return (i, parent) => {
      const up = nodes[parent];
      if (!up.kids) up.append((up.kids = h("span", { class: "sd-kids" })));
      up.kids.append((nodes[i] = h("span", { class: "sd-node" })));
      return nodes[i];
    };
  }

  const depthOf = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

  function put(l, parent, piece, state, from, judged, about) {
    const node = chip(W, piece, state, "button", statusOf(state, about) + levelOf(about));
    node.classList.add("sd-fut");
    const item = { node, state, from, judged, now: "fut", lane: l, piece, ...about };
    node.item = item;
    chips.push(item);
    parent.append(node);
    // Only what joins the text may break a line.
    if (/\n/.test(piece) && !["rej", "dis", "cut"].includes(state)) parent.append(h("br"));
  }

  /* Behind the end of a block tokens are discarded, too, but their coins were tossed. */
  const statusOf = (state, { draft }) => (state === "dis" && draft.u != null ? W.status.late : W.status[state]);
  const levelOf = ({ cycle, draft }) => (draft && cycle.tree ? ", " + words(W.tree.level, { level: draft.level }) : "");

  /* -- words that stand still during a run -- */

  function heading() {
    const head = run.header, started = speculative(run).started || { drafter: "other", k: "K" }, models = head.models || {}, machine = head.machine || {};
    const source = head.source === "live" ? "live" : "recorded";
    part.source.textContent = W.source[source];
    root.dataset.source = source;
    const total = models.target && size(models.target.parameters), target = total && models.family === "tuned" ? words(W.meta.tuned, { target: total }) : total;
    const drafting = /^draft_model/.test(started.drafter) && Object.hasOwn(models, started.drafter) && models[started.drafter], draft = drafting && size(drafting.parameters);
    const pair = target && draft ? words(W.meta.pair, { target, draft }) : target ? words(W.meta.target_only, { target }) : "";
    const device = (/^cuda/.test(models.device) && machine.gpu) || (machine.cores ? (machine.cores === 1 ? W.meta.one_core : words(W.meta.cores, { n: machine.cores })) : "");
    const pace = S.slow === 1 ? W.meta.real_time : words(source === "live" ? (isOver(run) ? W.meta.live : W.meta.running) : W.meta.recorded, { times: S.slow });
    part.meta.textContent = [W.kind[head.kind || ""] || head.kind, pair, device, pace].filter(Boolean).join(" · ");
    root.toggleAttribute("data-lossy", started.lossless === false);
    root.toggleAttribute("data-peer", Boolean(peerOf(run)));
    if (peerOf(run)) part.sub2.textContent = peerWords(peerOf(run), machine.transformers);
    part.legend.late.data = W.status[started.rule === BLOCK ? "late" : "dis"];
    part.sub0.textContent = words(started.k === 0 ? W.lane.none : pick(W.drafter, started.drafter), { k: started.k }) + (pick(W.rule, started.rule) ? "; " + pick(W.rule, started.rule) : "");
  }

  function peerWords(lane, version) {
    return words(pick(W.peer, lane.started ? lane.started.drafter : "other"), { k: lane.started ? lane.started.k : "K", version: version || "" });
  }

  function furniture() {
    const named = { name0: W.lane.speculative, name1: W.lane.plain, name2: W.lane.peer, sub1: W.lane.plain_sub, time: W.time.title, timesub: W.time.sub, barstitle: W.charts.bars, barssub: W.charts.bars_sub, curvetitle: W.charts.curve, curvesub: W.charts.curve_sub, alphatitle: W.charts.alpha, alphasub: W.charts.alpha_sub, accounttitle: W.charts.account, accountsub: W.charts.account_sub, download: W.transport.download };
    for (const [name, words] of Object.entries(named)) part[name].textContent = words;
    part.card.id = clipId + "-card";
    part.stage.setAttribute("aria-label", W.transport.stage);
    part.back.setAttribute("aria-label", W.transport.back);
    part.next.setAttribute("aria-label", W.transport.next);
    part.scrub.setAttribute("aria-label", W.transport.position);
    part.speed.setAttribute("aria-label", W.transport.speed);
    part.lossy.textContent = W.lossy;
    part.legend.append(...["acc", "rej", "dis", "res", "bon", "pen"].map((state) => h("span", { class: "sd-it" }, legendChip(state), W.status[state])));
    part.legend.late = part.legend.children[2].lastChild;
    part.swatches.append(h("i", { class: "sd-sw-draft" }), W.time.draft + " ", h("i", { class: "sd-sw-target" }), W.time.target);
    part.zoom.append(...["close", "run"].map((zoom) => h("button", { type: "button", "data-zoom": zoom }, W.time[zoom])));
    part.speed.append(...SPEEDS.map(([slow, label]) => h("button", { type: "button", "data-slow": slow }, label)));
  }

  function legendChip(state) {
    const node = chip(W, W.sample, state, "span");
    node.setAttribute("aria-hidden", "true");
    node.removeAttribute("aria-label");
    return node;
  }

  /* -- drawing one moment -- */

  function draw() {
    if (!run) return;
    const F = figuresAt(run, S.t), end = horizon(run), over = isOver(run), key = [F.a.k, F.b.k, over, end, S.slow].join(), changed = key !== drawn;
    paintChips();
    paintTrees();
    if (changed) {
      drawn = key;
      heading();
      paintFigures(F, end);
      part.say.replaceChildren(...sentence(F, end));
      part.foot.replaceChildren(footnote(F));
      drawBars(F);
      drawAlpha(F);
      paintAccount(F);
    }
    paintTransport(F, end);
    drawGantt(end);
    drawCurve(F, end);
    root.dataset.state = stateName(end, over);
    if (changed) keepTall(); // last: what is read here is laid out once a frame
  }

  function resized() {
    laneBoxes().forEach(letGo);
    drawn = null;
    draw();
  }

  /* Whether the charts have other widths than before; a hidden page has none, and keeps those that it had. */
  function measure() {
    if (!part.stage.clientWidth) return false;
    const before = Object.values(room).join();
    for (const name of Object.keys(room)) room[name] = part[name].clientWidth;
    return Object.values(room).join() !== before;
  }

  const atEnd = (end) => S.t >= end - EPS;
  function stateName(end, over) {
    if (S.hold === "holding") return "first-rejection";
    if (atEnd(end)) return over ? "done" : "waiting";
    return S.playing ? "playing" : "paused";
  }

  function paintChips() {
    const latest = doneBy(speculative(run).cycles, S.t);
    for (const item of chips) {
      const now = S.t + EPS < item.from ? "fut" : S.t + EPS < item.judged ? "pen" : item.state;
      const reach = now !== "fut" && item.lane === 0 && item.cycle && item.cycle.number === latest ? 0 : -1;
      if (item.reach !== reach) item.node.tabIndex = item.reach = reach;
      if (item.now === now) continue;
      item.now = now;
      item.node.className = "sd-tok " + (now === "fut" ? "sd-fut sd-" + item.state : "sd-" + now);
      item.node.classList.toggle("sd-unmarked", now === "pen");
      item.node.classList.toggle("sd-kept", ["acc", "res", "bon"].includes(now));
    }
  }

  /* A tree stands until the next cycle begins; of past ones only what joined the text is left. */
  function paintTrees() {
    const cycles = speculative(run).cycles;
    for (const { tree, cycle } of trees) {
      const next = cycles[cycle.number];
      tree.classList.toggle("sd-fut", S.t + EPS < beginning(cycle));
      tree.classList.toggle("sd-past", Boolean(next) && S.t + EPS >= beginning(next));
    }
  }

  /* Lanes grow, never shrink: the scrubber stays under the finger. */
  function keepTall() {
    const heights = laneBoxes().map((box) => box.offsetHeight);
    laneBoxes().forEach((box, i) => {
      if (heights[i] <= box.tall) return;
      box.tall = heights[i];
      box.style.minHeight = box.tall + "px";
    });
  }

  function letGo(box) {
    box.style.minHeight = "";
    box.tall = 0;
  }

  function term(name, label) {
    const node = h("button", { type: "button", class: "sd-term" }, label);
    node.definition = W.define[name];
    return node;
  }

  function paintFigures(F, end) {
    const final = isOver(run) && atEnd(end) && !wasStopped(run), U = W.figures;
    const rows = [
      ["speedup", final ? U.speedup : U.so_far, F.speedup ? fixed(F.speedup) + "×" : "–", "", "sd-hero"],
      ["speculative", U.speculative, F.a.rate ? fixed(F.a.rate, 0) : "–", U.rate_unit],
      ["plain", U.plain, F.b.rate ? fixed(F.b.rate, 0) : "–", U.rate_unit],
      ...(F.peer ? [["peer", U.peer, F.peer.rate ? fixed(F.peer.rate, 0) : "–", F.against ? words(U.against, { times: fixed(F.against) }) : U.rate_unit]] : []),
      ["alpha", U.alpha, F.alpha == null ? "–" : fixed(F.alpha), F.a.judged ? words(F.a.trees ? U.levels : U.judged, { a: F.a.accepted, b: F.a.judged }) : ""],
      ["tau", U.tau, F.tau == null ? "–" : fixed(F.tau), U.tau_unit],
    ];
    if (part.figures.children.length !== rows.length) part.figures.replaceChildren(...rows.map(([name, label, , , cls]) => h("div", { class: cls }, h("dt", {}, term(name, label), cls ? h("span", { class: "sd-tag" }, W.lossy) : null), h("dd", {}))));
    rows.forEach(([, label, value, unit], i) => {
      const [dt, dd] = part.figures.children[i].children;
      dt.firstChild.textContent = label;
      dd.replaceChildren(value, ...(unit ? [h("small", {}, unit)] : []));
    });
    const clock = (lane, n) => [h("b", {}, n === 1 ? W.lane.one_token : words(W.lane.clock, { tokens: n })), h("span", {}, "")];
    part.clock0.replaceChildren(...clock(speculative(run), F.a.written));
    part.clock1.replaceChildren(...clock(plain(run), F.b.written));
    if (F.peer) part.clock2.replaceChildren(...clock(peerOf(run), F.peer.written));
  }

  function paintTransport(F, end) {
    const label = S.playing ? "❚❚ " + W.transport.pause : "▶ " + W.transport.play;
    if (part.play.textContent !== label) part.play.textContent = label;
    part.scrub.max = Math.max(end, EPS);
    part.scrub.value = S.t;
    part.scrub.setAttribute("aria-valuetext", words(W.transport.tokens, { n: F.a.written }));
    shownLanes().forEach((lane, l) => {
      const span = part["clock" + l].lastChild;
      if (span) span.textContent = " · " + duration(lane.finished || run.closed ? Math.min(S.t, lane.end) : S.t);
    });
    for (const b of part.speed.children) b.setAttribute("aria-pressed", String(+b.dataset.slow === S.slow));
    for (const b of part.zoom.children) b.setAttribute("aria-pressed", String(b.dataset.zoom === S.zoom));
  }

  /* -- the sentence -- */

  const tinted = (state, piece) => h("mark", { class: "sd-" + state }, shown(piece));

  function sentence(F, end) {
    const Y = W.say, lane = speculative(run), fatal = [lane, plain(run)].map((one) => one.failures.find((f) => f.fatal)).find(Boolean);
    const drafter = lane.started ? lane.started.drafter : "", over = isOver(run);
    if (over && atEnd(end)) return fatal ? [words(Y.failed, { reason: fatal.reason })] : lastWords(F, drafter);
    if (lane.finished && F.a.k === lane.cycles.length && F.a.k) return [Y.spec_done];
    if (!lane.first) return [Y.waiting];
    if (!F.a.k) return [words(pick(Y.start, lane.started && lane.started.k === 0 ? "none" : drafter), { k: lane.started ? lane.started.k : "K" })];
    return cycleWords(F.a.last, lane.started);
  }

  function cycleWords(cycle, started) {
    const Y = W.say, n = cycle.drafts.length, about = { cycle: cycle.number, n, total: cycle.gained };
    if (!n) return [words(Y.nothing, about)];
    if (!cycle.own) return [words(Y.ended, about)];
    if (cycle.tree) return treeWords(cycle, about);
    const i = cycle.drafts.findIndex((draft) => draft.state === "rej"), own = tinted(cycle.own.state, cycle.own.piece);
    if (i < 0) return fill(n === 1 ? Y.bonus_one : Y.bonus, { ...about, bonus: own });
    const { piece, p, q, u, h: reach } = cycle.drafts[i], left = n - i - 1, greedy = started && started.params && started.params.temperature === 0;
    const told = { draft: tinted("rej", piece), p: chance(p), q: chance(q), chance: chance(Math.min(1, p / q)), h: chance(reach), u: u == null ? "–" : chance(u), verdict: h("b", {}, Y.rejected_word), n: left };
    const rule = started ? started.rule : "", copied = started && started.drafter === "prompt_lookup";
    const why = greedy ? Y.rejected_greedy : pick(Y.rejected_by, rule) || (copied ? Y.rejected_copy : Y.rejected), block = rule === BLOCK && !greedy;
    const then = fill(left && block ? Y.left_block : left > 1 ? Y.left_many : left ? Y.left_one : Y.left_none, { n: left, own });
    return [firstRejection(run) === cycle ? Y.first : words(Y.cycle, about), ...fill(why, told), ...then, numbersOf(cycle.drafts[i])];
  }

  /* Of a tree: the path that was kept, and how it ends. */
  function treeWords(cycle, about) {
    const Y = W.say, T = W.tree, tip = tipOf(cycle), tried = cycle.drafts.filter((draft) => draft.parent === tip), path = [];
    for (let i = tip; i >= 0; i = cycle.drafts[i].parent) path.unshift(" ", tinted("acc", cycle.drafts[i].piece));
    const own = tinted(cycle.own.state, cycle.own.piece), told = { ...about, path: h("span", {}, path.slice(1)), own, tried: tried.length };
    const kept = fill(tip < 0 ? T.none : T.kept, told), end = fill(!tried.length ? T.bonus : tried.length > 1 ? T.rejected : T.rejected_one, told);
    return [firstRejection(run) === cycle ? Y.first : words(Y.cycle, about), ...kept, ...end, ...(tried.length ? [numbersOf(tried[0])] : [])];
  }

  function numbersOf(draft) {
    const more = h("button", { type: "button", class: "sd-link sd-inline" }, W.say.numbers);
    more.onclick = () => { touch(); const item = chips.find((c) => c.draft === draft); item && showToken(item, true); };
    const apart = h("button", { type: "button", class: "sd-link sd-inline" }, W.say.apart);
    apart.onclick = () => takeApart(draft);
    return h("span", {}, more, " · ", apart);
  }

  /* Hands the decision to the page that takes cycles apart; it may not have been opened before. */
  function takeApart(draft) {
    touch();
    const cycle = doneBy(speculative(run).cycles, S.t);
    root.wanted = { cycle, node: speculative(run).cycles[cycle - 1].drafts.indexOf(draft) };
    const tab = document.getElementById("step-button");
    if (tab) tab.click();
    root.dispatchEvent(new Event("sd-apart"));
  }

  function lastWords(F, drafter) {
    const Y = W.say, told = { n: F.a.written, m: F.b.written, ts: duration(F.a.time), tp: duration(F.b.time), ks: F.a.k, kp: F.b.k, tau: F.tau == null ? "–" : fixed(F.tau) };
    if (wasStopped(run)) return [F.a.written ? words(Y.stopped, told) : Y.stopped_early];
    if (!F.a.k || !F.b.k) return [sentences(Y.one_token, endings())];
    if (!F.a.drafted) return [sentences(words(drafter === "prompt_lookup" ? Y.inactive_lookup : Y.inactive, told), endings())];
    const rest = Math.max(0, F.cost - F.draftCost - F.passCost);
    Object.assign(told, { cost: fixed(F.cost), drafting: fixed(F.draftCost), checking: fixed(F.passCost), rest: fixed(rest) });
    return [sentences(words(F.speedup >= 1.02 ? Y.done : F.speedup < 0.98 ? Y.slower : Y.even, told), peerSays(F), endings())];
  }

  /* How the peer did; if it failed, its lane says so. */
  function peerSays(F) {
    return F.against && peerOf(run).finished ? words(W.peer.done, { n: F.peer.written, time: duration(F.peer.time), times: fixed(F.against) }) : "";
  }

  /* Why a lane wrote fewer tokens than it was asked for. */
  function endings() {
    const [a, b] = [speculative(run), plain(run)].map((lane) => lane.finished.reason), one = (who, reason) => (W.reason[reason] ? words(W.reason[reason], { who }) : "");
    return a === b ? [one(W.lane.both, a)] : [one(W.lane.speculative, a), one(W.lane.plain, b)];
  }

  function footnote() {
    const Y = W.foot, failure = speculative(run).failures.find((f) => !f.fatal);
    return sentences(agreement(Y), failure && words(Y.drafter_failed, { cycle: failure.cycle, reason: failure.reason }), peerFailed(), eagerly(Y), Y.keys);
  }

  /* On a GPU, why a lane ran without captured graphs. */
  function eagerly(Y) {
    const lane = [speculative(run), plain(run)].find((lane) => lane.finished && lane.finished.eager);
    return lane && words(Y.eager, { who: W.lane[lane.name], reason: lane.finished.eager });
  }

  function peerFailed() {
    const failure = peerOf(run) && peerOf(run).failures.find((one) => one.fatal);
    return failure && words(W.peer.failed, { reason: failure.reason });
  }

  /* What the two texts have in common: the same words, the same odds, or neither. */
  function agreement(Y) {
    const { params, rule, lossless } = speculative(run).started || {}, { at, of } = partAt(run), over = isOver(run) && atEnd(horizon(run));
    if (!params || !of) return "";
    const about = { temperature: params.temperature, n: at < 0 ? of : at + 1 }, sampled = params.temperature > 0;
    if (sampled && lossless === false) return words(Y.lossy, about);
    if (sampled && rule === NOISE) return words(at >= 0 ? Y.noise_part : over ? Y.noise : Y.noise_so_far, about);
    if (sampled) return words(at >= 0 ? Y.sampled : Y.sampled_same, about);
    return sentences(words(at >= 0 ? Y.part : over ? Y.same : Y.same_so_far, about), over && peerAgrees());
  }

  function peerAgrees() {
    const lane = peerOf(run), { at, of } = lane ? partAt(run, lane) : {};
    return of ? words(at < 0 ? W.peer.same : W.peer.part, { n: at + 1 }) : "";
  }

  /* -- charts: every one takes its width from the page, so that its text stays 12 px -- */

  function drawGantt(end) {
    const box = part.gantt, width = room.gantt, [A, B, P] = shownLanes(), down = P ? 70 : 0; // a third row pushes the plain one down
    if (!width || !A.first) return box.replaceChildren();
    const close = S.zoom === "close", span = Math.max(close ? closeSpan(A, B, width) : axisEnd(end), EPS), from = close ? clamp(S.t - span * 0.78, 0, Math.max(0, axisEnd(end) - span)) : 0;
    const x = (v) => ((v - from) / span) * width, inside = (a, b) => b >= from && a <= from + span, height = 142 + down, looks = bundle(), labels = [];
    for (const [lane, y, checks] of [[A, 22, true], [P, 92, true], [B, 92 + down, false]]) {
      for (const cycle of lane ? lane.cycles : []) if (inside(cycle.start, cycle.at)) { draftBars(cycle, y, x, close, looks); labels.push(...passBar(cycle, y, x, close, looks, checks)); }
    }
    const bars = s("g", { "clip-path": `url(#${clipId})` }, looks.paths((look) => ({ class: look, "stroke-width": 0.5 })), labels);
    const g = svg(width, height, W.time.aria, s("clipPath", { id: clipId }, rect(0, 0, width, height)), bars);
    if (P) g.append(text(0, 66, W.peer.row));
    g.append(text(0, (close ? 66 : 82) + down, W.time.plain_row));
    if (!close && A.finished && S.t >= A.end && A.end < B.end * 0.8) g.append(line(x(A.end) + 4, 35, x(Math.min(S.t, end)), 35, "sd-ax", { "stroke-dasharray": "2 3" }), text(x(A.end) + 12, 29, words(W.time.done, { time: duration(A.end) }), "sd-b"));
    g.append(line(0, 122 + down, width, 122 + down, "sd-ax"));
    axis(g, from, span, x, width, 139 + down, 122 + down);
    g.append(line(x(S.t), 2, x(S.t), 122 + down, "sd-now"));
    box.replaceChildren(g);
  }

  function axis(g, from, span, x, width, y, top) {
    const step = niceStep(span, width > 500 ? 9 : 5);
    for (let i = Math.ceil(from / step - EPS); i * step <= from + span + EPS; i++) {
      const v = i * step, last = (i + 1) * step > from + span + EPS, at = x(v);
      if (top != null) g.append(line(at, top, at, top + 4, "sd-ax"));
      g.append(text(at, y, tick(v, step) + (last ? " ms" : ""), "", at < 8 ? "start" : at > width - 22 ? "end" : "middle"));
    }
  }

  const shade = (end) => (end <= S.t + EPS ? "" : " sd-to-come");

  function draftBars(cycle, y, x, close, looks) {
    if (!cycle.draft) return;
    let from = cycle.draft.start;
    for (const end of close && cycle.draft.steps.length ? cycle.draft.steps : [cycle.draft.end]) {
      looks.add("sd-f-draft" + (close ? " sd-s-draft" : "") + shade(end), x(from), y, x(end) - x(from) - (close ? 0.5 : 0), 26);
      from = end;
    }
  }

  /* Draws the pass, and returns its labels. */
  function passBar(cycle, y, x, close, looks, checks) {
    if (!cycle.check) return [];
    const left = x(cycle.check.start), wide = x(cycle.check.end) - left, mid = left + wide / 2, parts = [];
    looks.add("sd-f-target" + shade(cycle.check.end), left, y, wide - (close ? 1 : 0.5), 26, close ? 2 : 0);
    if (cycle.check.end > S.t + EPS || (!close && !checks)) return parts;
    if (wide > (close ? 16 : 9)) parts.push(text(mid, y - 7, (close ? "+" : "") + cycle.gained, "sd-b", "middle"));
    const n = cycle.drafts.length, labels = checks && n ? [words(W.time.checks, { n }), words(W.time.checks_short, { n }), String(n)] : [W.time.target_short];
    const label = close && labels.find((one) => wide > 8 + widthOf(one));
    if (label) parts.push(text(mid, y + 17, label, "sd-on-target", "middle"));
    return parts;
  }

  /* About four cycles, and never a plain pass too narrow for its label. */
  function closeSpan(A, B, width) {
    const cycles = A.cycles.length ? A.cycles : B.cycles, mean = cycles.length ? cycles[cycles.length - 1].at / cycles.length : 1;
    const pass = B.cycles.length ? B.end / B.cycles.length : mean;
    return Math.min(axisEnd(horizon(run)), Math.max(mean * (width > 500 ? 4.3 : 2.1), pass * (width > 500 ? 5 : 2.5)));
  }

  /* The whole time axis; while a run goes on, as long as it will probably be. */
  function axisEnd(end) {
    const [A, ...others] = shownLanes(), known = Math.max(end, A.end, ...others.map((lane) => lane.end), EPS);
    if (isOver(run)) return known;
    const wanted = (lane) => (lane.started && lane.started.params && lane.started.params.max_tokens) || 0;
    return Math.max(known, ...others.filter((lane) => lane.cycles.length && !lane.finished).map((lane) => (lane.end * wanted(lane)) / written(lane, lane.cycles.length)));
  }

  function columns(width, right) {
    const cycles = speculative(run).cycles, n = Math.max(cycles.length, 8);
    return { cycles, n, width, step: (width - right) / n, right };
  }

  function cycleAxis(g, C, y, current) {
    const every = niceStep(C.n, C.width > 300 ? 5 : 4);
    for (let i = 0; i < C.cycles.length; i++) if (i === 0 || (i + 1) % every === 0) g.append(text(i * C.step + C.step / 2, y, String(i + 1), i === current ? "sd-b" : "", "middle"));
    g.append(text(C.width - C.right + 4, y, W.charts.cycle));
  }

  function drawBars(F) {
    const C = columns(room.bars, 40), up = Math.max(2, ...C.cycles.map((c) => c.gained)), down = Math.max(1, ...C.cycles.map((c) => c.drafts.length - c.accepted));
    const row = clamp(Math.floor(160 / (up + down)), 5, 17), zero = 18 + up * row, height = zero + down * row + 36, pad = C.step > 8 ? 3 : C.step > 4 ? 1 : 0, H = hatch(), looks = bundle(), marks = [];
    const cell = (i, level, state, on) => {
      const x = i * C.step + pad / 2, y = level > 0 ? zero - level * row : zero + (-level - 1) * row + 6;
      looks.add(on ? state : "ghost", x, y + 1, C.step - pad, row - 2, 2);
      if (on && C.step - pad > 11 && row > 12 && state !== "rej" && MARK[state]) marks.push(text(x + (C.step - pad) / 2, y + row / 2 + 4, state === "bon" ? "+" : MARK[state], "sd-cell", "middle"));
    };
    C.cycles.forEach((cycle, i) => {
      const on = i < F.a.k, kept = cycle.drafts.filter((d) => d.state === "acc"), lost = cycle.drafts.filter((d) => d.state !== "acc");
      kept.forEach((_, j) => cell(i, j + 1, "acc", on));
      if (cycle.own) cell(i, kept.length + 1, cycle.own.state, on);
      lost.forEach((draft, j) => cell(i, -j - 1, draft.state, on));
    });
    const wide = C.width - C.right, g = svg(C.width, height, W.charts.bars_aria, H.defs, looks.paths((state) => ({ class: `sd-f-${state} sd-o-${state}`, fill: state === "rej" ? H.fill : null })), marks);
    g.append(line(0, zero + 3, wide, zero + 3, "sd-ax"), line(0, zero - row, wide, zero - row, "sd-dots"));
    const level = F.tau == null ? null : zero - F.tau * row, near = level != null && Math.abs(level - (zero - row)) < 12;
    g.append(text(wide + 4, zero - row + (near ? 14 : 4), W.charts.plain));
    if (level != null) g.append(line(0, level, wide, level, "sd-mean"), text(wide + 4, level + (near ? -2 : 4), "τ " + fixed(F.tau, 1), "sd-b"));
    cycleAxis(g, C, height - 6, F.a.k - 1);
    part.bars.replaceChildren(g);
  }

  function drawAlpha(F) {
    const C = columns(room.alpha, 40), height = 196, top = 8, bottom = 24, y = (a) => top + (1 - a) * (height - top - bottom), x = (i) => i * C.step + C.step / 2;
    const g = svg(C.width, height, W.charts.alpha_aria), wide = C.width - C.right;
    for (const a of [0, 0.5, 1]) g.append(line(0, y(a), wide, y(a), a ? "sd-grid" : "sd-ax"));
    const points = C.cycles.map((cycle, i) => (cycle.sum.judged ? [x(i), y(cycle.sum.accepted / cycle.sum.judged)] : null));
    const path = (list) => list.filter(Boolean).map(([px, py], i) => (i ? "L" : "M") + px.toFixed(1) + " " + py.toFixed(1)).join("");
    g.append(s("path", { d: path(points) || "M0 0", class: "sd-ghost-line" }), s("path", { d: path(points.slice(0, F.a.k)) || "M0 0", class: "sd-line-a" }));
    const now = points.slice(0, F.a.k).filter(Boolean).pop();
    const label = now ? clamp(now[1] + 4, top + 4, height - bottom) : null;
    for (const a of [0, 1]) if (label == null || Math.abs(label - 4 - y(a)) > 13) g.append(text(wide + 4, y(a) + 4, String(a)));
    if (now) g.append(s("circle", { cx: now[0], cy: now[1], r: 3.5, class: "sd-dot-a" }), text(wide + 4, label, fixed(F.alpha), "sd-b"));
    cycleAxis(g, C, height - 4, F.a.k - 1);
    part.alpha.replaceChildren(g);
  }

  function drawCurve(F, end) {
    const box = part.curve, width = room.curve, height = 224, left = 28, bottom = 26, [A, B, P] = shownLanes();
    if (!width) return;
    const tokens = (lane) => written(lane, lane.cycles.length), wanted = (B.started && B.started.params && B.started.params.max_tokens) || 0;
    const last = axisEnd(end), most = Math.max(4, ...shownLanes().map(tokens), isOver(run) ? 0 : wanted);
    const x = (v) => left + (v / last) * (width - left - 10), y = (n) => height - bottom - (n / most) * (height - bottom - 18), g = svg(width, height, W.charts.curve_aria);
    const step = niceStep(most, 4);
    for (let n = 0; n <= most + EPS; n += step) g.append(line(left, y(n), width, y(n), "sd-grid"), text(left - 6, y(n) + 4, String(n), "", "end"));
    axis(g, 0, last, x, width, height - 8, null);
    for (const [lane, cls] of [[B, "sd-line-b"], [P, "sd-line-c"], [A, "sd-line-a"]]) if (lane) g.append(s("path", { d: stairs(lane, last, x, y), class: "sd-ghost-line" }), s("path", { d: stairs(lane, S.t, x, y), class: cls }));
    if (P) curveKey(g, width - 112, height - bottom - 56);
    else if (isOver(run) && atEnd(end)) finishLabels(g, F, A, B, x, y, width);
    else if (F.a.tokens + F.b.tokens) nowLabels(g, F, x, y, width);
    box.replaceChildren(g);
  }

  /* Three lines are told apart by a key: names beside them would run into each other. */
  function curveKey(g, x, y) {
    const rows = [["sd-line-a", W.charts.speculative], ["sd-line-c", W.charts.peer], ["sd-line-b", W.charts.plain]];
    rows.forEach(([cls, name], i) => g.append(line(x, y + 10 + i * 17, x + 24, y + 10 + i * 17, cls), text(x + 31, y + 14 + i * 17, name)));
  }

  function stairs(lane, until, x, y) {
    let d = `M${x(0).toFixed(1)} ${y(written(lane, 0)).toFixed(1)}`, at = 0;
    lane.cycles.every((cycle, i) => {
      if (cycle.at > until + EPS) return false;
      d += `H${x(cycle.at).toFixed(1)}V${y(written(lane, i + 1)).toFixed(1)}`;
      at = cycle.at;
      return true;
    });
    return until > at && at < lane.end ? d + `H${x(Math.min(until, lane.end)).toFixed(1)}` : d;
  }

  function nowLabels(g, F, x, y, width) {
    const at = x(S.t), flip = at > width - 110, side = flip ? -9 : 9, anchor = flip ? "end" : "start", ya = y(F.a.written), yb = y(F.b.written), apart = Math.abs(ya - yb) < 14 ? 8 : 0, first = F.a.written >= F.b.written ? -1 : 1;
    g.append(line(at, ya, at, yb, "sd-mean"), s("circle", { cx: at, cy: ya, r: 3.5, class: "sd-dot-a" }), s("circle", { cx: at, cy: yb, r: 3.5, class: "sd-dot-b" }));
    g.append(text(at + side, ya + 4 + first * apart, W.charts.speculative + " " + F.a.written, "sd-b", anchor), text(at + side, yb + 4 - first * apart, W.charts.plain + " " + F.b.written, "", anchor));
  }

  function finishLabels(g, F, A, B, x, y, width) {
    if (A.cycles.length && B.cycles.length && F.speedup) {
      const top = y(Math.max(F.a.written, F.b.written)), xa = x(A.end), xb = x(B.end);
      const label = words(W.charts.against, { a: duration(B.end), b: duration(A.end) }) + (F.a.written === F.b.written ? " = " + fixed(F.speedup) + "×" : ""), room = label.length * 6.4;
      if (F.a.written === F.b.written) g.append(line(xa, top, xb, top, "sd-mean"), line(xa, top - 4, xa, top + 4, "sd-mean"), line(xb, top - 4, xb, top + 4, "sd-mean"));
      g.append(text(clamp((xa + xb) / 2, room / 2 + 4, width - room / 2), top - 7, label, "sd-b", "middle"));
      // the faster lane's name stands between the lines where there is room, else above them; the slower one's below
      const name = (lane, n, upper, label, cls) => {
        const above = upper && Math.abs(Math.log(F.speedup)) < 0.35;
        g.append(text(x(lane.end * 0.5) + (above ? -10 : upper ? 10 : 16), y(n * 0.5) + (above ? -12 : upper ? 10 : 22), label, cls, above ? "end" : "start"));
      };
      name(A, F.a.written, F.speedup >= 1, W.charts.speculative, "sd-k");
      name(B, F.b.written, F.speedup < 1, W.charts.plain, "");
    }
  }

  function paintAccount(F) {
    const U = W.figures, [A, B, P] = shownLanes(), p = F.peer, ms = (v) => (v ? duration(v) : "–"), ratio = (v) => (v == null ? "–" : fixed(v) + (P ? "" : " " + U.passes_unit));
    const tpot = (at) => (at.tokens ? ms(at.time / at.tokens) : "–"), drafting = (at) => (at.time ? fixed((at.drafting / at.time) * 100, 0) + " %" : "–");
    const kept = (at) => (at.drafted ? fixed(at.accepted / at.drafted) + (P ? "" : ` (${at.accepted}/${at.drafted})`) : "–");
    const rows = [
      ["ttft", ms(A.zero * 1000), P && ms(P.zero * 1000), ms(B.zero * 1000)],
      ["tpot", tpot(F.a), p && tpot(p), tpot(F.b)],
      ["passes", String(F.a.k), p && String(p.k), String(F.b.k)],
      ["dar", kept(F.a), p && kept(p), ""],
      ["c", ratio(F.c), p && ratio(F.perPass(p.drafting, p.drafted)), ""],
      ["v", ratio(F.v), p && ratio(F.perPass(p.checking, p.checks)), F.b.k ? "1" : ""],
      ["drafting", drafting(F.a), p && drafting(p), ""],
    ].map((row) => row.filter((cell) => cell != null));
    const heads = [W.lane.speculative, ...(P ? [W.lane.peer] : []), W.lane.plain];
    if (!part.account.rows.length || part.account.rows[0].cells.length !== heads.length + 1) {
      part.account.replaceChildren(h("thead", {}, h("tr", {}, h("td"), heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, rows.map(([name]) => h("tr", {}, h("th", { scope: "row" }, term(name, U[name])), heads.map(() => h("td"))))));
    }
    rows.forEach(([, ...values], i) => values.forEach((value, j) => { part.account.tBodies[0].rows[i].cells[j + 1].textContent = value; }));
  }

  /* -- the card: a token's numbers, or what a figure means -- */

  function showCard(anchor, content, pinned) {
    hideCard();
    card = { anchor, pinned };
    anchor.setAttribute("aria-describedby", part.card.id);
    part.card.replaceChildren(...content);
    part.card.hidden = false;
    anchor.classList.add("sd-on");
    const base = root.getBoundingClientRect(), a = anchor.getBoundingClientRect(), c = part.card.getBoundingClientRect();
    const fits = a.bottom + 8 + c.height <= innerHeight, beside = a.right + 12 + c.width <= base.right ? a.right + 12 : a.left - 12 - c.width;
    const aside = !fits && beside >= base.left; // no room below: stand beside the token, over as little as possible
    const left = aside ? beside : a.left - 20, top = aside ? Math.max(8, innerHeight - 8 - c.height) : a.bottom + 8;
    part.card.style.left = clamp(left - base.left, 0, Math.max(0, base.width - c.width)) + "px";
    part.card.style.top = top - base.top + "px";
  }

  function hideCard() {
    if (!card) return;
    card.anchor.classList.remove("sd-on");
    card.anchor.removeAttribute("aria-describedby");
    card = null;
    part.card.hidden = true;
  }

  const showToken = (item, pinned) => item.now !== "fut" && showCard(item.node, item.draft ? draftCard(item) : ownCard(item), pinned);
  const showTerm = (node, pinned) => showCard(node, [h("b", {}, node.textContent), h("p", { class: "sd-sub" }, node.definition)], pinned);

  const cardHead = (item, place) => [h("div", { class: "sd-cardhead" }, chip(W, item.piece, item.now, "span"), h("b", {}, statusOf(item.now, item))), h("p", { class: "sd-sub" }, place)];

  function draftCard(item) {
    const { draft, cycle, i } = item, C = W.card, test = testOf(item), at = { cycle: cycle.number, i: i + 1, n: cycle.drafts.length, level: draft.level, levels: depthOf(cycle) };
    const head = cardHead(item, words(cycle.tree ? C.tree_place : C.place, at));
    if (item.now === "pen") return head;
    const rows = [[C.p, chance(draft.p)], [C.q, chance(draft.q)]];
    if (test.label) rows.push([test.label, chance(test.stay)], [C.u, test.u != null ? chance(test.u) : item.lane === 2 && draft.status !== "discarded" ? C.untold : C.not_drawn]);
    if (draft.overlap != null) rows.push([C.beta, chance(draft.overlap)]);
    const notes = [test.note, item.state === "cut" ? C.cut : item.state === "dis" ? whyDiscarded(draft, cycle) : null];
    return [...head, h("div", { class: "sd-kv" }, rows.map(([name, value]) => [h("span", {}, name), h("b", {}, value)])), test.label ? coin(test) : null, notes.map((note) => note && h("p", { class: "sd-sub" }, note)), laws(draft)].flat().filter(Boolean);
  }

  /* What decided: a coin against a chance, or no coin at all. */
  function testOf({ draft, lane }) {
    const C = W.card, rule = ruleName(lane), judged = draft.status !== "discarded", { u } = draft;
    if (lane === 2) return { label: C.chance, stay: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1, words: judged ? C.untold : C.never };
    if (draft.h != null) return { label: C.block, stay: draft.h, u, words: C.not_needed, note: u == null ? C.longer : null };
    const without = Object.hasOwn(C.without_coin, rule) ? C.without_coin[rule] : judged && u == null && C.without_coin.other;
    if (without) return { note: judged ? without : null };
    return { label: C.chance, stay: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1, u, words: C.never };
  }

  function whyDiscarded(draft, cycle) {
    const C = W.card, up = cycle.drafts[draft.parent];
    if (draft.u != null) return C.dis_block;
    if (!cycle.tree) return C.dis;
    return !up || up.state === "acc" ? C.dis_beside : C.dis_branch;
  }

  const ruleName = (l) => { const { started } = shownLanes()[l]; return started ? started.rule : ""; };

  function ownCard(item) {
    const C = W.card, greedy = isGreedy(), straight = Object.hasOwn(C.without_coin, ruleName(item.lane)), place = item.place === "first" ? C.first_place : item.lane === 1 ? words(C.plain_place, { i: item.cycle.number + 1 }) : words(C.own_place, { cycle: item.cycle.number });
    const told = item.state === "res" && greedy ? C.res_greedy : item.state === "res" && straight ? C.res_straight : C[item.state] || C.pla, own = item.own;
    const parts = [...cardHead(item, place), h("p", { class: "sd-sub sd-told" }, told)];
    if (own.p != null) parts.push(h("div", { class: "sd-kv" }, h("span", {}, C.own_p), h("b", {}, chance(own.p))));
    if (own.law) parts.push(oneLaw(own.law, item.state === "res" && !greedy && !straight ? C.residual : C.target));
    return parts;
  }

  const isGreedy = () => { const started = speculative(run).started; return Boolean(started && started.params && started.params.temperature === 0); };

  /* The strip from 0 to 1: green stays, hatched goes, a pin where the coin fell. */
  function coin({ label, stay, u, words }) {
    const width = 298, H = hatch(), g = svg(width, 32, label, H.defs);
    g.append(rect(0, 12, width * stay, 10, { class: "sd-f-acc" }), rect(width * stay, 12, width * (1 - stay), 10, { fill: H.fill }));
    if (u == null) g.append(text(width, 9, words, "", "end"));
    else g.append(line(width * u, 6, width * u, 27, "sd-pin"), text(clamp(width * u, 5, width - 5), 5, "u", "sd-b", "middle"));
    return g;
  }

  /* The likeliest tokens of both laws, the drafted one first. */
  function laws(draft) {
    const target = draft.target ? draft.target.top : [], source = draft.draft ? draft.draft.top : [];
    if (!target.length && !source.length) return null;
    const rows = new Map([[draft.token, { piece: draft.piece, p: draft.p, q: draft.q }]]);
    for (const [list, name] of [[target, "p"], [source, "q"]]) for (const one of list) {
      if (!rows.has(one.token)) rows.set(one.token, { piece: one.piece });
      if (rows.get(one.token)[name] == null) rows.get(one.token)[name] = one.prob;
    }
    const [first, ...others] = rows.values();
    others.sort((a, b) => Math.max(b.p || 0, b.q || 0) - Math.max(a.p || 0, a.q || 0));
    const shownRows = [first, ...others.slice(0, 5)], both = source.length > 0, most = Math.max(EPS, ...shownRows.flatMap((r) => [r.p || 0, r.q || 0]));
    const g = svg(298, 22 + shownRows.length * 20, W.card.target, text(96, 12, W.card.target), both ? text(204, 12, W.card.draft) : null);
    shownRows.forEach((r, j) => {
      g.append(pieceLabel(r.piece, 22 + j * 20));
      bar(g, 96, 22 + j * 20, r.p, most, "target");
      if (both) bar(g, 204, 22 + j * 20, r.q, most, "draft");
    });
    return g;
  }

  function oneLaw(law, label) {
    const rows = law.top.slice(0, 6), most = Math.max(EPS, ...rows.map((r) => r.prob)), g = svg(298, 42 + rows.length * 20, label, text(96, 12, label));
    rows.forEach((r, j) => { g.append(pieceLabel(r.piece, 22 + j * 20)); bar(g, 96, 22 + j * 20, r.prob, most, "target", 150); });
    const rest = law.rest + law.top.slice(6).reduce((sum, r) => sum + r.prob, 0);
    g.append(text(0, 22 + rows.length * 20 + 11, W.card.rest), text(96, 22 + rows.length * 20 + 11, chance(rest)));
    return g;
  }

  function pieceLabel(piece, y) {
    const label = shown(piece);
    return s("text", { x: 0, y: y + 11, class: "sd-tk" }, label.length > 11 ? label.slice(0, 10) + "…" : label);
  }

  function bar(g, x, y, value, most, model, room = 62) {
    if (value == null) return g.append(text(x, y + 11, "·"));
    const wide = (value / most) * room;
    g.append(rect(x, y + 2, wide, 10, { class: "sd-f-" + model }), text(x + wide + 4, y + 11, chance(value)));
  }

  /* -- time -- */

  function seek(t) {
    S.t = clamp(t, 0, horizon(run));
    draw();
  }

  function frame(now) {
    if (!S.playing || !run) return;
    if (now - S.last < (isOver(run) ? FRAME : 2 * FRAME)) return requestAnimationFrame(frame);
    const end = horizon(run), next = S.t + Math.min(now - S.last, 250) / S.slow, stop = S.hold === "armed" ? firstRejection(run) : null;
    S.last = now;
    if (stop && next >= stop.at) return holdAt(stop.at);
    S.t = clamp(next, 0, end);
    if (S.t >= end - EPS && isOver(run)) finish();
    draw();
    if (S.playing) requestAnimationFrame(frame);
  }

  function finish() {
    S.playing = false;
    if (!S.zoomChosen) S.zoom = "run";
  }

  function play(on) {
    if (!run) return;
    clearTimeout(S.timer);
    if (S.hold === "holding") S.hold = "spent";
    if (on && isOver(run) && atEnd(horizon(run))) {
      S.t = 0;
      if (!S.zoomChosen) S.zoom = "close";
    }
    S.playing = on;
    S.last = performance.now();
    draw();
    if (on) requestAnimationFrame(frame);
  }

  /* The first view stops once, where there is something to understand, and goes on if nobody takes over. */
  function holdAt(t) {
    Object.assign(S, { t, playing: false, hold: "holding" });
    draw();
    if (!S.touched) S.timer = setTimeout(() => S.hold === "holding" && play(true), HOLD);
  }

  function touch() {
    S.touched = true;
    clearTimeout(S.timer);
  }

  /* The visitor moves the time by hand: nothing plays by itself any more. */
  function takeOver(t) {
    if (!run) return;
    touch();
    Object.assign(S, { playing: false, hold: "spent" });
    seek(t);
  }

  function jump(t) {
    takeOver(t);
    announce();
  }

  function step(direction) {
    if (!run) return;
    const cycles = speculative(run).cycles, k = doneBy(cycles, S.t), to = clamp(k + direction, 0, cycles.length);
    jump(direction > 0 && k === cycles.length ? horizon(run) : to ? cycles[to - 1].at : 0);
  }

  const announce = () => { part.announce.textContent = part.say.textContent; };

  function setSpeed(slow) {
    S.slow = slow;
    draw();
  }

  function key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.closest("button"), onRange = event.target.matches("input");
    if (event.key === " " && !onButton) toggle();
    else if (event.key === "ArrowRight" && !onRange) step(1);
    else if (event.key === "ArrowLeft" && !onRange) step(-1);
    else if (event.key === "Home" && !onRange) jump(0);
    else if (event.key === "End" && !onRange) jump(Infinity);
    else if (/^[1-4]$/.test(event.key)) setSpeed(SPEEDS[event.key - 1][0]);
    else return;
    event.preventDefault();
  }

  function toggle() {
    touch();
    play(!S.playing);
    if (!S.playing) announce();
  }

  function download() {
    const url = URL.createObjectURL(new Blob([props.value || ""], { type: "application/x-ndjson" }));
    h("a", { href: url, download: "specdec-" + String((run && run.header.run) || "run").replace(/[^\w-]/g, "").slice(0, 40) + ".jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  /* -- listening -- */

  function listen() {
    part.play.onclick = toggle;
    part.back.onclick = () => step(-1);
    part.next.onclick = () => step(1);
    part.download.onclick = download;
    part.scrub.oninput = () => takeOver(+part.scrub.value);
    part.scrub.onchange = announce;
    part.speed.onclick = (event) => event.target.dataset.slow && setSpeed(+event.target.dataset.slow);
    part.zoom.onclick = (event) => {
      if (!event.target.dataset.zoom) return;
      Object.assign(S, { zoom: event.target.dataset.zoom, zoomChosen: true });
      draw();
    };
    part.stage.addEventListener("keydown", key);
    part.stage.addEventListener("pointerdown", touch);
    const target = (event) => event.target.closest("button.sd-tok, .sd-term");
    const open = (node, pinned) => (node.item ? showToken(node.item, pinned) : showTerm(node, pinned));
    root.addEventListener("pointerover", (event) => { const node = target(event); if (node && event.pointerType === "mouse" && !(card && card.pinned)) open(node, false); });
    root.addEventListener("pointerout", (event) => { if (target(event) && card && !card.pinned) hideCard(); });
    root.addEventListener("focusin", (event) => { const node = target(event); if (node && node.matches(":focus-visible")) { touch(); open(node, false); } });
    root.addEventListener("focusout", () => hideCard());
    root.addEventListener("click", (event) => { const node = target(event); if (node) { touch(); card && card.pinned && card.anchor === node ? hideCard() : open(node, true); } });
    document.addEventListener("pointerdown", (event) => { if (card && card.pinned && !target(event) && !event.target.closest(".sd-inline")) hideCard(); });
    document.addEventListener("keydown", (event) => event.key === "Escape" && hideCard()); // wherever the focus is
    new ResizeObserver(() => { if (run && measure()) resized(); }).observe(root);
  }

  Object.assign(root, { kit: KIT, words: W, run: () => run, log: () => props.value || "", load }); // for the other views of the same run
  furniture();
  listen();
  pull();
  watch("value", pull);
  watch("ended", ended);
}

const KIT = {
  fold, apply, read, newReader, figuresAt, horizon, firstRejection, tipOf, partAt, doneBy, isOver, wasStopped, speculative,
  fill, words, sentences, shown, visible, chance, duration, fixed, clamp, niceStep, pick, h, s, text, line, rect, svg, hatch, chip,
};
if (typeof module !== "undefined" && module.exports) module.exports = KIT;
else mount(element, props, watch);
