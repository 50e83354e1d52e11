/* Takes one cycle apart: draft, check, judge, replace or bonus, commit; and asks what if.
 *
 * First what decides, without a document, so that Node can hold it against the engine's own rules. Then the drawing.
 * The run itself and the small makers of elements are the player's. Words are looked up, text enters by `append`. */

const KIT = typeof module === "undefined" ? document.querySelector(".sd-player").kit : require("../race/player.js");

/* ---- what decides -------------------------------------------------------------------------------------------- */

const REJECTION = "rejection sampling", NOISE = "shared noise", BLOCK = "block verification", TYPICAL = "typical acceptance", FIRST = "first choice";
const RULES = [REJECTION, NOISE, BLOCK, TYPICAL, FIRST];
const EPSILON = 0.09, DELTA = 0.3; // of typical acceptance, as in the engine

/* What a question needs and this cycle does not hold, as the name of a sentence; null if it can be answered. */
function lacks(cycle, rule) {
  const { drafts, tree } = cycle;
  if (rule === REJECTION) return null;
  if (rule === BLOCK) return tree ? "tree" : drafts.every((draft) => chanceOfBlock(draft) != null) ? null : "block";
  const heads = drafts.filter((draft) => headOf(drafts, draft) === draft);
  if (rule === NOISE) return heads.every((draft) => draft.target && draft.target.sample) ? null : "sample";
  return heads.every((draft) => draft.target && draft.target.top.length) ? null : "laws";
}

const chanceOfBlock = (draft) => draft.h ?? draft.block;

/* The first of the guesses for a place: its `target` is the target's own row there. */
const headOf = (drafts, draft) => drafts.find((one) => one.parent === draft.parent);

/* The target's probability of each draft before any sibling was tried. Only a coin takes a sibling off; of one that was
 * drawn the event tells it. */
function rawOf(drafts) {
  const left = {};
  return drafts.map((draft) => {
    if (draft.q < 1) return draft.row ?? draft.p;
    const rest = left[draft.parent] ?? 1;
    if (draft.u != null) left[draft.parent] = rest * (1 - draft.p);
    return draft.p * rest;
  });
}

