/* The certificate: is this decoding lossless? Draws what the engine computed, recorded or live; it computes none of it.
 *
 * What is read off a pair's is in reading.js, a server's is drawn by server.js. The small makers of elements are the
 * player's. Words are looked up; tokens enter by `append`: one may be `<script>`. */

const KIT = require("../race/player.js");
const {
  EXACT,
  FALSE_ALARM,
  NEAR,
  FIRST,
  sampleAt,
  isRed,
  isExact,
  checksOf,
  verdictOf,
  neededBy,
  scoreOf,
  count,
  roughly,
  figure,
} = require("./reading.js");
const { examination } = require("./server.js");

const SERVER_DRAWS = 1; // the second number of draws: the others take a server many minutes

function mount(element, props, watch, trigger, server) {
  const {
    h,
    s,
    text,
    line,
    rect,
    svg,
    hatch,
    chip,
    words,
    sentences,
    shown,
    visible,
    niceStep,
    chance,
  } = KIT;
  const W = JSON.parse(props.words),
    PW = document.querySelector(".sd-player").words,
    root = element.querySelector(".sd-proof"),
    part = KIT.parts(root);
  const DRAWS = JSON.parse(props.draws),
    SERVERS = JSON.parse(props.servers),
    KEYS = Object.keys(W.mistakes),
    GUIDED = Object.keys(W.grammar_mistakes),
    NAMED = { ...W.mistakes, ...W.grammar_mistakes },
    RECORDED = {};
  const S = {
    pair: "toy",
    mistake: "",
    draws: DRAWS.toy[DRAWS.toy.length - 1],
    live: /** @type {any} */ (null),
    asked: /** @type {any} */ (null),
    frame: 0,
    running: false,
    revealed: false,
  };

  const about = (n) => roughly(n, document.documentElement.lang || "en");
  const isServer = () => S.pair === "server",
    isGuided = () => S.pair === "grammar",
    plantable = () => (isGuided() ? GUIDED : KEYS);
  const theirs = examination(W, part, SERVERS, (...look) => stamp(...look));
  const isAsked = () =>
    S.asked &&
    S.asked.pair === S.pair &&
    (isServer() ||
      (S.asked.mistake === S.mistake &&
        (S.pair !== "embedded" || S.asked.text === part.text.value)));
  const isLive = () => Boolean(S.live && isAsked());
  const recorded = (pair, mistake) => (RECORDED[pair] || {})[mistake] || null;

  /* Asked for when it is first looked at, so that the page itself stays light. */
  async function fetchRecorded(pair) {
    RECORDED[pair] = await server.recorded_certificates(pair).catch(() => ({}));
    paintQuiz();
    draw();
  }

  function current() {
    if (isLive() || isServer()) return isLive() ? S.live : null;
    return S.pair !== "embedded" || part.text.value === props.text
      ? recorded(S.pair, S.mistake)
      : null;
  }

  function draw() {
    if (!root.clientWidth) return;
    const told = current();
    paintRail();
    for (const name of ["closed", "sampled", "greedy"]) part[name].hidden = isServer();
    part.quiz.hidden = isServer() || isGuided();
    part.contexts.hidden = !isServer();
    part.badge.replaceChildren(h("i", {}), isLive() ? W.badge.live : W.badge.recorded);
    part.badge.hidden = !told;
    root.dataset.source = isLive() ? "live" : "recorded";
    if (isServer()) return theirs.paint(told, S.running);
    if (!told) return paintNothing();
    part.place.textContent = words(W.place[S.pair], {
      ...told,
      text: visible(told.text.join("").trim()),
    });
    paintVerdict(told);
    paintClosed(told);
    paintSampled(told);
    paintGreedy(told);
  }

  function paintNothing() {
    for (const name of ["verdict", "closed", "sampled", "greedy"]) part[name].replaceChildren();
    part.place.textContent = S.running ? W.rail.starting : RECORDED[S.pair] ? W.nothing : "";
  }

  /* -- the three checks -- */

  const stamp = (
    kind,
    small,
    label = { good: W.verdict.passed, bad: W.verdict.failed, missed: W.verdict.unsure }[kind],
  ) =>
    h(
      "div",
      {
        class: "sd-stamp sd-" + kind + (small ? " sd-small" : ""),
        role: "img",
        "aria-label": label,
      },
      { good: "✓", bad: "✗", missed: "?" }[kind],
    );
  const kindOf = (passed) => (passed === false ? "bad" : passed === null ? "missed" : "good");

  /* A status line speaks when it changes, so a growing sample leaves it alone until it does. */
  function paintVerdict(told) {
    const { kind, failed, checks } = verdictOf(told, S.draws),
      said = sentence(told, kind, failed, checks),
      key = kind + said;
    if (part.verdict.dataset.said === key && part.verdict.firstChild) return;
    part.verdict.dataset.said = key;
    part.verdict.replaceChildren(
      stamp(kind),
      h("div", {}, h("h2", {}, W.verdict[kind]), h("p", {}, said)),
    );
  }

  function sentence(told, kind, failed, checks) {
    const V = W.verdict,
      needed = neededBy(told),
      sample = sampleAt(told, S.draws),
      draws = sample ? count(sample[0]) : "0";
    if (kind === "good")
      return told.harmless && recorded(S.pair, "")
        ? words(V.harmless, {
            beta: chance(told.closed.overlap),
            masked: chance(recorded(S.pair, "").closed.overlap),
          })
        : V.right;
    if (kind === "missed" && told.least_k > told.k)
      return words(V.shallow, { least: told.least_k, k: told.k });
    if (kind === "missed")
      return words(needed ? V.small : told.beyond ? V.unlisted : "", {
        draws,
        needed: about(needed || told.beyond),
      });
    const said = [
      words(V.wrong, {
        mistake: NAMED[told.mistake] ? NAMED[told.mistake].title : "–",
        count: V.counts[failed],
        fail: failed === 1 ? V.fails : V.fail,
      }),
    ];
    if (checks.closed) said.push(V.hidden);
    else if (checks.sampled && needed > sample[0])
      said.push(words(V.needs, { draws, needed: about(needed) }));
    if (checks.greedy) said.push(V.greedy_blind);
    return sentences(said);
  }

  function level(name, passed, title, result, lead, ...more) {
    part[name].replaceChildren(
      stamp(kindOf(passed), true),
      h(
        "div",
        { class: "sd-levelbody" },
        h("div", { class: "sd-levelhead" }, h("h2", {}, title), h("b", {}, result)),
        h("p", { class: "sd-sub" }, lead),
        ...more,
      ),
    );
  }

  const key = (...items) =>
    h(
      "div",
      { class: "sd-key" },
      items.map(([cls, label]) => h("span", {}, h("i", { class: cls }), label)),
    );
  const note = (...inner) => h("p", { class: "sd-sub sd-after" }, inner);
  const short = (piece, room) => {
    const label = shown(piece),
      most = Math.max(2, Math.floor(room / 7.4));
    return label.length > most ? label.slice(0, most - 1) + "…" : label;
  };

  function paintClosed(told) {
    const C = W.closed,
      { error, overlap, needed } = told.closed,
      passed = isExact(told),
      box = h("div", {});
    level(
      "closed",
      passed,
      C.title,
      error === null ? C.no_law : words(C.error, { error: figure(error) }),
      C.lead,
      key(["sd-i-target", C.target], [passed ? "sd-i-good" : "sd-i-rej", C.written]),
      box,
      note(
        sentences(
          words(C.overlap, { beta: chance(overlap) }),
          needed && words(C.needed, { needed: about(needed) }),
        ),
      ),
    );
    box.append(bars(told.closed, box.clientWidth));
  }

  function bars({ rows, rest }, width) {
    const all = [...rows, ...(Math.max(...rest) > 1e-6 ? [[null, ...rest]] : [])],
      wide = width / all.length,
      zero = 150,
      H = hatch(),
      g = svg(width, 176, W.closed.aria, H.defs);
    const most = Math.max(...all.flatMap(([, p, law]) => [p, law || 0])),
      y = (v) => (v / most) * 118,
      thick = Math.min(34, wide * 0.34);
    all.forEach(([piece, p, law], i) => {
      const middle = (i + 0.5) * wide,
        off = law === null ? 0 : law - p,
        same = Math.abs(off) <= EXACT;
      g.append(rect(middle - thick - 1, zero - y(p), thick, y(p), { class: "sd-f-target" }));
      if (law !== null)
        g.append(
          rect(
            middle + 1,
            zero - y(law),
            thick,
            y(law),
            same ? { class: "sd-f-acc sd-o-acc" } : { fill: H.fill, class: "sd-s-rej" },
          ),
        );
      if (Math.abs(off) >= 0.0005)
        g.append(
          text(
            middle,
            zero - y(Math.max(p, law)) - 7,
            (off > 0 ? "+" : "−") + Math.abs(off).toFixed(Math.abs(off) < 0.005 ? 3 : 2),
            "sd-b",
            "middle",
          ),
        );
      g.append(
        text(
          middle,
          zero + 17,
          piece === null ? W.closed.rest : short(piece, wide),
          piece === null ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    g.append(line(0, zero, width, zero, "sd-ax"));
    return g;
  }

  function paintSampled(told) {
    const P = W.sampled,
      sample = sampleAt(told, S.draws),
      exact = told.mistake && told.closed.error !== null ? told.exact : null,
      { sampled } = checksOf(told, S.draws),
      draws = count(sample ? sample[0] : 0),
      box = h("div", {}),
      notes = [];
    const [, , g, degrees, tail, impossible] = sample ? sample[1][sample[1].length - 1] : [];
    const p =
      tail < FALSE_ALARM
        ? P.tiny
        : tail < 1
          ? words(P.chance, { p: tail < 0.005 ? figure(tail) : tail.toFixed(2) })
          : P.usual;
    const result = !sample
      ? "–"
      : g === null
        ? words(P.ruled_out, { n: count(impossible), draws })
        : words(P.figure, { g: count(g), degrees, chance: p });
    if (exact)
      notes.push(
        words(P.exact, { paths: count(exact.paths), tv: figure(exact.tv[2]) }),
        exact.needed && words(P.needed, { needed: about(exact.needed) }),
      );
    level(
      "sampled",
      sampled,
      words(P.title, { draws }),
      result,
      P.lead,
      box,
      note(sentences(notes)),
    );
    if (sample) box.append(distances(sample[1], exact, box.clientWidth));
  }

  function distances(found, exact, width) {
    const left = 96,
      room = width - left - 56,
      most =
        Math.max(0.02, ...found.flatMap(([tv, band]) => [tv, band]), ...(exact ? exact.tv : [])) *
        1.08,
      x = (v) => left + (v / most) * room,
      g = svg(width, 134, W.sampled.aria);
    found.forEach(([tv, band, ...more], i) => {
      const y = 18 + i * 32,
        red = isRed([tv, band, ...more]),
        at = x(tv);
      g.append(
        text(0, y + 4, W.sampled.rows[i], "sd-k"),
        line(left, y, width, y, "sd-grid"),
        rect(left, y - 9, x(band) - left, 18, { class: "sd-f-pla" }),
      );
      if (exact) g.append(line(x(exact.tv[i]), y - 12, x(exact.tv[i]), y + 12, "sd-mean"));
      g.append(
        red
          ? s("path", { d: `M${at - 6} ${y - 6}l12 12m0 -12l-12 12`, class: "sd-cross" })
          : s("circle", { cx: at, cy: y, r: 6, class: "sd-f-acc sd-fine" }),
        text(Math.max(at, exact ? x(exact.tv[i]) : 0) + 13, y + 4, tv.toFixed(3), "sd-b"),
      );
    });
    g.append(line(left, 104, width, 104, "sd-ax"));
    const step = niceStep(most, room / 70);
    for (let v = 0; v <= most; v += step)
      g.append(text(x(v), 121, v.toFixed(step < 0.01 ? 3 : 2), "", "middle"));
    return g;
  }

  function paintGreedy(told) {
    const G = W.greedy,
      { equal, of, start, gap, coarse } = told.greedy,
      passed = equal === of,
      at = passed ? -1 : equal - start,
      notes = [];
    const row = (pieces, spoken) =>
      h(
        "div",
        { class: "sd-chips" },
        start ? "… " : null,
        pieces.map((piece, i) =>
          chip(
            PW,
            piece,
            spoken && i === at ? "rej" : "pla",
            "span",
            !spoken ? G.plain : at < 0 || i < at ? G.same : i === at ? G.other : G.behind,
          ),
        ),
        start + pieces.length < of ? " …" : null,
      );
    if (gap !== null)
      notes.push(
        words(G.gap, { gap: figure(gap) }),
        told.mistake ? "" : gap > NEAR ? G.far : G.near,
      );
    if (passed && coarse)
      notes.push(
        ...(coarse.equal === coarse.of
          ? [words(G.coarse_equal, coarse)]
          : [
              words(G.coarse_differs, { n: coarse.equal + 1, gap: figure(coarse.gap ?? 0) }),
              G.coarse_why,
            ]),
      );
    level(
      "greedy",
      passed,
      G.title,
      words(passed ? G.equal : G.differs, { of, n: equal + 1 }),
      G.lead,
      h(
        "div",
        { class: "sd-diff" },
        h("span", { class: "sd-sub" }, G.plain),
        row(told.greedy.plain, false),
        h("span", { class: "sd-sub" }, G.speculative),
        row(told.greedy.speculative, true),
      ),
      note(sentences(notes)),
    );
  }

  /* -- the rail -- */

  function paintRail() {
    for (const node of root.querySelectorAll(".sd-bug"))
      node.setAttribute("aria-checked", String(node.dataset.key === S.mistake));
    for (const node of part.pair.children)
      node.setAttribute("aria-pressed", String(node.dataset.pair === S.pair));
    part.text.closest("label").hidden = S.pair !== "embedded";
    for (const node of [part.bugs, part.more.parentNode]) node.hidden = isServer() || isGuided();
    part.guided.hidden = !isGuided();
    part.railtitle.textContent = isServer() ? W.server.rail.title : W.rail.title;
    part.raillead.textContent = isServer()
      ? W.server.rail.lead
      : isGuided()
        ? W.rail.lead_grammar
        : W.rail.lead;
    part.theirs.hidden = !isServer();
    part.drawslabel.textContent = isServer() ? W.server.rail.draws : W.rail.draws;
    part.run.textContent = isServer() ? W.server.rail.run : W.rail.run;
    part.drawsvalue.textContent = count(S.draws);
    part.draws.setAttribute("aria-valuetext", count(S.draws));
    part.run.disabled = S.running;
    part.stop.disabled = !S.running;
    const now =
      S.running && isLive() ? (isServer() ? theirs.share(S.live) * S.asked.draws : S.live.done) : 0;
    part.progress.hidden = !S.running;
    part.progress.value = S.asked ? now / S.asked.draws : 0;
    if (S.running && isServer()) return isLive() ? say(theirs.doing(S.live)) : null;
    if (now) say(words(W.sampled.progress, { done: count(now), draws: count(S.asked.draws) }));
  }

  function say(line, wrong = false) {
    if (part.said.textContent !== line) part.said.textContent = line;
    part.said.classList.toggle("sd-wrong", wrong);
  }

  function choose(change) {
    Object.assign(S, change);
    if (change.pair) {
      part.draws.value = isServer() ? SERVER_DRAWS : DRAWS[S.pair].length - 1;
      S.draws = DRAWS[S.pair][+part.draws.value];
      if (!plantable().includes(S.mistake)) S.mistake = "";
    }
    if (!isServer() && !RECORDED[S.pair]) fetchRecorded(S.pair);
    if (S.running && !isAsked()) stop();
    else if (change.pair) say("");
    draw();
  }

  function run() {
    const asked = {
      pair: S.pair,
      mistake: S.mistake,
      draws: S.draws,
      seed: Math.floor(Math.random() * 2 ** 31),
      text: part.text.value,
    };
    Object.assign(S, { asked, live: null, running: true });
    say(W.rail.starting);
    trigger("submit", isServer() ? { ...asked, ...theirs.asked() } : asked);
    draw();
  }

  function stop() {
    trigger("stop");
    over();
    if (S.asked && S.asked.pair === "server") say(W.server.stopped);
  }

  function over() {
    if (!S.running) return;
    S.running = false;
    const done = S.live ? S.live.done : 0;
    if (props.wrong) say(props.said, true);
    else if (S.asked.pair === "server") say(props.said);
    else if (done < S.asked.draws) say(words(W.rail.stopped, { done: count(done) }));
    draw();
  }

  /* What arrives after a stop, or for another question, is late. News may come faster than a busy machine draws: a
   * frame draws the newest. A hidden page draws it when it is seen again. */
  function arrived() {
    if (!S.running || !props.value) return;
    const told = JSON.parse(props.value);
    if (
      told.pair !== S.asked.pair ||
      (told.pair === "server" ? told.seed !== S.asked.seed : told.mistake !== S.asked.mistake)
    )
      return;
    S.live = { ...told, exact: (recorded(told.pair, told.mistake) || {}).exact };
    S.frame ||= requestAnimationFrame(() => {
      S.frame = 0;
      draw();
    });
  }

  /* -- predict, then reveal -- */

  function paintQuiz() {
    const Q = W.quiz,
      boxes = [...part.guesses.querySelectorAll("input")],
      truth = (name) => {
        const told = recorded("toy", name);
        return told ? isExact(told) : null;
      };
    for (const box of boxes) {
      const told = recorded("toy", box.value),
        answer = box.closest("label").querySelector("small");
      answer.textContent =
        !S.revealed || !told
          ? ""
          : isExact(told)
            ? Q.hidden
            : told.closed.error === null
              ? Q.broken
              : words(Q.seen, { error: figure(told.closed.error) });
      box.disabled = S.revealed;
    }
    part.reveal.textContent = S.revealed ? Q.again : Q.reveal;
    const right = scoreOf(boxes.map((box) => ({ ticked: box.checked, hidden: truth(box.value) })));
    part.score.textContent = !S.revealed
      ? ""
      : right === null
        ? Q.unguessed
        : words(Q.score, { right, of: boxes.length });
  }

  function reveal() {
    S.revealed = !S.revealed;
    if (!S.revealed) for (const box of part.guesses.querySelectorAll("input")) box.checked = false;
    paintQuiz();
  }

  /* -- what stands still, and listening -- */

  function bug(name) {
    const { title, what, met } = NAMED[name],
      node = h(
        "button",
        {
          type: "button",
          class: "sd-bug",
          role: "switch",
          "data-key": name,
          "aria-checked": "false",
        },
        h("i", {}),
        h("b", {}, title),
        h("span", {}, sentences(what, met && words(W.rail.met, { met }))),
      );
    node.onclick = () => choose({ mistake: S.mistake === name ? "" : name });
    return node;
  }

  function furniture() {
    const R = W.rail,
      labels = {
        railtitle: R.title,
        raillead: R.lead,
        more: words(R.more, { n: KEYS.length - FIRST }),
        pairlabel: R.pair,
        textlabel: R.text,
        drawslabel: R.draws,
        run: R.run,
        stop: R.stop,
        quiztitle: W.quiz.title,
        quizlead: W.quiz.lead,
      };
    for (const [name, label] of Object.entries(labels)) part[name].textContent = label;
    for (const name of ["bugs", "others", "guided", "aside"])
      part[name].setAttribute("aria-label", R.title);
    for (const [name, label] of [
      ["pair", R.pair],
      ["progress", R.run],
    ])
      part[name].setAttribute("aria-label", label);
    part.bugs.append(...KEYS.slice(0, FIRST).map(bug));
    part.guided.append(...GUIDED.map(bug));
    part.others.append(...KEYS.slice(FIRST).map(bug));
    part.pair.append(
      ...Object.entries(R.pairs)
        .filter(([name]) => name !== "server" || theirs.offered)
        .map(([name, label]) => h("button", { type: "button", "data-pair": name }, label)),
    );
    part.guesses.append(
      ...KEYS.slice(0, FIRST).map((name) =>
        h(
          "label",
          {},
          h("input", { type: "checkbox", value: name }),
          h("span", {}, W.mistakes[name].title, h("small", {})),
        ),
      ),
    );
    part.text.value = props.text;
    part.draws.max = DRAWS.toy.length - 1;
    part.draws.value = DRAWS.toy.length - 1;
    paintQuiz();
  }

  function listen() {
    part.pair.onclick = (event) =>
      event.target.dataset.pair && choose({ pair: event.target.dataset.pair });
    part.text.oninput = () => choose({});
    part.draws.oninput = () => choose({ draws: DRAWS[S.pair][+part.draws.value] });
    part.run.onclick = run;
    part.stop.onclick = stop;
    part.reveal.onclick = reveal;
    watch("value", arrived);
    watch(["said", "wrong"], () => say(props.said, props.wrong === true));
    watch("ended", over);
    new ResizeObserver(draw).observe(root);
  }

  furniture();
  listen();
  choose({});
}

mount(element, props, watch, trigger, server);
