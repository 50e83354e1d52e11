// @ts-check
/* Takes one cycle apart: draft, check, judge, replace or bonus, commit; and asks what if.
 *
 * What decides is in judge.js. The run and the makers of elements are the player's. Text enters by `append`. */

const KIT = require("../race/player.js");
const {
  BLOCK,
  MATCH,
  NOISE,
  FIRST,
  TYPICAL,
  REJECTION,
  judge,
  recorded,
  statesOf,
  ownOf,
  stepsOf,
  distributionsOf,
  headOf,
} = require("./judge.js");
const { pictures, apart, figure, key, mark, note, title } = require("./pictures.js"),
  { whatIf } = require("./questions.js"),
  { moveIn } = require("./moves.js"),
  { served } = require("./served.js");

const PACES = [
  ["slow", 5000],
  ["steady", 2500],
  ["quick", 900],
];

function mount(element, props) {
  const {
    h,
    chip,
    fill,
    words,
    shown,
    visible,
    chance,
    duration,
    clamp,
    speculative,
    firstRejection,
    prompted,
    wrote,
    seams,
    isBarred,
  } = KIT;
  const W = JSON.parse(props.words),
    player = document.querySelector(".sd-player"),
    PW = player.words,
    root = element.querySelector(".sd-step"),
    part = KIT.parts(root);
  const S = {
    cycle: 0,
    step: "draft",
    choice: {},
    coin: null,
    notation: "plain",
    pace: 2500,
    playing: false,
    timer: /** @type {any} */ (0),
  };
  let run = /** @type {any} */ (null),
    built = 0,
    spans = [],
    now = /** @type {any} */ (null),
    quiet = /** @type {any} */ (0);
  const view = pictures(W, () => ({ ...now, notation: S.notation }));
  const theirs = served(
    W,
    PW,
    view,
    () => now,
    () => passTime(),
  );
  const questions = whatIf(W, part, S, { now: () => now, rule: () => rule(), focus, play, draw });

  /* -- the run, and where we stand in it -- */

  function pull() {
    const next = player.run();
    if (!next || !speculative(next).cycles.length) {
      root.dataset.state = "empty";
      part.empty.textContent = W.empty;
      return;
    }
    if (next !== run) begin(next);
    root.dataset.state = "ready";
    writeText();
    draw();
  }

  function begin(next) {
    run = next;
    built = 0;
    spans = [];
    part.text.replaceChildren(
      prompted(run.header, visible),
      ...(speculative(run).first ? speculative(run).first.pieces.map(visible) : []),
    );
    const cycle = firstRejection(run),
      rejected = cycle
        ? recorded(cycle, rule()).order.find((node) => cycle.drafts[node].state === "rej")
        : null;
    go(cycle ? cycle.number - 1 : 0, rejected ?? "draft", false);
  }

  const cycles = () => speculative(run).cycles;
  const started = () => speculative(run).started || {};
  const rule = () => started().rule || REJECTION;
  const isGreedy = () => Boolean(started().params && started().params.temperature === 0);
  const asked = () => S.choice.rule != null || S.choice.k != null || S.choice.coins != null;

  /* Everything that is drawn, from the cycle and the question. */
  function look() {
    const cycle = cycles()[S.cycle],
      theirs = recorded(cycle, rule()),
      touched = asked();
    const verdict = touched
      ? judge(cycle, { ...S.choice, rule: S.choice.rule || rule() }, rule())
      : theirs;
    const states = touched ? statesOf(cycle, verdict) : cycle.drafts.map((draft) => draft.state);
    if (!touched) verdict.order = verdict.order.filter((node) => states[node] !== "cut");
    const own = ownOf(cycle, verdict, theirs),
      steps = stepsOf(cycle, verdict, states, own);
    return {
      cycle,
      theirs,
      touched,
      verdict,
      states,
      own,
      steps,
      gained: touched || own ? verdict.path.length + (own ? 1 : 0) : cycle.gained,
    };
  }

  function draw(byHand) {
    if (!run || !root.clientWidth) return;
    const held = root.contains(document.activeElement),
      onRail = part.rail.contains(document.activeElement);
    now = look();
    if (!now.steps.includes(S.step)) S.step = now.own ? "own" : "commit";
    now.at = now.steps.indexOf(S.step);
    paintHead();
    paintText();
    paintRail();
    part.say.replaceChildren(
      ...(now.touched ? [h("b", {}, W.what_if.mark), " "] : []),
      ...sentence(),
    );
    paintGrid();
    moveIn(part.grid, S.step, [S.cycle, S.step].join());
    paintEvidence();
    questions.paint();
    paintTransport();
    if (byHand) {
      announce();
      intoView();
    }
    // What had the focus may have been drawn anew; the keys must go on working.
    if (held && !root.contains(document.activeElement))
      (onRail ? part.rail.querySelector("[aria-current] button") : part.grid).focus({
        preventScroll: true,
      });
  }

  /* Said aloud, and gone again: the sentence stands on the page once. */
  function announce() {
    part.announce.textContent = part.say.textContent;
    clearTimeout(quiet);
    quiet = setTimeout(() => part.announce.replaceChildren(), 3000);
  }

  /* A step by hand shows what it tells, if that lies off the screen. */
  function intoView() {
    const { top } = part.tell.getBoundingClientRect(),
      room = part.bar.getBoundingClientRect().top;
    if (top < 0 || top > room - 120)
      part.tell.scrollIntoView({ block: innerWidth > 720 ? "center" : "start" });
  }

  /* -- moving -- */

  function go(cycle, step, byHand = true) {
    Object.assign(S, { cycle: clamp(cycle, 0, cycles().length - 1), choice: {}, step, coin: null });
    if (byHand) draw(true);
  }

  function step(direction) {
    const at = now.at + direction;
    if (at >= 0 && at < now.steps.length) {
      S.step = now.steps[at];
      S.coin = null;
      return (draw(true), true);
    }
    const next = S.cycle + direction;
    if (next < 0 || next >= cycles().length) return false;
    go(next, "draft", false);
    S.step = direction > 0 ? look().steps[0] : "commit";
    draw(true);
    return true;
  }

  const hop = (direction) => {
    const to = S.cycle + direction;
    if (to >= 0 && to < cycles().length) go(to, cycles()[to].drafts.length ? "draft" : "check");
  };

  function play(on) {
    clearTimeout(S.timer);
    S.playing = on;
    if (on) S.timer = setTimeout(() => play(root.clientWidth > 0 && step(1)), S.pace);
    paintTransport();
  }

  const byHand = (act) => {
    play(false);
    act();
  };

  /* -- the head, the text, the rail -- */

  function paintHead() {
    part.title.textContent = words(W.title, { cycle: S.cycle + 1, cycles: cycles().length });
    part.previous.disabled = S.cycle === 0;
    part.following.disabled = S.cycle === cycles().length - 1;
    part.hint.replaceChildren(
      ...(now.touched
        ? [
            W.what_if.grey,
            " ",
            button(W.what_if.reset, "sd-link sd-reset", () => {
              S.choice = {};
              draw(true);
            }),
          ]
        : [W.hint, ...["res", "bon"].flatMap(shortcut)]),
    );
  }

  /* The way to the nearest cycle, from the next one on, that ends in a replacement or in a bonus. */
  function shortcut(state) {
    const all = cycles(),
      order = all.map((_, i) => (S.cycle + 1 + i) % all.length),
      to = order.find((i) => all[i].own && all[i].own.state === state);
    return to === undefined
      ? []
      : [" ", button(W.shortcuts[state], "sd-link", () => go(to, "own"))];
  }

  const button = (label, cls, act) => {
    const node = h("button", { type: "button", class: cls }, label);
    node.onclick = () => byHand(act);
    return node;
  };

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
    spans[i].replaceChildren(
      ...cycle.pieces.map((piece, j) => {
        const node = h(
          "span",
          {
            role: "button",
            class: "sd-word",
            tabindex: -1,
            "aria-label": words(W.word, { piece: shown(piece), cycle: i + 1 }),
          },
          visible(piece),
        );
        node.onclick = () => byHand(() => go(i, judgedAt(cycle, j)));
        return node;
      }),
    );
  }

  /* Where the j-th token of a cycle was decided. Of a block that was kept, only the last token had a coin. */
  function judgedAt(cycle, j) {
    const { path, order } = recorded(cycle, rule());
    return j >= path.length ? "own" : order.includes(path[j]) ? path[j] : order[order.length - 1];
  }

  function paintText() {
    if (S.open !== undefined && S.open !== S.cycle && spans[S.open]) plainPart(S.open);
    S.open = S.cycle;
    const { cycle, states, own } = now,
      nodes = nodesShown();
    const chips = nodes.map((node) => chipOf(node, revealed(node) ? states[node] : "pen")),
      rest = cycle.drafts.length - nodes.length - states.filter((state) => state === "out").length;
    const more =
      rest > 0 && revealed(-1) ? [chip(PW, words(W.more, { n: rest }), "dis", "span")] : [];
    const last = own && now.at >= now.steps.indexOf("own") ? [ownChip("button")] : [];
    spans[S.cycle].replaceChildren(
      ...[...chips, ...more, ...last].map((node) => {
        node.tabIndex = node.matches("button") ? 0 : -1;
        return node;
      }),
    );
    spans.forEach((span, i) => {
      span.className = "sd-part" + (i > S.cycle ? (now.touched ? " sd-grey" : " sd-ahead") : "");
    });
    const box = part.text,
      place = spans[S.cycle];
    if (
      place.offsetTop < box.scrollTop ||
      place.offsetTop + place.offsetHeight > box.scrollTop + box.clientHeight
    )
      box.scrollTop = place.offsetTop - 40;
  }

  function chipOf(node, state, tag = "button") {
    const made = chip(PW, now.cycle.drafts[node].piece, state, tag);
    for (const [name, on] of [
      ["sd-on", S.step === node && tag === "button"],
      ["sd-seam", wrote(now.cycle.drafts[node])],
    ])
      made.classList.toggle(name, Boolean(on));
    if (tag === "button")
      made.onclick = () =>
        byHand(() => {
          S.step = now.steps.includes(node) ? node : now.steps.includes("late") ? "late" : "own";
          S.coin = null;
          draw(true);
        });
    return made;
  }

  function ownChip(tag) {
    const { own } = now,
      made = chip(PW, own.sample ? own.sample.piece : "…", own.state, tag);
    if (tag === "button")
      made.onclick = () =>
        byHand(() => {
          S.step = "own";
          draw(true);
        });
    return made;
  }

  /* Of a chain every draft, of a tree those that somebody judged: on screen a tree is its path, and what was tried. */
  function nodesShown() {
    const { cycle, states, verdict } = now,
      all = cycle.drafts.map((_, node) => node).filter((node) => states[node] !== "out");
    return cycle.tree
      ? all
          .filter((node) => verdict.order.includes(node))
          .sort((a, b) => verdict.order.indexOf(a) - verdict.order.indexOf(b))
      : all;
  }

  /* A draft keeps its verdict to itself until its turn; -1 stands for those that never have one. */
  function revealed(node) {
    const { verdict, at, steps } = now,
      turn = verdict.order.indexOf(node),
      end = verdict.order.length ? 1 + verdict.order.length : 2;
    return at >= (turn < 0 ? Math.min(end, steps.length - 1) : 2 + turn);
  }

  function paintRail() {
    const { steps, at, own } = now,
      many = steps.length > 9;
    part.rail.classList.toggle("sd-many", many);
    part.rail.replaceChildren(
      ...steps.map((name, i) => {
        const label =
          typeof name === "number"
            ? words(many && i !== at ? "{n}" : W.rail.judge, { n: placeOf(name) })
            : name === "own"
              ? W.rail[own.state]
              : W.rail[name];
        const node = h(
          "button",
          {
            type: "button",
            "aria-label":
              typeof name === "number" ? words(W.rail.judge, { n: placeOf(name) }) : null,
          },
          label,
        );
        node.onclick = () =>
          byHand(() => {
            S.step = name;
            S.coin = null;
            draw(true);
          });
        return h(
          "li",
          {
            class: (i < at ? "sd-done" : "") + (name === "late" ? " sd-late" : ""),
            "aria-current": i === at ? "step" : null,
          },
          node,
        );
      }),
    );
    part.rail.setAttribute("aria-label", W.rail.aria);
  }

  /* A draft's number for people: its place in a chain; in a tree the order in which it is tried. */
  const placeOf = (node) => (now.cycle.tree ? now.verdict.order.indexOf(node) : node) + 1;

  /* -- the sentence -- */

  function sentence() {
    const { cycle, states, own, gained } = now,
      Y = W.say,
      n = states.filter((state) => state !== "out").length;
    if (cycle.served && ["draft", "check"].includes(S.step)) return theirs.sentence(S.step, n);
    if (S.step === "draft")
      return [
        ...fill(cycle.tree ? Y.draft_tree : n === 1 ? Y.draft_one : Y.draft, {
          n,
          time: cycle.draft ? duration(cycle.draft.end - cycle.draft.start) : "–",
          levels: Math.max(...cycle.drafts.map((draft) => draft.level)),
        }),
        ...seams(PW, cycle.drafts),
      ];
    if (S.step === "check")
      return fill(n ? Y.check : Y.check_plain, { rows: n + 1, time: passTime() });
    if (S.step === "late")
      return fill(
        cycle.tree
          ? Y.late_tree
          : states.filter((state) => state === "dis").length === 1
            ? Y.late_one
            : Y.late,
        { n: states.filter((state) => state === "dis").length },
      );
    if (S.step === "commit")
      return fill(!own ? Y.ended : gained === 1 ? (n ? Y.commit_one : Y.commit_plain) : Y.commit, {
        n: gained,
        drafts: n,
      });
    if (S.step === "own") return ownSentence();
    return [...judgeSentence(S.step), ...seams(PW, [cycle.drafts[S.step]])];
  }

  const passTime = () =>
    now.cycle.check ? duration(now.cycle.check.end - now.cycle.check.start) : "–";

  function judgeSentence(node) {
    if (now.cycle.served) return theirs.judged(node);
    const { verdict, cycle } = now,
      Y = W.judge,
      trial = verdict.trials[node],
      { piece } = cycle.drafts[node],
      [u, r] = trial.u == null ? ["–", "–"] : apart(trial.u, trial.chance);
    const told = {
      x: mark(trial.kept ? "acc" : "rej", piece),
      p: figure(trial.p),
      q: figure(trial.q),
      r,
      h: r,
      u,
      verdict: h("b", {}, trial.kept ? Y.keep : Y.reject),
      limit: trial.limit == null ? "–" : figure(trial.limit),
      sample: trial.sample ? shown(trial.sample.piece) : "–",
    };
    const fresh =
      trial.u != null &&
      cycle.drafts[node].u == null &&
      !(S.choice.coins && S.choice.coins[node] != null)
        ? [Y.fresh]
        : [];
    if (verdict.rule === MATCH || verdict.rule === NOISE)
      return fill(!trial.sample ? Y.plain : verdict.rule === MATCH ? Y.match : Y.noise, told);
    if (verdict.rule === FIRST) return fill(Y.first, told);
    if (verdict.rule === TYPICAL) return fill(trial.limit == null ? Y.plain : Y.typical, told);
    if (trial.u == null) return fill(Y.plain, told);
    if (verdict.rule === BLOCK)
      return [
        ...fill(Y.block, {
          ...told,
          verdict: h("b", {}, trial.kept ? Y.keep_block : Y.reject_block),
        }),
        ...fresh,
      ];
    if (isGreedy()) return fill(trial.kept ? Y.greedy : Y.not_greedy, told);
    return trial.p >= trial.q
      ? fill(Y.sure, told)
      : isBarred(started(), trial.p)
        ? fill(Y.barred, told)
        : [...fill(Y.coin, told), ...fresh];
  }

  function ownSentence() {
    const { own, verdict } = now,
      Y = W.own_says,
      rejected = own.node >= 0;
    const name = own.sample ? mark(own.state, own.sample.piece) : h("span", {}, guess());
    const key =
      own.state === "pla"
        ? "pla"
        : now.cycle.served && own.state === "res"
          ? "served"
          : own.state === "bon"
            ? "bonus"
            : rejected
              ? isGreedy()
                ? "greedy"
                : "residual"
              : verdict.rule === MATCH
                ? "match"
                : verdict.rule === NOISE
                  ? "noise"
                  : verdict.rule === FIRST
                    ? "greedy"
                    : "straight";
    return fill(Y[key], { own: name });
  }

  /* Where the trace does not tell which token would be drawn, the likeliest. */
  function guess() {
    const { own, cycle, verdict } = now;
    if (own.node < 0)
      return own.law && own.law.top.length
        ? words(W.own_says.likeliest, {
            x: shown(own.law.top[0].piece),
            p: figure(own.law.top[0].prob),
          })
        : W.own_says.unknown;
    const laws = distributionsOf(
        cycle.drafts[own.node],
        verdict.rule === BLOCK ? verdict.weight : 1,
      ),
      best = [...laws.known].sort((a, b) => b.p - b.q - a.p + a.q)[0];
    return best && best.p > best.q
      ? words(W.own_says.likeliest, {
          x: shown(best.piece),
          p: figure((best.p - best.q) / laws.surplus),
        })
      : W.own_says.unknown;
  }

  /* -- draft, pass, verdict: one column a draft -- */

  function paintGrid() {
    const { cycle, states, own, verdict, at, steps } = now,
      nodes = nodesShown(),
      N = W.notation[S.notation],
      G = W.grid,
      passed = at >= steps.indexOf("check");
    const hot = (node) => (S.step === node ? " sd-hot" : ""),
      ownNow = own && at >= steps.indexOf("own");
    const label = (name, sub) => h("div", { class: "sd-rl" }, name, h("small", {}, sub)),
      cell = (cls, ...inner) => h("div", { class: "sd-cell " + cls }, inner);
    part.grid.style.setProperty("--n", nodes.length + 1);
    part.grid.classList.toggle("sd-many", nodes.length > 9);
    part.grid.replaceChildren(
      label(G.draft, cycle.tree ? G.draft_tree : G.draft_sub),
      ...nodes.map((node) =>
        cell(
          "sd-top" + hot(node),
          chipOf(node, "pen", "span"),
          h(
            "span",
            {},
            cycle.served ? W.served.no_q : N.q_short + " " + chance(cycle.drafts[node].q),
          ),
        ),
      ),
      cell(""),
      label(G.target, G.target_sub),
      h(
        "div",
        { class: "sd-pass" + (passed ? "" : " sd-off") },
        words(cycle.served ? W.served.pass : nodes.length ? G.pass : G.pass_plain, {
          time: passTime(),
          rows: states.filter((state) => state !== "out").length + 1,
        }),
      ),
      label(
        G.verdict,
        verdict.rule === BLOCK ? G.verdict_block : cycle.tree ? G.verdict_tree : G.verdict_sub,
      ),
      ...nodes.map((node) => cell("sd-bottom" + hot(node), ...verdictCell(node, passed))),
      cell("", ...(ownNow ? [ownChip("span"), h("span", {}, PW.status[own.state])] : [])),
    );
    const place = part.grid.querySelector(".sd-hot");
    if (place) part.grid.scrollLeft = Math.max(0, place.offsetLeft - part.grid.clientWidth / 2);
  }

  function verdictCell(node, passed) {
    const { states, verdict, cycle } = now,
      trial = verdict.trials[node],
      N = W.notation[S.notation];
    if (!revealed(node))
      return [
        h(
          "span",
          {},
          passed && (!cycle.served || cycle.drafts[node].p != null)
            ? N.p_short + " " + chance(cycle.drafts[node].p)
            : "–",
        ),
      ];
    const told = !trial
      ? states[node] === "acc"
        ? W.grid.with_it
        : states[node] === "cut"
          ? W.grid.cut
          : W.grid.never
      : trial.u == null
        ? trial.kept
          ? W.grid.kept
          : W.grid.not_kept
        : "u " + apart(trial.u, trial.chance).join(trial.kept ? " < " : " ≥ ");
    return [chipOf(node, states[node], "span"), h("span", {}, told)];
  }

  /* -- the position under judgement -- */

  /* The draft whose test is on show: the one under judgement, else the last one that was. */
  function focus() {
    const { verdict, own, at } = now;
    if (typeof S.step === "number") return S.step;
    return at < 2 || !verdict.order.length
      ? null
      : own && own.node >= 0
        ? own.node
        : verdict.order[verdict.order.length - 1];
  }

  /* What the sentence speaks of, beside it: both models' probabilities and the test, or what the target's own
   * token is drawn from. */
  function paintEvidence() {
    const [left, right] = S.step === "own" && now.own ? ownEvidence() : testEvidence();
    part.left.replaceChildren(...left);
    part.right.replaceChildren(...right);
  }

  function testEvidence() {
    const node = focus(),
      P = W.position,
      N = W.notation[S.notation];
    if (node === null || S.step === "commit" || !now.verdict.trials[node]) return [[], []];
    if (now.cycle.served) return theirs.evidence(now.cycle.drafts[node], part.left.clientWidth);
    const { cycle, verdict } = now,
      draft = cycle.drafts[node],
      trial = verdict.trials[node],
      told = { n: node + 1, level: draft.level, x: shown(draft.piece) };
    const about = isGreedy()
      ? P.lead_greedy
      : verdict.rule === REJECTION && headOf(cycle.drafts, draft) !== draft
        ? P.lead_sibling
        : draft.q === 1
          ? P.lead_point
          : P.lead;
    const test =
      trial.u != null
        ? view.coin(draft, trial, part.right.clientWidth, isGreedy())
        : view.plainTest(draft, trial, part.right.clientWidth);
    return [
      [
        title(
          words(verdict.rule === BLOCK ? P.title_block : cycle.tree ? P.title_tree : P.title, told),
        ),
        key(["sd-i-target", N.p_name], ["sd-i-draft", N.q_name]),
        draft.target ? view.bars(draft, part.left.clientWidth) : note(W.no_laws),
        note(about),
      ],
      [title(trial.u == null ? P.test : P.coin), ...test],
    ];
  }

  function ownEvidence() {
    const { own, verdict, cycle } = now,
      O = W.own,
      draft = own.node >= 0 && cycle.drafts[own.node].target ? cycle.drafts[own.node] : null;
    if (!draft) {
      if (cycle.served && own.state === "res")
        return theirs.ownEvidence(own, part.left.clientWidth);
      const heading = own.state === "bon" ? O.bonus : own.state === "pla" ? O.pla : O.straight;
      const about =
        own.state === "bon"
          ? O.bonus_lead
          : own.state === "pla"
            ? O.pla_lead
            : verdict.rule === TYPICAL
              ? O.lossy_lead
              : O.straight_lead;
      return [
        [title(O.row), own.law ? view.row(part.left.clientWidth) : note(W.no_laws)],
        [title(heading), h("p", {}, about)],
      ];
    }
    const weight = verdict.rule === BLOCK ? verdict.weight : 1;
    return [
      [
        title(O.title),
        key(["sd-i-acc", O.overlap], ["sd-i-res", O.surplus], ["sd-i-rej", O.deficit]),
        view.areas(draft, weight, part.left.clientWidth),
        note(weight < 1 ? O.lead_block : O.lead),
      ],
      [
        title(weight < 1 ? O.draw : O.equal),
        ...view.surpluses(draft, weight, part.right.clientWidth, guess()),
      ],
    ];
  }

  /* -- transport -- */

  function paintTransport() {
    if (!run || !now) return;
    part.play.textContent = S.playing ? "❚❚ " + W.transport.pause : "▶ " + W.transport.play;
    part.back.disabled = S.cycle === 0 && now.at === 0;
    part.next.disabled = S.cycle === cycles().length - 1 && now.at === now.steps.length - 1;
    Object.assign(part.scrub, { max: cycles().length, value: S.cycle + now.at / now.steps.length });
    part.scrub.setAttribute(
      "aria-valuetext",
      words(W.title, { cycle: S.cycle + 1, cycles: cycles().length }),
    );
    for (const node of part.pace.children)
      node.setAttribute("aria-pressed", String(+node.dataset.pace === S.pace));
  }

  function scrub(value) {
    play(false);
    const at = clamp(Math.floor(value), 0, cycles().length - 1);
    if (at !== S.cycle) go(at, null, false);
    const { steps } = look();
    Object.assign(S, {
      step: steps[clamp(Math.floor((value - at) * steps.length + 1e-9), 0, steps.length - 1)],
      coin: null,
    });
    draw();
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select"))
      return;
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

  const setPace = (pace) => {
    S.pace = pace;
    S.playing ? play(true) : paintTransport();
  };

  /* -- what stands still, and listening -- */

  function furniture() {
    for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
    for (const [name, label] of Object.entries(W.aria))
      part[name].setAttribute("aria-label", label);
    part.pace.append(
      ...PACES.map(([name, pace]) =>
        h("button", { type: "button", "data-pace": pace }, W.transport[name]),
      ),
    );
  }

  function listen() {
    part.previous.onclick = () => byHand(() => hop(-1));
    part.following.onclick = () => byHand(() => hop(1));
    part.back.onclick = () => byHand(() => step(-1));
    part.next.onclick = () => byHand(() => step(1));
    part.play.onclick = () => play(!S.playing);
    part.scrub.oninput = () => scrub(+part.scrub.value);
    part.pace.onclick = (event) => event.target.dataset.pace && setPace(+event.target.dataset.pace);
    for (const input of [part.coin, part.k, part.rule]) input.addEventListener("change", announce);
    root.addEventListener("keydown", keys);
    player.addEventListener("sd-run", pull);
    player.addEventListener("sd-apart", wanted);
    new ResizeObserver(() => {
      if (run) draw();
      else pull();
    }).observe(root);
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

mount(element, props);
