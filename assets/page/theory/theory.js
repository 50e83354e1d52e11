// @ts-check
/* What the formulas say, with sliders; and how far a measured run bears them out.
 *
 * The run and the makers of elements are the player's. */

const KIT = require("../race/player.js");
const {
  expectedTokens,
  expectedAccepted,
  acceptedDistribution,
  throughput,
  speedup,
  growing,
  bestK,
  breakEven,
  wilson,
} = require("./formulas.js");
const { ofRun, predicted } = require("./measured.js"),
  { axes, times, range, path, dot, barCell, rows, ticks, stepsTo } = require("./axes.js");
const { opening } = require("./opening.js"),
  { memoryWall } = require("./wall.js"),
  { claimsOf } = require("./claims.js");

const LARGEST = 16,
  BENDS = [0.5, 0.6, 0.7, 0.8, 0.9]; // the deepest draft; the grey curves
const EXAMPLE = { alpha: 0.8, k: 4, c: 0.1, v: 1, o: 0 };

function mount(element, props) {
  const { h, headRow, s, text, line, rect, svg, words, sentences, fixed, clamp, duration } = KIT;
  const W = JSON.parse(props.words),
    { models, read, machines: known } = JSON.parse(props.hardware),
    machines = known.map((one) => ({ ...one, name: W.machines[one.id] ?? one.name })),
    reports = JSON.parse(props.results),
    player = document.querySelector(".sd-player");
  const root = element.querySelector(".sd-theory"),
    part = KIT.parts(root);
  const S = {
    ...EXAMPLE,
    grows: true,
    mine: false,
    touched: false,
    machine: "h100",
    target: "llama8",
    draft: "llama1",
    bits: 16,
    batch: 1,
    context: 512,
  };
  const SLIDERS = { alpha: 2, k: 0, c: 3, v: 2, o: 3 }; // and the digits that they show
  const CHARTS = [
      "curves",
      "measured",
      "kept",
      "positions",
      "checks",
      "roof",
      "batches",
      "trade",
      "wall",
      "heat",
    ],
    room = {}; // their widths, read only when the page's changes
  /** @type {any} */
  let here = null;

  const cost = (k) => (S.grows ? growing(S.v, S.k)(k) : S.v);
  const gain = (k, alpha = S.alpha) => speedup(alpha, k, S.c, cost(k), S.o);
  const { frame, speedAxis } = axes(W, room),
    hardware = { machines, models, read, reports, example: EXAMPLE };
  const first = opening(W, part, S, room, hardware),
    wall = memoryWall(W, part, S, { frame, speedAxis }, hardware);
  const claims = claimsOf(W, part, S, { set, choose: wall.choose, announce, best }, hardware);
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
    Object.assign(S, {
      alpha,
      c,
      v,
      o,
      k: clamp(k, 1, LARGEST),
      grows: S.mine ? S.grows : true,
      mine: true,
    });
    draw();
  }

  function set(values) {
    Object.assign(S, values, { mine: false, touched: true });
    draw();
  }

  function slide(name, value) {
    set(name === "k" && S.grows ? { k: value, v: growing(S.v, S.k)(value) } : { [name]: value });
  }

  function announce() {
    part.announce.textContent = part.headline.textContent;
  }

  function best() {
    return bestK(S.alpha, S.c, cost, S.o, LARGEST);
  }

  /* -- everything from the state -- */

  function measure() {
    if (!root.clientWidth) return; // a tab that is not shown does not draw
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
    first.paint(gain(S.k), expectedTokens(S.alpha, S.k), S.k * S.c + S.v + S.o);
    wall.paint();
    claims.paint();
  }

  function paintSliders() {
    for (const [name, digits] of Object.entries(SLIDERS)) {
      part[name].value = S[name];
      part[name + "value"].textContent = fixed(S[name], digits);
    }
    for (const node of part.growth.children)
      node.setAttribute("aria-pressed", String((node.dataset.growth === "grows") === S.grows));
    part.here.disabled = !here;
    part.here.setAttribute("aria-pressed", String(S.mine));
    part.units.textContent = sentences(W.units, !here && W.no_run);
    const now = gain(S.k),
      told = {
        times: times(now),
        tokens: fixed(expectedTokens(S.alpha, S.k)),
        passes: fixed(S.k * S.c + S.v + S.o),
      };
    part.headline.textContent = words(now >= 1 ? W.headline.faster : W.headline.slower, told);
  }

  /* -- the curves -- */

  function paintCurves() {
    const roomy = room.curves > 560,
      A = frame("curves", roomy ? 420 : 372, W.curves.aria, { right: roomy ? 62 : 40 }),
      { g } = A,
      ks = range(1, LARGEST);
    const own = Math.max(...ks.map((k) => gain(k)), S.mine ? here.measured : 0),
      highest = Math.max(...ks.map((k) => gain(k, BENDS[BENDS.length - 1]))),
      y = speedAxis(A, Math.max(2, own * 1.1, Math.min(highest * 1.06, own * 2.2)), S.k < 9),
      x = (k) => A.left + ((k - 1) / (LARGEST - 1)) * A.wide;
    ticks(
      A,
      ks.filter((k) => roomy || k % 2 || k === S.k).map((k) => [x(k), k, k === S.k ? "sd-b" : ""]),
      W.curves.axis,
    );
    const label = (alpha) => (roomy ? "α " : "") + fixed(alpha, alpha === S.alpha ? 2 : 1),
      taken = [y(gain(LARGEST))];
    for (const alpha of BENDS.filter((one) => Math.abs(one - S.alpha) > 0.035)) {
      const points = ks.map((k) => [x(k), y(gain(k, alpha))]).filter(([, at]) => at >= A.top),
        [, at] = points[points.length - 1];
      if (points.length < LARGEST) continue;
      g.append(path(points, "sd-th-bend"));
      const k = bestK(alpha, S.c, cost, S.o, LARGEST);
      if (k) g.append(dot(x(k), y(gain(k, alpha)), 3.5, "sd-dot-b"));
      if (taken.every((other) => Math.abs(other - at) > 13)) {
        taken.push(at);
        g.append(text(A.width - A.right + 8, at + 4, label(alpha)));
      }
    }
    g.append(
      path(
        ks.map((k) => [x(k), y(gain(k))]),
        "sd-line-a",
      ),
      text(A.width - A.right + 8, taken[0] + 4, label(S.alpha), "sd-b"),
    );
    paintPoints(A, x, y);
    part.curves.replaceChildren(g);
  }

  /* Past the best K the curve falls away to the right of the point, before it to the left: there is room for words. */
  function paintPoints({ g, floor, left, wide }, x, y) {
    const k = best(),
      now = gain(S.k),
      at = x(S.k),
      low = y(now),
      name = S.mine
        ? words(W.curves.here, { times: times(now), measured: times(here.measured) })
        : times(now),
      rising = at > left + 130 && (S.k < k || at > left + wide - 130),
      side = rising ? -12 : 12;
    if (k) g.append(dot(x(k), y(gain(k)), 4.5, "sd-dot-b"));
    if (k && Math.abs(k - S.k) > 1)
      g.append(
        text(
          clamp(x(k), left + 40, left + wide - 36),
          y(gain(k)) - 12,
          words(W.curves.best, { k }),
          "sd-b",
          "middle",
        ),
      );
    g.append(
      line(at, low, at, floor, "sd-th-drop"),
      dot(at, low, 7, "sd-th-you"),
      text(at + side, low - 12, name, "sd-th-mine sd-b", rising ? "end" : "start"),
    );
    if (S.mine)
      g.append(
        s("path", { d: `M${at} ${y(here.measured) - 7}l7 7l-7 7l-7-7z`, class: "sd-th-real" }),
      );
  }

  /* -- which K -- */

  function paintTable() {
    const top = best(),
      ks = range(1, LARGEST).filter((k) => k <= 10 || k === S.k || k === top),
      most = Math.max(...ks.map((k) => gain(k)));
    const tags = (k) =>
      [k === S.k ? (S.mine ? W.table.mine : W.table.set) : null, k === top ? W.table.best : null]
        .filter(Boolean)
        .join(", ");
    const row = (k) =>
      h(
        "tr",
        { class: k === top ? "sd-th-best" : null },
        h(
          "th",
          { scope: "row" },
          String(k),
          tags(k) ? h("span", { class: "sd-th-tag" }, tags(k)) : null,
        ),
        h("td", {}, fixed(expectedTokens(S.alpha, k))),
        h("td", {}, fixed(k * S.c + cost(k) + S.o)),
        h("td", {}, times(gain(k))),
        barCell(gain(k) / most, k === top),
      );
    part.table.replaceChildren(
      headRow([...Object.values(W.table.heads), h("td")]),
      h("tbody", {}, ks.map(row)),
    );
    part.tablesub.textContent = top
      ? sentences(words(W.table.sub, { k: top }), whyNotLonger(top))
      : W.table.none;
  }

  /* One more draft than the best K: what it would bring, what it would cost. */
  function whyNotLonger(k) {
    if (k >= LARGEST) return "";
    const brings = S.alpha ** (k + 1),
      costs = S.c + cost(k + 1) - cost(k);
    return words(W.table.why, {
      next: k + 1,
      brings: fixed(brings),
      costs: fixed(costs),
      rate: fixed(brings / costs),
      now: fixed(gain(k)),
    });
  }

  /* -- predicted and measured -- */

  function paintMeasured() {
    const M = W.measured;
    if (!here) {
      part.measured.replaceChildren();
      part.measuredsay.textContent = M.none;
      return;
    }
    const [low, high] = wilson(here.accepted, here.judged).map((alpha) =>
      speedup(alpha, here.k, here.c, here.v, here.o),
    );
    const formula = speedup(here.alpha, here.k, here.c, here.v, here.o),
      other = predicted(reports, here),
      costs = { c: fixed(here.c), v: fixed(here.v), o: fixed(here.o) };
    const bars = [
      [
        M.free,
        expectedTokens(here.alpha, here.k),
        words(M.free_note, { alpha: fixed(here.alpha), k: here.k }),
        "sd-th-pale",
      ],
      [M.formula, formula, words(M.formula_note, costs), "sd-f-target", [low, high]],
      ...(other
        ? [
            [
              M.predicted,
              other.value,
              words(M.predicted_note, { k: other.row.k, t: fixed(other.row.temperature, 1) }),
              "sd-f-target",
            ],
          ]
        : []),
      [
        M.accounted,
        here.accounted,
        words(M.accounted_note, { tau: fixed(here.tau) }),
        "sd-f-target",
      ],
      [M.measured, here.measured, M.measured_note, "sd-th-you"],
    ];
    part.measured.replaceChildren(measuredBars(bars));
    part.measuredsay.textContent = explain(formula, low, high, other);
  }

  function measuredBars(bars) {
    const high = 54,
      width = room.measured,
      g = svg(width, bars.length * high + 18, W.measured.aria),
      most = Math.max(...bars.map(([, value, , , reach]) => (reach ? reach[1] : value))),
      x = (v) => (v / most) * (width - 62);
    bars.forEach(([name, value, note, cls, reach], i) => {
      const y = i * high,
        low = y + 21;
      g.append(
        text(0, y + 14, name, i === bars.length - 1 ? "sd-b" : "sd-k"),
        rect(0, low, x(value), 17, { class: cls }),
        text(x(value) + 8, y + 34, times(value), "sd-b"),
      );
      if (width > 420) g.append(text(width, y + 14, note, "", "end"));
      if (reach)
        g.append(
          line(x(reach[0]), low + 23, x(reach[1]), low + 23, "sd-th-whisker"),
          ...reach.map((v) => line(x(v), low + 19, x(v), low + 27, "sd-th-whisker")),
        );
      g.append(line(x(1), low - 2, x(1), low + 19, "sd-th-plain"));
    });
    g.append(text(x(1), bars.length * high + 10, W.measured.plain, "", "middle"));
    return g;
  }

  /* What the formula leaves out, step by step down to the clock. */
  function explain(formula, low, high, other) {
    const M = W.measured,
      inside = here.measured >= low && here.measured <= high,
      gap = here.accounted - here.measured,
      told = { measured: times(here.measured), low: fixed(low), high: fixed(high), n: here.judged };
    const positions = here.accounted - formula,
      parts = [words(inside ? M.inside : M.outside, told)];
    parts.push(
      words(
        Math.abs(positions) < 0.02
          ? M.even
          : here.share < 0.98
            ? M.shorter
            : here.varied
              ? M.varied
              : M.uneven,
        {
          by: times(Math.abs(positions)),
          way: positions < 0 ? M.less : M.more,
          share: fixed(here.share * 100, 0),
        },
      ),
    );
    parts.push(
      words(Math.abs(gap) < 0.02 * here.measured ? M.closes : M.open, {
        by: times(Math.abs(gap)),
        way: gap > 0 ? M.slower_than : M.faster_than,
      }),
    );
    if (other)
      parts.push(
        words(M.machine, {
          cores: other.row.machine.cores,
          measured: times(other.row.measured_speedup),
        }),
      );
    return sentences(parts);
  }

  /* -- how many drafts are kept -- */

  function paintKept() {
    const A = frame("kept", 210, W.kept.aria, { left: 30, bottom: 40, top: 20 }),
      { g } = A,
      chances = acceptedDistribution(S.alpha, S.k),
      seen =
        S.mine && here.keptOf.length
          ? chances.map(
              (_, n) => here.keptOf.filter((kept) => kept === n).length / here.keptOf.length,
            )
          : null;
    const most = Math.max(...chances, ...(seen || [])),
      step = A.wide / chances.length,
      x = (n) => A.left + (n + 0.5) * step,
      y = (v) => A.floor - (v / most) * A.tall,
      wide = Math.min(44, step * 0.68);
    g.append(line(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"));
    chances.forEach((chance, n) => {
      g.append(
        rect(x(n) - wide / 2, y(chance), wide, A.floor - y(chance), {
          class: n === S.k ? "sd-f-bon sd-o-bon" : "sd-f-acc sd-o-acc",
        }),
      );
      if (step > 30)
        g.append(
          text(x(n), y(Math.max(chance, seen ? seen[n] : 0)) - 7, fixed(chance), "", "middle"),
        );
      if (seen)
        g.append(
          line(x(n) - wide / 2 - 2, y(seen[n]), x(n) + wide / 2 + 2, y(seen[n]), "sd-th-seen"),
        );
    });
    ticks(
      A,
      chances.map((_, n) => [x(n), n, n === S.k ? "sd-b" : ""]),
      W.kept.axis,
    );
    part.kept.replaceChildren(g);
    part.keptsub.textContent = words(seen ? W.kept.sub_seen : W.kept.sub, {
      k: S.k,
      n: here ? here.keptOf.length : 0,
    });
    paintRecursion();
  }

  function paintRecursion() {
    const R = W.recursion,
      shown = range(Math.max(0, S.k - 3), S.k)
        .reverse()
        .map((j) => `E_${j} = ${fixed(expectedAccepted(S.alpha, S.k, j))}`),
      first = expectedAccepted(S.alpha, S.k),
      told = { n: S.k, p: fixed(S.alpha), first: fixed(first), tokens: fixed(first + 1) };
    const chain = shown.join("  →  ") + (S.k > 3 ? "  →  …  →  E_0 = " + fixed(first) : ""),
      ms = here ? here.passMs : null,
      unit = ms ? ms / 1000 : 1;
    const rate = throughput(S.alpha, S.k, S.c * unit, (S.v + S.o) * unit),
      speeds = {
        ...told,
        draft: ms ? duration(S.c * ms) : fixed(S.c, 3),
        verify: ms ? duration((S.v + S.o) * ms) : fixed(S.v + S.o),
        rate: ms
          ? words(R.per_second, { rate: fixed(rate, 0) })
          : words(R.per_pass, { rate: fixed(rate) }),
      };
    part.recursion.replaceChildren(
      ...[
        words(R.rule, told),
        chain,
        words(R.closed, told),
        words(R.tokens, told),
        words(R.throughput, speeds),
      ].map((row) => h("p", {}, lowered(row))),
    );
    const v = cost(1),
      need = breakEven(S.c, v, S.o),
      B = W.break_even,
      about = {
        c: fixed(S.c, 3),
        v: fixed(v),
        o: fixed(S.o, 3),
        need: fixed(need),
        alpha: fixed(S.alpha),
      };
    part.breakeven.textContent = sentences(
      words(need > 1 ? B.never : S.alpha > need ? B.pays : B.loses, about),
      words(B.free, about),
    );
  }

  /* What stands behind an underscore is an index. */
  const lowered = (row) =>
    row.split(/_(\d+|\w(?:\+1)?)/).map((piece, i) => (i % 2 ? h("sub", {}, piece) : piece));

  /* -- acceptance by position, and the cost of a check -- */

  function paintPositions() {
    part.positionssub.textContent = here
      ? here.tree
        ? W.positions.sub_tree
        : W.positions.sub
      : W.measured.none;
    if (!here) return part.positions.replaceChildren();
    const A = frame("positions", 190, W.positions.aria, { left: 30, bottom: 40, right: 66 }),
      { g } = A,
      n = here.alphas.length,
      step = A.wide / Math.max(n, 3),
      x = (i) => A.left + (i + 0.5) * step,
      y = (v) => A.floor - v * A.tall;
    rows(
      A,
      [0, 0.5, 1].map((v) => [y(v), String(v), v ? "" : "sd-ax"]),
    );
    g.append(
      line(A.left, y(here.alpha), A.left + A.wide, y(here.alpha), "sd-dots"),
      text(A.left + A.wide + 6, y(here.alpha) + 4, "α " + fixed(here.alpha), "sd-b"),
    );
    here.alphas.forEach((alpha, i) => {
      const [low, high] = wilson(here.acceptedAt[i], here.judgedAt[i]);
      g.append(
        line(x(i), y(low), x(i), y(high), "sd-th-whisker"),
        ...[low, high].map((v) => line(x(i) - 5, y(v), x(i) + 5, y(v), "sd-th-whisker")),
        dot(x(i), y(alpha), 4.5, "sd-dot-a"),
      );
      if (step > 50) g.append(text(x(i) + 9, y(alpha) + 4, fixed(alpha), "sd-b"));
    });
    ticks(
      A,
      here.judgedAt.map((n, i) => [
        x(i),
        step > 58 ? words(W.positions.tick, { i: i + 1, n }) : i + 1,
      ]),
      W.positions.axis,
    );
    part.positions.replaceChildren(g);
  }

  /* Points of this run, and those that the bench recorded for drafts of fixed length. */
  function paintChecks() {
    const mine = here ? here.checks.filter((one) => one.n > 1 || here.checks.length === 1) : [],
      bench = benchChecks();
    if (!mine.length && !bench.length) {
      part.checkssub.textContent = W.checks.none;
      return part.checks.replaceChildren();
    }
    const A = frame("checks", 200, W.checks.aria, { left: 38, bottom: 40, top: 20 }),
      { g } = A,
      all = [...mine, ...bench],
      last = Math.max(6, ...all.map((one) => one.rows)),
      most = Math.max(2, ...all.map((one) => one.cost)) * 1.08;
    const x = (n) => A.left + ((n - 1) / (last - 1)) * (A.wide - 20) + 6,
      y = (v) => A.floor - (v / most) * A.tall;
    rows(
      A,
      stepsTo(most, 4).map((v) => [y(v), fixed(v, 1)]),
    );
    ticks(
      A,
      [1, ...stepsTo(last, 8).slice(1)].map((n) => [x(n), n]),
      W.checks.axis,
    );
    g.append(
      line(x(1), y(1), x(last), y(1), "sd-th-one"),
      text(x(last), y(1) + 16, W.checks.free, "", "end"),
    );
    if (bench.length)
      g.append(
        path([[x(1), y(1)], ...bench.map((one) => [x(one.rows), y(one.cost)])], "sd-line-b"),
      );
    for (const one of bench) g.append(dot(x(one.rows), y(one.cost), 4, "sd-dot-b"));
    for (const one of mine)
      g.append(
        s("path", { d: `M${x(one.rows)} ${y(one.cost) - 7}l7 7l-7 7l-7-7z`, class: "sd-th-you" }),
        text(x(one.rows), y(one.cost) - 12, fixed(one.cost), "sd-th-mine", "middle"),
      );
    part.checks.replaceChildren(g);
    part.checkssub.textContent = sentences(
      here && W.checks.mine,
      bench.length && words(W.checks.bench, { cores: reports[0].machine.cores }),
    );
  }

  /* The middle verify cost at each K of a fixed draft, from the first report. */
  function benchChecks() {
    const at = {};
    for (const row of reports.length ? reports[0].rows : [])
      if (row.drafter === "draft_model" && row.verify_cost != null)
        (at[row.k + 1] = at[row.k + 1] || []).push(row.verify_cost);
    return Object.entries(at).map(([rows, costs]) => ({
      rows: +rows,
      cost: costs.sort((x, y) => x - y)[costs.length >> 1],
    }));
  }

  /* -- what stands still, and listening -- */

  function furniture() {
    for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
    for (const name of ["controls", "growth"]) part[name].setAttribute("aria-label", W.aria[name]);
    part.growth.append(
      ...["same", "grows"].map((name) =>
        h("button", { type: "button", "data-growth": name }, W.growth[name]),
      ),
    );
  }

  function listen() {
    for (const name of Object.keys(SLIDERS)) {
      part[name].oninput = () => slide(name, +part[name].value);
      part[name].onchange = announce;
    }
    part.growth.onclick = (event) => {
      if (event.target.dataset.growth) {
        S.grows = event.target.dataset.growth === "grows";
        draw();
        announce();
      }
    };
    part.here.onclick = () => {
      goHere();
      announce();
    };
    part.example.onclick = () => {
      set({ ...EXAMPLE, grows: false });
      announce();
    };
    part.small.onclick = () => {
      set({ alpha: 0.6, c: 0.1, v: 1, o: 0, k: bestK(0.6, 0.1), grows: false });
      announce();
    };
    player.addEventListener("sd-run", () => root.clientWidth && pull());
    new ResizeObserver(measure).observe(root);
  }

  furniture();
  listen();
  measure();
}

mount(element, props);