/* A coin for a draft that nobody judged: always the same one, so that a question has one answer. */
function freshCoin(number, node) {
  let x = (number * 0x9e3779b1 + node * 0x85ebca6b + 1) | 0;
  x = Math.imul(x ^ (x >>> 15), x | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
}

/* The cycle under another rule, with a shorter draft or with other coins: `choice` is { rule, k, coins }. */
function judge(cycle, choice) {
  const k = choice.k ?? Infinity, drafts = cycle.drafts.map((draft) => (draft.level <= k ? draft : { ...draft, parent: null })), raw = rawOf(cycle.drafts);
  const coin = (node) => choice.coins && choice.coins[node] != null ? choice.coins[node] : drafts[node].u ?? freshCoin(cycle.number, node);
  const walk = { [REJECTION]: byCoins, [NOISE]: bySample, [BLOCK]: byBlock, [TYPICAL]: byThreshold, [FIRST]: byFirst }[choice.rule];
  return { rule: choice.rule, k, ...walk(drafts, raw, coin) };
}

/* Walks down the tree: `keep` tries one guess after another, in a place where `tip` is the last token kept. */
function descend(drafts, keep) {
  const path = [], order = [], trials = {};
  for (let tip = -1; ; ) {
    const tried = [];
    let kept = null;
    for (const draft of drafts.filter((one) => one.parent === tip)) {
      const node = drafts.indexOf(draft), trial = (trials[node] = keep(draft, node, tried));
      order.push(node);
      tried.push(node);
      if (trial.kept) { kept = node; break; }
    }
    if (kept === null) return { path, order, trials, tip };
    path.push((tip = kept));
  }
}

/* Kept while u·q < p. A rejected sibling that is a point mass leaves the others its share of p; behind those that were
 * drawn the event tells what is left. */
function byCoins(drafts, raw, coin) {
  return descend(drafts, (draft, node, tried) => {
    const rest = tried.reduce((left, one) => left - raw[one], 1), u = coin(node);
    const p = !tried.length ? raw[node] : draft.q < 1 ? (draft.behind ?? draft.p) : rest > 0 ? Math.min(1, raw[node] / rest) : raw[node];
    return { p, q: draft.q, u, chance: Math.min(1, p / draft.q), kept: u * draft.q < p };
  });
}

/* All guesses for a place are looked at together; the one that is wanted, if any, is kept. */
function together(drafts, wanted) {
  const path = [], order = [], trials = {};
  for (let tip = -1; ; ) {
    const here = drafts.map((draft, node) => node).filter((node) => drafts[node].parent === tip), found = here.map((node) => wanted(drafts[node], node));
    const at = found.findIndex((one) => one.kept);
    (at < 0 ? here : [here[at]]).forEach((node) => { order.push(node); trials[node] = found[here.indexOf(node)]; });
    if (at < 0) return { path, order, trials, tip };
    path.push((tip = here[at]));
  }
}

function bySample(drafts, raw) {
  return together(drafts, (draft, node) => {
    const { sample } = headOf(drafts, draft).target;
    return { p: raw[node], q: draft.q, sample, kept: sample.token === draft.token };
  });
}

function byFirst(drafts, raw) {
  return together(drafts, (draft, node) => {
    const first = headOf(drafts, draft).target.top[0];
    return { p: raw[node], q: draft.q, sample: first, kept: first.token === draft.token };
  });
}

/* The deepest path whose every token the target finds plausible. */
function byThreshold(drafts, raw) {
  const limits = drafts.map((draft) => Math.min(EPSILON, DELTA * Math.exp(-headOf(drafts, draft).target.entropy))), plausible = new Set([-1]), level = (node) => (node < 0 ? 0 : drafts[node].level);
  drafts.forEach((draft, node) => { if (plausible.has(draft.parent) && raw[node] >= limits[node]) plausible.add(node); });
  const deepest = [...plausible].reduce((best, node) => (level(node) > level(best) ? node : best), -1), kept = new Set();
  for (let node = deepest; node >= 0; node = drafts[node].parent) kept.add(node);
  return together(drafts, (draft, node) => ({ p: raw[node], q: draft.q, limit: limits[node], kept: kept.has(node) }));
}

/* The longest block whose coin falls below its h; the coins are tossed from the end. */
function byBlock(drafts, raw, coin) {
  const weights = weightsOf(drafts), order = [], trials = {}, last = drafts.filter((draft) => draft.parent !== null).length - 1;
  let kept = last + 1;
  for (; kept > 0; kept--) {
    const node = kept - 1, { p, q } = drafts[node], h = node === last ? weights[kept] : chanceOfBlock(drafts[node]), u = coin(node);
    trials[node] = { p, q, u, h, chance: h, kept: u < h };
    order.push(node);
    if (u < h) break;
  }
  const path = Array.from({ length: kept }, (_, node) => node);
  return { path, order, trials, tip: kept - 1, weight: weights[kept] };
}

/* Of the prefixes of a chain, the empty one first. */
function weightsOf(drafts) {
  const weights = [1];
  drafts.forEach((draft, i) => weights.push(Math.min(1, (weights[i] * draft.p) / draft.q)));
  return weights;
}

/* What really happened, in the same shape. */
function recorded(cycle, rule) {
  const { drafts } = cycle, accepted = (draft) => draft.status === "accepted", trials = {};
  const path = drafts.map((_, node) => node).filter((node) => accepted(drafts[node])), tip = path.length ? path[path.length - 1] : -1;
  let order = drafts.map((_, node) => node).filter((node) => drafts[node].status !== "discarded");
  if (rule === BLOCK) order = drafts.map((_, node) => node).filter((node) => drafts[node].u != null).reverse();
  else order.sort((a, b) => drafts[a].level - drafts[b].level || a - b);
  for (const node of order) {
    const draft = drafts[node], { p, q, u, h } = draft, head = headOf(drafts, draft), law = head.target;
    trials[node] = { p, q, kept: rule === BLOCK ? u < h : accepted(draft) };
    if (rule === BLOCK) Object.assign(trials[node], { u, h, chance: h });
    else if (u != null) Object.assign(trials[node], { u, chance: Math.min(1, p / q) });
    else if (rule === NOISE && law) trials[node].sample = law.sample;
    else if (rule === TYPICAL && law) trials[node].limit = Math.min(EPSILON, DELTA * Math.exp(-law.entropy));
  }
  return { rule, k: Infinity, path, order, trials, tip, weight: weightsOf(drafts)[path.length] };
}

/* Accepted, rejected, discarded, or out: never drafted. */
function statesOf(cycle, verdict) {
  const { path, trials, tip, rule, k } = verdict;
  return cycle.drafts.map((draft, node) => {
    if (draft.level > k) return "out";
    if (path.includes(node)) return "acc";
    return (rule === BLOCK ? draft.parent === tip : node in trials) ? "rej" : "dis";
  });
}

/* The token that the target adds: drawn from what, and, where the trace can tell, which one it is. */
function ownOf(cycle, verdict, theirs) {
  const { drafts } = cycle, { tip, rule, order, k } = verdict, head = drafts.find((draft) => draft.parent === tip);
  const bonus = !head || head.level > k, rejected = !bonus && (rule === REJECTION || rule === BLOCK), node = rejected ? (rule === BLOCK ? tip + 1 : order[order.length - 1]) : -1;
  const law = (head ? head.target : cycle.tree ? null : cycle.bonus) || null, state = !drafts.length ? "pla" : bonus ? "bon" : "res", own = { state, node, law, sample: null };
  if (same(verdict, theirs) && (!cycle.own || cycle.own.state === state)) {
    if (!cycle.own) return null; // the text ended inside the draft
    return { ...own, law: law || cycle.own.law, sample: { token: cycle.own.token, piece: cycle.own.piece, prob: cycle.own.p } };
  }
  if (rejected) own.sample = drawnFrom(drafts, node, rule === theirs.rule);
  else if (law) own.sample = rule === FIRST ? law.top[0] : law.sample || null;
  return own;
}

const same = (a, b) => a.rule === b.rule && String(a.path) === String(b.path);

/* The stored draw from a residual serves where the same rule asks behind the same siblings. */
function drawnFrom(drafts, node, fits) {
  const { residual, parent } = drafts[node], elders = drafts.slice(0, node).filter((one) => one.parent === parent);
  return (fits && residual && elders.every((one) => one.u != null) && residual.sample) || null;
}

/* Both laws of a place over the tokens of which both are known, and all others together; p comes with a weight. */
function lawsOf(draft, weight = 1) {
  const P = draft.target, Q = draft.draft, rows = new Map(), paired = Boolean(P && P.sample); // older traces list each law's own favourites
  const add = (token, piece) => rows.has(token) || rows.set(token, { token, piece, p: valueIn(P, token, paired), q: valueIn(Q, token, paired) });
  add(draft.token, draft.piece);
  for (const law of [P, Q]) for (const one of law ? law.top : []) add(one.token, one.piece);
  Object.assign(rows.get(draft.token), { p: draft.p, q: draft.q });
  const all = [...rows.values()], known = all.filter((row) => row.p != null && row.q != null), sum = (list, of) => list.reduce((total, row) => total + of(row), 0);
  known.forEach((row) => { row.p *= weight; });
  const rest = { p: Math.max(0, weight - sum(known, (row) => row.p)), q: Math.max(0, 1 - sum(known, (row) => row.q)) };
  const beta = weight === 1 && draft.overlap != null ? draft.overlap : null, both = sum(known, (row) => Math.min(row.p, row.q));
  rest.min = beta == null ? Math.min(rest.p, rest.q) : Math.min(rest.p, rest.q, Math.max(0, beta - both));
  return { known, half: all.filter((row) => !known.includes(row)), rest, overlap: both + rest.min, surplus: sum(known, (row) => Math.max(0, row.p - row.q)) + rest.p - rest.min };
}

function valueIn(law, token, paired) {
  const one = law && law.top.find((candidate) => candidate.token === token);
  return one ? one.prob : law && (paired || law.rest < 1e-6) ? 0 : null;
}

/* The sub-steps of a cycle: names, and the number of a node for its judgement. */
function stepsOf(cycle, verdict, states, own) {
  if (!cycle.drafts.length) return ["check", "own", "commit"];
  const late = verdict.rule !== BLOCK && states.includes("dis");
  return ["draft", "check", ...verdict.order, ...(late ? ["late"] : []), ...(own ? ["own"] : []), "commit"];
}

/* ---- the drawing --------------------------------------------------------------------------------------------- */

const PACES = [["slow", 5000], ["steady", 2500], ["quick", 900]];
const SHOWN = 7; // tokens in a chart, the rest goes to "all others"

/* Enough digits to tell two numbers apart. */
function apart(a, b) {
  let digits = 2;
  while (digits < 6 && a !== b && a.toFixed(digits) === b.toFixed(digits)) digits++;
  return [a.toFixed(digits), b.toFixed(digits)];
}
const figure = (x) => (x >= 0.1 || x === 0 ? x.toFixed(2) : x >= 0.001 ? x.toPrecision(2) : x.toExponential(0));

function mount(element, props) {
  const { h, s, text, line, rect, svg, hatch, chip, fill, words, sentences, shown, visible, chance, duration, clamp, pick, speculative, firstRejection } = KIT;
  const W = props.words, player = document.querySelector(".sd-player"), PW = player.words, root = element.querySelector(".sd-step"), part = {};
  for (const node of root.querySelectorAll("[data-part]")) part[node.dataset.part] = node;
  const S = { cycle: 0, step: "draft", choice: {}, coin: null, notation: "plain", pace: 2500, playing: false, timer: 0 };
  let run = null, built = 0, spans = [], now = null;

  /* -- the run, and where we stand in it -- */

  function pull() {
    const next = player.run();
    if (!next || !speculative(next).cycles.length) { root.dataset.state = "empty"; part.empty.textContent = W.empty; return; }
    if (next !== run) begin(next);
    root.dataset.state = "ready";
    writeText();
    draw();
  }

  function begin(next) {
    run = next;
    built = 0;
    spans = [];
    part.text.replaceChildren(h("span", { class: "sd-prompt" }, visible(run.header.prompt || "")), ...(speculative(run).first ? speculative(run).first.pieces.map(visible) : []));
    const cycle = firstRejection(run), rejected = cycle ? recorded(cycle, rule()).order.find((node) => cycle.drafts[node].state === "rej") : null;
    go(cycle ? cycle.number - 1 : 0, rejected ?? "draft", false);
  }

  const cycles = () => speculative(run).cycles;
  const started = () => speculative(run).started || {};
  const rule = () => started().rule || REJECTION;
  const isGreedy = () => Boolean(started().params && started().params.temperature === 0);
  const asked = () => S.choice.rule != null || S.choice.k != null || S.choice.coins != null;

  /* Everything that is drawn, from the cycle and the question. */
  function look() {
    const cycle = cycles()[S.cycle], theirs = recorded(cycle, rule()), touched = asked();
    const verdict = touched ? judge(cycle, { ...S.choice, rule: S.choice.rule || rule() }) : theirs;
    const states = touched ? statesOf(cycle, verdict) : cycle.drafts.map((draft) => draft.state);
    if (!touched) verdict.order = verdict.order.filter((node) => states[node] !== "cut");
    const own = ownOf(cycle, verdict, theirs), steps = stepsOf(cycle, verdict, states, own);
    return { cycle, theirs, touched, verdict, states, own, steps, gained: touched || own ? verdict.path.length + (own ? 1 : 0) : cycle.gained };
  }

  function draw(byHand) {
    if (!run || !root.clientWidth) return;
    const held = root.contains(document.activeElement), onRail = part.rail.contains(document.activeElement);
    now = look();
    if (!now.steps.includes(S.step)) S.step = now.own ? "own" : "commit";
    now.at = now.steps.indexOf(S.step);
    paintHead();
    paintText();
    paintRail();
    part.say.replaceChildren(...(now.touched ? [h("b", {}, W.what_if.mark), " "] : []), ...sentence());
    if (byHand) part.announce.textContent = part.say.textContent;
    paintGrid();
    paintPosition();
    paintOwn();
    paintQuestions();
    paintTransport();
    // What had the focus may have been drawn anew; the keys must go on working.
    if (held && !root.contains(document.activeElement)) (onRail ? part.rail.querySelector("[aria-current] button") : part.grid).focus({ preventScroll: true });
  }

  /* -- moving -- */

  function go(cycle, step, byHand = true) {
    S.cycle = clamp(cycle, 0, cycles().length - 1);
    Object.assign(S, { choice: {}, step, coin: null });
    if (byHand) draw(true);
  }

  function step(direction) {
    const at = now.at + direction;
    if (at >= 0 && at < now.steps.length) { S.step = now.steps[at]; S.coin = null; return draw(true), true; }
    const next = S.cycle + direction;
    if (next < 0 || next >= cycles().length) return false;
    go(next, "draft", false);
    S.step = direction > 0 ? look().steps[0] : "commit";
    draw(true);
    return true;
  }

  const hop = (direction) => { const to = S.cycle + direction; if (to >= 0 && to < cycles().length) go(to, cycles()[to].drafts.length ? "draft" : "check"); };

  function play(on) {
    clearTimeout(S.timer);
    S.playing = on;
    if (on) S.timer = setTimeout(() => play(root.clientWidth > 0 && step(1)), S.pace);
    paintTransport();
  }

  /* A key or a press takes over from the replay. */
  const byHand = (act) => { play(false); act(); };

  /* -- the head, the text, the rail -- */

  function paintHead() {
    part.title.textContent = words(W.title, { cycle: S.cycle + 1, cycles: cycles().length });
    part.previous.disabled = S.cycle === 0;
    part.following.disabled = S.cycle === cycles().length - 1;
    part.hint.replaceChildren(...(now.touched ? [W.what_if.grey, " ", button(W.what_if.reset, "sd-link", () => { S.choice = {}; draw(true); })] : [W.hint]));
  }

  const button = (label, cls, act) => { const node = h("button", { type: "button", class: cls }, label); node.onclick = () => byHand(act); return node; };

  function writeText() {
    for (; built < cycles().length; built++) {
      spans.push(h("span", { class: "sd-part" }));
      part.text.append(spans[built]);
      plainPart(built);
    }
  }

  /* What a cycle gave, as words to click. They are no buttons, because lines would break at each: inside words, too. */
  function plainPart(i) {
    const cycle = cycles()[i];
    spans[i].replaceChildren(...cycle.pieces.map((piece, j) => {
      const node = h("span", { role: "button", class: "sd-word", tabindex: -1, "aria-label": words(W.word, { piece: shown(piece), cycle: i + 1 }) }, visible(piece));
      node.onclick = () => byHand(() => go(i, judgedAt(cycle, j)));
      return node;
    }));
  }

  /* Where the j-th token of a cycle was decided. Of a block that was kept, only the last token had a coin. */
  function judgedAt(cycle, j) {
    const { path, order } = recorded(cycle, rule());
    return j >= path.length ? "own" : order.includes(path[j]) ? path[j] : order[order.length - 1];
  }

  function paintText() {
    if (S.open !== undefined && S.open !== S.cycle && spans[S.open]) plainPart(S.open);
    S.open = S.cycle;
    const { cycle, states, own } = now, nodes = nodesShown();
    const chips = nodes.map((node) => chipOf(node, revealed(node) ? states[node] : "pen")), rest = cycle.drafts.length - nodes.length - states.filter((state) => state === "out").length;
    const more = rest > 0 && revealed(-1) ? [chip(PW, words(W.more, { n: rest }), "dis", "span")] : [];
    const last = own && now.at >= now.steps.indexOf("own") ? [ownChip("button")] : [];
    spans[S.cycle].replaceChildren(...[...chips, ...more, ...last].map((node) => { node.tabIndex = node.matches("button") ? 0 : -1; return node; }));
    spans.forEach((span, i) => { span.className = "sd-part" + (i > S.cycle ? (now.touched ? " sd-grey" : " sd-ahead") : ""); });
    const box = part.text, place = spans[S.cycle];
    if (place.offsetTop < box.scrollTop || place.offsetTop + place.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = place.offsetTop - 40;
  }

  function chipOf(node, state, tag = "button") {
    const made = chip(PW, now.cycle.drafts[node].piece, state, tag);
    made.classList.toggle("sd-on", S.step === node && tag === "button");
    if (tag === "button") made.onclick = () => byHand(() => { S.step = now.steps.includes(node) ? node : now.steps.includes("late") ? "late" : "own"; S.coin = null; draw(true); });
    return made;
  }

  function ownChip(tag) {
    const { own } = now, made = chip(PW, own.sample ? own.sample.piece : "…", own.state, tag);
    if (tag === "button") made.onclick = () => byHand(() => { S.step = "own"; draw(true); });
    return made;
  }

  /* Of a chain every draft, of a tree those that somebody judged: on screen a tree is its path, and what was tried. */
  function nodesShown() {
    const { cycle, states, verdict } = now, all = cycle.drafts.map((_, node) => node).filter((node) => states[node] !== "out");
    return cycle.tree ? all.filter((node) => verdict.order.includes(node)).sort((a, b) => verdict.order.indexOf(a) - verdict.order.indexOf(b)) : all;
  }

  /* A draft keeps its verdict to itself until its turn; -1 stands for those that never have one. */
  function revealed(node) {
    const { verdict, at, steps } = now, turn = verdict.order.indexOf(node), end = verdict.order.length ? 1 + verdict.order.length : 2;
    return at >= (turn < 0 ? Math.min(end, steps.length - 1) : 2 + turn);
  }

  function paintRail() {
    const { verdict, cycle, steps, at, own } = now, many = steps.length > 9;
    part.rail.classList.toggle("sd-many", many);
    part.rail.replaceChildren(...steps.map((name, i) => {
      const label = typeof name === "number" ? words(many && i !== at ? "{n}" : W.rail.judge, { n: placeOf(name) }) : name === "own" ? W.rail[own.state] : W.rail[name];
      const node = h("button", { type: "button", "aria-label": typeof name === "number" ? words(W.rail.judge, { n: placeOf(name) }) : null }, label);
      node.onclick = () => byHand(() => { S.step = name; S.coin = null; draw(true); });
      return h("li", { class: (i < at ? "sd-done" : "") + (name === "late" ? " sd-late" : ""), "aria-current": i === at ? "step" : null }, node);
    }));
    part.rail.setAttribute("aria-label", W.rail.aria);
  }

  /* A draft's number for people: its place in a chain; in a tree the order in which it is tried. */
  const placeOf = (node) => (now.cycle.tree ? now.verdict.order.indexOf(node) : node) + 1;

  /* -- the sentence -- */

  const mark = (state, piece) => h("mark", { class: "sd-" + state }, shown(piece));

  function sentence() {
    const { cycle, states, own, gained } = now, Y = W.say, n = states.filter((state) => state !== "out").length;
    if (S.step === "draft") return fill(cycle.tree ? Y.draft_tree : n === 1 ? Y.draft_one : Y.draft, { n, time: cycle.draft ? duration(cycle.draft.end - cycle.draft.start) : "–", levels: Math.max(...cycle.drafts.map((draft) => draft.level)) });
    if (S.step === "check") return fill(n ? Y.check : Y.check_plain, { rows: n + 1, time: passTime() });
    if (S.step === "late") return fill(cycle.tree ? Y.late_tree : states.filter((state) => state === "dis").length === 1 ? Y.late_one : Y.late, { n: states.filter((state) => state === "dis").length });
    if (S.step === "commit") return fill(!own ? Y.ended : gained === 1 ? (n ? Y.commit_one : Y.commit_plain) : Y.commit, { n: gained, drafts: n });
    if (S.step === "own") return ownSentence();
    return judgeSentence(S.step);
  }

  const passTime = () => (now.cycle.check ? duration(now.cycle.check.end - now.cycle.check.start) : "–");

  function judgeSentence(node) {
    const { verdict, cycle } = now, Y = W.judge, trial = verdict.trials[node], { piece } = cycle.drafts[node], [u, r] = trial.u == null ? ["–", "–"] : apart(trial.u, trial.chance);
    const told = { x: mark(trial.kept ? "acc" : "rej", piece), p: figure(trial.p), q: figure(trial.q), r, h: r, u, verdict: h("b", {}, trial.kept ? Y.keep : Y.reject), limit: trial.limit == null ? "–" : figure(trial.limit), sample: trial.sample ? shown(trial.sample.piece) : "–" };
    const fresh = trial.u != null && cycle.drafts[node].u == null && !(S.choice.coins && S.choice.coins[node] != null) ? [Y.fresh] : [];
    if (verdict.rule === NOISE) return fill(trial.sample ? Y.noise : Y.plain, told);
    if (verdict.rule === FIRST) return fill(Y.first, told);
    if (verdict.rule === TYPICAL) return fill(trial.limit == null ? Y.plain : Y.typical, told);
    if (trial.u == null) return fill(Y.plain, told);
    if (verdict.rule === BLOCK) return [...fill(Y.block, { ...told, verdict: h("b", {}, trial.kept ? Y.keep_block : Y.reject_block) }), ...fresh];
    if (isGreedy()) return fill(trial.kept ? Y.greedy : Y.not_greedy, told);
    return trial.p >= trial.q ? fill(Y.sure, told) : [...fill(Y.coin, told), ...fresh];
  }

  function ownSentence() {
    const { own, verdict } = now, Y = W.own_says, rejected = own.node >= 0;
    const name = own.sample ? mark(own.state, own.sample.piece) : h("span", {}, guess());
    const key = own.state === "pla" ? "pla" : own.state === "bon" ? "bonus" : rejected ? (isGreedy() ? "greedy" : "residual") : verdict.rule === NOISE ? "noise" : verdict.rule === FIRST ? "greedy" : "straight";
    return fill(Y[key], { own: name });
  }

  /* Where the trace does not tell which token would be drawn, the likeliest. */
  function guess() {
    const { own, cycle, verdict } = now;
    if (own.node < 0) return own.law && own.law.top.length ? words(W.own_says.likeliest, { x: shown(own.law.top[0].piece), p: figure(own.law.top[0].prob) }) : W.own_says.unknown;
    const laws = lawsOf(cycle.drafts[own.node], verdict.rule === BLOCK ? verdict.weight : 1), best = [...laws.known].sort((a, b) => b.p - b.q - a.p + a.q)[0];
    return best && best.p > best.q ? words(W.own_says.likeliest, { x: shown(best.piece), p: figure((best.p - best.q) / laws.surplus) }) : W.own_says.unknown;
  }

  /* -- draft, pass, verdict: one column a draft -- */

  function paintGrid() {
    const { cycle, states, own, verdict, at, steps } = now, nodes = nodesShown(), N = W.notation[S.notation], G = W.grid, passed = at >= steps.indexOf("check");
    const hot = (node) => (S.step === node ? " sd-hot" : ""), ownNow = own && at >= steps.indexOf("own");
    const label = (name, sub) => h("div", { class: "sd-rl" }, name, h("small", {}, sub)), cell = (cls, ...inner) => h("div", { class: "sd-cell " + cls }, inner);
    part.grid.style.setProperty("--n", nodes.length + 1);
    part.grid.replaceChildren(
      label(G.draft, cycle.tree ? G.draft_tree : G.draft_sub), ...nodes.map((node) => cell("sd-top" + hot(node), chipOf(node, "pen", "span"), h("span", {}, N.q_short + " " + chance(cycle.drafts[node].q)))), cell(""),
      label(G.target, G.target_sub), h("div", { class: "sd-pass" + (passed ? "" : " sd-off") }, words(nodes.length ? G.pass : G.pass_plain, { time: passTime(), rows: states.filter((state) => state !== "out").length + 1 })),
      label(G.verdict, verdict.rule === BLOCK ? G.verdict_block : cycle.tree ? G.verdict_tree : G.verdict_sub),
      ...nodes.map((node) => cell("sd-bottom" + hot(node), ...verdictCell(node, passed))), cell("", ...(ownNow ? [ownChip("span"), h("span", {}, PW.status[own.state])] : [])));
    const place = part.grid.querySelector(".sd-hot");
    if (place) part.grid.scrollLeft = Math.max(0, place.offsetLeft - part.grid.clientWidth / 2);
  }

  function verdictCell(node, passed) {
    const { states, verdict, cycle } = now, trial = verdict.trials[node], N = W.notation[S.notation];
    if (!revealed(node)) return [h("span", {}, passed ? N.p_short + " " + chance(cycle.drafts[node].p) : "–")];
    const told = !trial ? (states[node] === "acc" ? W.grid.with_it : states[node] === "cut" ? W.grid.cut : W.grid.never) : trial.u == null ? (trial.kept ? W.grid.kept : W.grid.not_kept) : "u " + apart(trial.u, trial.chance).join(trial.kept ? " < " : " ≥ ");
    return [chipOf(node, states[node], "span"), h("span", {}, told)];
  }

  /* -- the position under judgement -- */

  /* The draft whose test is on show: the one under judgement, else the last one that was. */
  function focus() {
    const { verdict, own, at } = now;
    if (typeof S.step === "number") return S.step;
    return at < 2 || !verdict.order.length ? null : own && own.node >= 0 ? own.node : verdict.order[verdict.order.length - 1];
  }

  const section = (title, lead, left, right) => h("section", { class: "sd-sect" }, h("h2", {}, title), h("p", { class: "sd-sub" }, lead), h("div", { class: "sd-pair" }, left, right));
  const column = (title, ...inner) => h("div", {}, h("h3", {}, title), inner);
  const key = (...items) => h("div", { class: "sd-key" }, items.map(([cls, label]) => h("span", {}, h("i", { class: cls }), label)));

  function paintPosition() {
    const node = focus(), P = W.position;
    if (node === null || S.step === "commit") return part.position.replaceChildren();
    const { cycle, verdict } = now, draft = cycle.drafts[node], trial = verdict.trials[node], told = { n: node + 1, level: draft.level, x: shown(draft.piece) };
    if (!trial) return part.position.replaceChildren();
    const left = h("div", { class: "sd-draw" }), right = h("div", { class: "sd-draw" }), N = W.notation[S.notation];
    part.position.replaceChildren(section(words(verdict.rule === BLOCK ? P.title_block : cycle.tree ? P.title_tree : P.title, told), isGreedy() ? P.lead_greedy : verdict.rule === REJECTION && headOf(cycle.drafts, draft) !== draft ? P.lead_sibling : draft.q === 1 ? P.lead_point : P.lead,
      column(P.bars, key(["sd-i-target", N.p_name], ["sd-i-draft", N.q_name]), left), column(trial.u == null ? P.test : P.coin, right)));
    left.append(draft.target ? bars(lawsOf(draft), draft, left.clientWidth) : h("p", { class: "sd-sub" }, W.no_laws));
    right.append(...(trial.u != null ? coinTest(draft, trial, right.clientWidth) : plainTest(draft, trial, right.clientWidth)));
  }

  /* The drafted token first, then the likeliest, then all others. */
  function rowsToShow(laws, draft, own) {
    const all = [...laws.known, ...laws.half], first = all.find((row) => row.token === draft.token), weight = (row) => (own && row.token === own.token ? 2 : Math.max(row.p || 0, row.q || 0));
    const others = all.filter((row) => row !== first).sort((a, b) => weight(b) - weight(a)), kept = [first, ...others.slice(0, SHOWN - 1)], folded = others.slice(SHOWN - 1).filter((row) => row.p != null && row.q != null);
    const rest = { ...laws.rest };
    for (const row of folded) { rest.p += row.p; rest.q += row.q; rest.min += Math.min(row.p, row.q); }
    for (const row of kept) if (row.p == null || row.q == null) { rest.p -= row.p || 0; rest.q -= row.q || 0; }
    return { kept, rest: { ...rest, p: Math.max(0, rest.p), q: Math.max(0, rest.q) } };
  }

  const short = (piece, room) => { const label = shown(piece), most = Math.max(2, Math.floor(room / 7.4)); return label.length > most ? label.slice(0, most - 1) + "…" : label; };

  function bars(laws, draft, width) {
    const { kept, rest } = rowsToShow(laws, draft, now.own && now.own.sample), rows = [...kept, { rest: true, ...rest }], left = 84, high = 34, most = Math.max(1e-6, ...rows.flatMap((row) => [row.p || 0, row.q || 0])), x = (v) => (v / most) * (width - left - 52);
    const g = svg(width, rows.length * high + 6, W.position.bars_aria);
    rows.forEach((row, i) => {
      const y = i * high, cls = i === 0 ? "sd-b" : "sd-k";
      if (i === 0) g.append(rect(-8, y - 3, width + 8, high - 1, { rx: 6, class: "sd-f-hot" }));
      g.append(text(0, y + 18, row.rest ? W.rest : short(row.piece, left), row.rest ? "" : i ? "sd-tk" : "sd-tk sd-b"));
      for (const [value, cls2, dy] of [[row.p, "sd-f-target", 2], [row.q, "sd-f-draft sd-s-draft", 14]]) {
        if (value != null) g.append(rect(left, y + dy, x(value), 11, { class: cls2, "stroke-width": 0.6 }));
        g.append(text(left + (value == null ? 0 : x(value)) + 6, y + dy + 10, value == null ? "·" : chance(value), dy === 2 ? cls : i === 0 ? "sd-b" : ""));
      }
    });
    return g;
  }

  /* A strip from 0 to 1, green where the token stays, hatched where it goes, and the pin where the coin fell. */
  function coinTest(draft, trial, width) {
    const P = W.position, N = W.notation[S.notation], H = hatch(), r = trial.chance, { u } = trial, g = svg(width, 96, P.coin_aria, H.defs), [us, rs] = apart(u, r);
    g.append(rect(0, 44, width * r, 26, { class: "sd-f-acc sd-o-acc" }), rect(width * r, 44, width * (1 - r), 26, { fill: H.fill, class: "sd-s-rej" }), text(0, 88, "0"), text(width, 88, "1", "", "end"));
    if (r > 0.04 && r < 0.96) g.append(text(width * r, 88, rs, "sd-b", "middle"));
    if (width * r > 50) g.append(text(8, 61, P.keep, "sd-on"));
    if (width * (1 - r) > 76) g.append(rect(width - 54, 48, 48, 18, { class: "sd-f-rej", rx: 3 }), text(width - 10, 61, P.reject, "sd-on", "end"));
    g.append(s("g", { class: "sd-drop" }, line(width * u, 22, width * u, 74, "sd-pin"), s("circle", { cx: width * u, cy: 19, r: 5, class: "sd-dot-a" }), text(clamp(width * u, 34, width - 34), 8, "u = " + us, "sd-b", "middle")));
    const so = h("p", { class: "sd-so" }, words(P.so, { u: us, sign: trial.kept ? "<" : "≥", r: rs }), " ", h("mark", { class: trial.kept ? "sd-acc" : "sd-rej" }, shown(draft.piece)), " ", h("b", {}, trial.kept ? P.stays : P.goes));
    const formula = trial.h != null ? words(P.formula_block, { h: figure(trial.h) }) : `${N.ratio} = ${figure(trial.p)} / ${figure(trial.q)} = ${figure(trial.p / trial.q)}`;
    return [g, so, h("div", { class: "sd-formula" }, formula), h("p", { class: "sd-sub sd-gapped" }, trial.h != null ? P.note_block : isGreedy() ? P.note_is_greedy : P.note_greedy)];
  }

  function plainTest(draft, trial, width) {
    const P = W.position, N = W.notation[S.notation], so = h("p", { class: "sd-so" }, h("mark", { class: trial.kept ? "sd-acc" : "sd-rej" }, shown(draft.piece)), " ", h("b", {}, trial.kept ? P.stays : P.goes));
    if (trial.limit != null) return [threshold(trial, width), so, h("div", { class: "sd-formula" }, words(P.formula_typical, { name: N.p_short, p: figure(trial.p), sign: trial.kept ? "≥" : "<", limit: figure(trial.limit) })), h("p", { class: "sd-sub sd-gapped" }, P.note_typical)];
    const first = now.verdict.rule === FIRST, wanted = trial.sample ? h("p", { class: "sd-so" }, ...fill(first ? P.first : P.sample, { x: h("mark", { class: trial.kept ? "sd-acc" : "sd-res" }, shown(trial.sample.piece)) })) : null;
    return [wanted, so, h("p", { class: "sd-sub sd-gapped" }, first ? P.note_first : P.note_noise)].filter(Boolean);
  }

  function threshold(trial, width) {
    const most = Math.max(trial.p, trial.limit) * 1.25, x = (v) => (v / most) * width, H = hatch(), g = svg(width, 96, W.position.test, H.defs), at = x(trial.limit);
    g.append(rect(0, 44, at, 26, { fill: H.fill, class: "sd-s-rej" }), rect(at, 44, width - at, 26, { class: "sd-f-acc sd-o-acc" }), text(0, 88, "0"), text(at, 88, figure(trial.limit), "sd-b", "middle"), text(width, 88, figure(most), "", "end"));
    g.append(line(x(trial.p), 22, x(trial.p), 74, "sd-pin"), s("circle", { cx: x(trial.p), cy: 19, r: 5, class: "sd-dot-a" }), text(clamp(x(trial.p), 34, width - 34), 8, W.notation[S.notation].p_short + " " + figure(trial.p), "sd-b", "middle"));
    return g;
  }

  /* -- the target's own token -- */

  function paintOwn() {
    const { own, at, steps, cycle, verdict } = now;
    if (!own || at < steps.indexOf("own")) return part.own.replaceChildren();
    own.node >= 0 && cycle.drafts[own.node].target ? residual(cycle.drafts[own.node], verdict.rule === BLOCK ? verdict.weight : 1) : straight();
  }

  function straight() {
    const { own, verdict } = now, O = W.own, left = h("div", { class: "sd-draw" }), state = own.state, title = state === "bon" ? O.bonus : state === "pla" ? O.pla : O.straight;
    const lead = state === "bon" ? O.bonus_lead : state === "pla" ? O.pla_lead : verdict.rule === TYPICAL ? O.lossy_lead : O.straight_lead;
    part.own.replaceChildren(section(title, lead, column(O.row, left), h("div", {})));
    if (!own.law) return left.append(h("p", { class: "sd-sub" }, W.no_laws));
    const rows = own.law.top.slice(0, SHOWN), drawn = own.sample && rows.findIndex((row) => row.token === own.sample.token);
    if (own.sample && drawn < 0) rows.push({ ...own.sample, prob: own.sample.prob ?? 0 });
    const width = left.clientWidth, high = 26, rest = Math.max(0, 1 - rows.reduce((sum, row) => sum + row.prob, 0)), list = [...rows, { piece: null, prob: rest }], most = Math.max(...list.map((row) => row.prob)), g = svg(width, list.length * high, O.row);
    list.forEach((row, i) => {
      const hit = own.sample && row.token === own.sample.token && row.piece !== null, wide = (row.prob / most) * (width - 84 - 110);
      if (hit) g.append(rect(-8, i * high, width + 8, high - 2, { rx: 6, class: "sd-f-" + (state === "pla" ? "hot" : state) }));
      g.append(text(0, i * high + 16, row.piece === null ? W.rest : short(row.piece, 84), row.piece === null ? "" : hit ? "sd-tk sd-on" : "sd-tk"), rect(84, i * high + 6, wide, 11, { class: hit && state !== "pla" ? "sd-f-ink" : "sd-f-target" }), text(84 + wide + 6, i * high + 16, chance(row.prob) + (hit ? " " + O.drawn : ""), hit ? "sd-b" + (state === "pla" ? "" : " sd-on") : ""));
    });
    left.append(g);
  }

  function residual(draft, weight) {
    const O = W.own, N = W.notation[S.notation], left = h("div", { class: "sd-draw" }), right = h("div", { class: "sd-draw" }), laws = lawsOf(draft, weight);
    part.own.replaceChildren(section(O.title, weight < 1 ? O.lead_block : O.lead, column(O.areas, key(["sd-i-acc", O.overlap], ["sd-i-res", O.surplus], ["sd-i-rej", O.deficit]), left), column(weight < 1 ? O.draw : O.equal, right)));
    left.append(areas(laws, draft, left.clientWidth));
    right.append(...surpluses(laws, right.clientWidth, weight, N), h("div", { class: "sd-formula" }, words(O.formula, { residual: weight < 1 ? N.residual_block : N.residual })));
  }

  function areas(laws, draft, width) {
    const { kept, rest } = rowsToShow(laws, draft, now.own.sample), rows = [...kept.filter((row) => row.p != null && row.q != null), { rest: true, ...rest }], wide = width / rows.length, zero = 186, H = hatch(), g = svg(width, 214, W.own.areas_aria, H.defs);
    const most = Math.max(1e-6, ...rows.map((row) => (row.rest ? row.p + row.q - row.min : Math.max(row.p, row.q)))), y = (v) => (v / most) * 150;
    rows.forEach((row, i) => {
      const x = i * wide + 3, w = wide - 6, low = row.rest ? row.min : Math.min(row.p, row.q), more = row.p - low, less = row.q - low;
      g.append(rect(x, zero - y(low), w, y(low), { class: "sd-f-acc" }));
      if (more > 5e-4) g.append(rect(x, zero - y(low + more), w, y(more), { class: "sd-f-res sd-o-res" }));
      if (less > 5e-4) g.append(rect(x, zero - y(low + more + less), w, y(less), { fill: H.fill, class: "sd-s-rej" }));
      const top = zero - y(low + more + less) - 6, label = more > 0.004 && less > 0.004 ? "±" : more > 0.004 ? "+" + more.toFixed(2) : less > 0.004 ? "−" + less.toFixed(2) : "";
      if (label) g.append(text(x + w / 2, top, label, "sd-b", "middle"));
      g.append(text(x + w / 2, zero + 17, row.rest ? W.rest_short : short(row.piece, wide), row.rest ? "" : "sd-tk", "middle"));
    });
    g.append(line(0, zero, width, zero, "sd-ax"));
    return g;
  }

  function surpluses(laws, width, weight, N) {
    const O = W.own, H = hatch(), beta = clamp(laws.overlap, 0, 1), at = beta * width, top = weight < 1 ? 0 : 110, g = svg(width, top + 84, O.equal_aria, H.defs), room = (1 - beta) * width > 34;
    if (weight === 1) {
      g.append(text(0, 12, N.target, "sd-k"), rect(0, 18, at, 24, { class: "sd-f-acc" }), rect(at, 18, width - at, 24, { class: "sd-f-res sd-o-res" }), text(0, 60, N.draft, "sd-k"), rect(0, 66, at, 24, { class: "sd-f-acc" }), rect(at, 66, width - at, 24, { fill: H.fill, class: "sd-s-rej" }));
      if (at > 150) g.append(text(at / 2, 34, N.overlap + " " + chance(beta), "sd-on", "middle"), text(at / 2, 82, words(O.kept, { beta: chance(beta) }), "sd-on", "middle"));
      if (room) g.append(text((at + width) / 2, 34, chance(1 - beta), "sd-on", "middle"), rect((at + width) / 2 - 17, 70, 34, 16, { class: "sd-f-rej", rx: 3 }), text((at + width) / 2, 82, chance(1 - beta), "sd-on", "middle"));
    }
    return [g, ...drawStrip(g, laws, width, top)];
  }

  /* The target's surplus, scaled to 1; the drawn token carries the mark. */
  function drawStrip(g, laws, width, top) {
    const O = W.own, { sample } = now.own, parts = laws.known.filter((row) => row.p > row.q).map((row) => ({ ...row, share: (row.p - row.q) / laws.surplus })).sort((a, b) => b.share - a.share);
    const wide = parts.filter((row) => row.share * width > 16 || (sample && row.token === sample.token)), rest = Math.max(0, 1 - wide.reduce((sum, row) => sum + row.share, 0));
    let x = 0;
    g.append(text(0, top + 20, O.scaled, "sd-k"));
    for (const row of [...wide, { share: rest }]) {
      const w = row.share * width, hit = sample && row.token === sample.token;
      if (w < 0.5 && !hit) continue;
      g.append(rect(x, top + 40, w, 26, { class: "sd-f-res sd-o-res" }));
      if (w > 40) g.append(text(x + 6, top + 57, row.piece == null ? W.rest_short : short(row.piece, w - 8), row.piece == null ? "sd-on" : "sd-tk sd-on"));
      if (w > 30) g.append(text(x + w / 2, top + 82, chance(row.share), hit ? "sd-b" : "", "middle"));
      if (hit) g.append(s("path", { d: `M${x + w / 2 - 6} ${top + 28}h12l-6 9z`, class: "sd-dot-a" }));
      x += w;
    }
    return [h("p", { class: "sd-so" }, ...(sample ? fill(O.falls, { own: mark("res", sample.piece) }) : [guess()]))];
  }

  /* -- what if -- */

  function paintQuestions() {
    paintNotation();
    paintCoin();
    paintShorter();
    paintRule();
  }

  function paintNotation() {
    for (const node of part.notation.children) node.setAttribute("aria-pressed", String(node.dataset.name === S.notation));
    part.notes.textContent = W.notation[S.notation].hint;
    part.klabel.textContent = W.notation[S.notation].k;
  }

  const tokens = (n) => (n === 1 ? W.what_if.one : words(W.what_if.many, { n }));
  const enable = (input, on) => { input.disabled = !on; input.closest(".sd-ask").toggleAttribute("data-off", !on); };

  function paintCoin() {
    const { verdict, cycle, touched } = now, A = W.what_if, node = S.coin ?? focus(), trial = node === null ? null : verdict.trials[node], askable = trial && trial.u != null && !lacks(cycle, verdict.rule);
    enable(part.coin, Boolean(askable));
    if (!askable) {
      part.coinvalue.textContent = "–";
      part.coinanswer.textContent = node === null ? A.coin_where : trial && trial.u == null ? A.coin_none : W.lacks[lacks(cycle, verdict.rule)] || A.coin_where;
      return;
    }
    S.coin = node;
    part.coin.value = trial.u;
    part.coinvalue.textContent = trial.u.toFixed(2);
    const x = "“" + shown(cycle.drafts[node].piece) + "”", r = figure(trial.chance), moved = touched && S.choice.coins && S.choice.coins[node] != null, told = { x, r, tokens: tokens(now.gained) };
    part.coinanswer.textContent = words(trial.chance >= 1 ? A.coin_sure : trial.chance <= 0 ? A.coin_never : !moved ? (trial.kept ? A.coin_below : A.coin_above) : trial.kept ? (isNextFresh(node) ? A.coin_next : A.coin_stays) : A.coin_goes, told);
  }

  function isNextFresh(node) {
    const { verdict, cycle } = now, next = verdict.order[verdict.order.indexOf(node) + 1];
    return next != null && cycle.drafts[next].u == null;
  }

  function paintShorter() {
    const { cycle, verdict, gained } = now, A = W.what_if, deep = Math.max(0, ...cycle.drafts.map((draft) => draft.level)), why = lacks(cycle, verdict.rule), k = S.choice.k ?? deep;
    enable(part.k, deep > 1 && !why);
    part.k.max = Math.max(1, deep);
    part.k.value = k || 1;
    part.kvalue.textContent = String(k || "–");
    const saved = cycle.drafts.filter((draft) => draft.level > k).length, told = { tokens: tokens(gained), was: cycle.gained, saved };
    part.kanswer.textContent = deep < 2 ? A.k_short : why ? W.lacks[why] : S.choice.k == null ? A.k_same : words(now.own && now.own.state === "bon" ? A.k_bonus : gained === cycle.gained ? A.k_equal : A.k_other, told);
  }

  function paintRule() {
    const { cycle, gained, verdict } = now, A = W.what_if, mine = rule(), missing = [];
    for (const option of part.rule.options) {
      const why = cycle.drafts.length ? option.value !== mine && lacks(cycle, option.value) : "nothing";
      option.disabled = Boolean(why);
      if (why && !missing.includes(why)) missing.push(why);
    }
    part.rule.value = verdict.rule;
    enable(part.rule, cycle.drafts.length > 0);
    const told = S.choice.rule == null ? A.rule_same : sentences(words(A.rule_gives, { tokens: tokens(gained), was: cycle.gained }), A.rules[verdict.rule]);
    part.ruleanswer.textContent = sentences(told, missing.map((why) => W.lacks[why]));
  }

  /* A question is about this cycle as it was: what equals the recorded choice is no question. */
  function ask(change) {
    play(false);
    S.choice = { ...S.choice, ...change };
    if (S.choice.rule === rule()) delete S.choice.rule;
    if (S.choice.k != null && S.choice.k >= Math.max(...now.cycle.drafts.map((draft) => draft.level))) delete S.choice.k;
    draw();
  }

  function askCoin(u) {
    const node = S.coin;
    S.step = node;
    ask({ coins: { ...S.choice.coins, [node]: u } });
  }

  /* -- transport -- */

  function paintTransport() {
    if (!run || !now) return;
    part.play.textContent = S.playing ? "❚❚ " + W.transport.pause : "▶ " + W.transport.play;
    part.back.disabled = S.cycle === 0 && now.at === 0;
    part.next.disabled = S.cycle === cycles().length - 1 && now.at === now.steps.length - 1;
    part.scrub.max = cycles().length;
    part.scrub.value = S.cycle + now.at / now.steps.length;
    part.scrub.setAttribute("aria-valuetext", words(W.title, { cycle: S.cycle + 1, cycles: cycles().length }));
    for (const node of part.pace.children) node.setAttribute("aria-pressed", String(+node.dataset.pace === S.pace));
  }

  function scrub(value) {
    play(false);
    const at = clamp(Math.floor(value), 0, cycles().length - 1);
    if (at !== S.cycle) go(at, null, false);
    const { steps } = look();
    S.step = steps[clamp(Math.floor((value - at) * steps.length + 1e-9), 0, steps.length - 1)];
    S.coin = null;
    draw();
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select")) return;
    const onButton = event.target.closest("button");
    if (event.key === " " && !onButton) byHand(() => step(event.shiftKey ? -1 : 1));
    else if (event.key === "ArrowRight") byHand(() => hop(1));
    else if (event.key === "ArrowLeft") byHand(() => hop(-1));
    else if (event.key === "Home") byHand(() => hop(-S.cycle));
    else if (event.key === "End") byHand(() => hop(cycles().length - 1 - S.cycle));
    else if (event.key === "p") play(!S.playing);
    else if (/^[1-3]$/.test(event.key)) setPace(PACES[event.key - 1][1]);
    else return;
    event.preventDefault();
  }

  function setPace(pace) {
    S.pace = pace;
    S.playing ? play(true) : paintTransport();
  }

  /* -- what stands still, and listening -- */

  function furniture() {
    for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
    for (const [name, label] of Object.entries(W.aria)) part[name].setAttribute("aria-label", label);
    part.notation.append(...["plain", "lev", "chen"].map((name) => h("button", { type: "button", "data-name": name }, W.notation[name].name)));
    part.rule.append(...RULES.map((name) => h("option", { value: name }, W.what_if.names[name])));
    part.pace.append(...PACES.map(([name, pace]) => h("button", { type: "button", "data-pace": pace }, W.transport[name])));
  }

  function listen() {
    part.previous.onclick = () => byHand(() => hop(-1));
    part.following.onclick = () => byHand(() => hop(1));
    part.back.onclick = () => byHand(() => step(-1));
    part.next.onclick = () => byHand(() => step(1));
    part.play.onclick = () => play(!S.playing);
    part.scrub.oninput = () => scrub(+part.scrub.value);
    part.pace.onclick = (event) => event.target.dataset.pace && setPace(+event.target.dataset.pace);
    part.notation.onclick = (event) => { if (event.target.dataset.name) { S.notation = event.target.dataset.name; draw(); } };
    part.coin.oninput = () => askCoin(+part.coin.value);
    part.k.oninput = () => ask({ k: +part.k.value });
    part.rule.onchange = () => ask({ rule: part.rule.value, coins: S.choice.coins });
    for (const input of [part.coin, part.k, part.rule]) input.addEventListener("change", () => { part.announce.textContent = part.say.textContent; });
    root.addEventListener("keydown", keys);
    player.addEventListener("sd-run", pull);
    player.addEventListener("sd-apart", wanted);
    new ResizeObserver(() => { if (run) draw(); else pull(); }).observe(root);
  }

  /* The race asks for one decision to be taken apart; it may have asked before this page was there. */
  function wanted() {
    if (!player.wanted || !run) return;
    const { cycle, node } = player.wanted;
    player.wanted = null;
    go(cycle - 1, node);
  }

  furniture();
  listen();
  pull();
  wanted();
}

if (typeof module !== "undefined" && module.exports) module.exports = { RULES, judge, recorded, statesOf, ownOf, stepsOf, lawsOf, lacks, freshCoin, apart, figure };
else mount(element, props);
