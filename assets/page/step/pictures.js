// @ts-check
/* The evidence for a verdict: both models' probabilities, the coin, and what fills the gap after a rejection.
 *
 * `now()` is what the page shows: the cycle, the verdict, the target's own token, and the letters of the chosen
 * notation. */

const {
  h,
  s,
  text,
  line,
  rect,
  svg,
  hatch,
  fill,
  words,
  shown,
  chance,
  clamp,
  UNNAMED,
} = require("../race/player.js");
const { FIRST, MATCH, distributionsOf } = require("./judge.js");

const SHOWN = 6; // tokens in a chart; all others are one

/* Enough digits to tell two numbers apart. */
function apart(a, b) {
  let digits = 2;
  while (digits < 6 && a !== b && a.toFixed(digits) === b.toFixed(digits)) digits++;
  return [a.toFixed(digits), b.toFixed(digits)];
}
const figure = (x) =>
  x >= 0.1 || x === 0
    ? x.toFixed(2)
    : x >= 0.001
      ? x.toPrecision(2)
      : x.toExponential(0).replace("-", "−"); // a line would break at a hyphen
const key = (...items) =>
  h(
    "div",
    { class: "sd-key" },
    items.map(([cls, label]) => h("span", {}, h("i", { class: cls }), label)),
  );
const note = (told) => h("p", { class: "sd-sub sd-gapped" }, told);
const mark = (state, piece) => h("mark", { class: "sd-" + state }, shown(piece));
const same = (a, b) =>
  a.token === UNNAMED || b.token === UNNAMED ? a.piece === b.piece : a.token === b.token; // a server may tell no ids
const title = (told) => h("h3", {}, told);
const short = (piece, room) => {
  const label = shown(piece),
    most = Math.max(2, Math.floor(room / 7.4));
  return label.length > most ? label.slice(0, most - 1) + "…" : label;
};

/* The drafted token first, then the replacement and the likeliest, then all others. */
function rowsToShow(laws, draft, own) {
  const all = [...laws.known, ...laws.half],
    first = all.find((row) => row.token === draft.token),
    weight = (row) => (own && row.token === own.token ? 2 : Math.max(row.p || 0, row.q || 0));
  const others = all.filter((row) => row !== first).sort((a, b) => weight(b) - weight(a)),
    kept = [first, ...others.slice(0, SHOWN - 1)],
    folded = others.slice(SHOWN - 1).filter((row) => row.p != null && row.q != null);
  const rest = { ...laws.rest };
  for (const row of folded) {
    rest.p += row.p;
    rest.q += row.q;
    rest.min += Math.min(row.p, row.q);
  }
  for (const row of kept)
    if (row.p == null || row.q == null) {
      rest.p -= row.p || 0;
      rest.q -= row.q || 0;
    }
  return { kept, rest: { ...rest, p: Math.max(0, rest.p), q: Math.max(0, rest.q) } };
}

function pictures(W, now) {
  const letters = () => W.notation[now().notation];
  const drawn = () => now().own && now().own.sample;

  /* -- what each model believes -- */

  function bars(draft, width) {
    const { kept, rest } = rowsToShow(distributionsOf(draft), draft, drawn()),
      rows = [...kept, { rest: true, ...rest }],
      left = 84,
      high = 33,
      most = Math.max(1e-6, ...rows.flatMap((row) => [row.p || 0, row.q || 0])),
      x = (v) => (v / most) * (width - left - 52);
    const g = svg(width, rows.length * high + 6, W.position.bars_aria);
    rows.forEach((row, i) => {
      const y = i * high,
        cls = i === 0 ? "sd-b" : "sd-k";
      if (i === 0) g.append(rect(-8, y - 3, width + 8, high - 1, { rx: 6, class: "sd-f-hot" }));
      g.append(
        text(
          0,
          y + 18,
          row.rest ? W.rest : short(row.piece, left),
          row.rest ? "" : i ? "sd-tk" : "sd-tk sd-b",
        ),
      );
      for (const [value, cls2, dy] of [
        [row.p, "sd-f-target", 2],
        [row.q, "sd-f-draft sd-s-draft", 14],
      ]) {
        if (value != null)
          g.append(rect(left, y + dy, x(value), 11, { class: cls2, "stroke-width": 0.6 }));
        g.append(
          text(
            left + (value == null ? 0 : x(value)) + 6,
            y + dy + 10,
            value == null ? "·" : chance(value),
            dy === 2 ? cls : i === 0 ? "sd-b" : "",
          ),
        );
      }
    });
    return g;
  }

  /* -- the test -- */

  const verdictOf = (draft, trial, ...lead) =>
    h(
      "p",
      { class: "sd-so" },
      ...lead,
      mark(trial.kept ? "acc" : "rej", draft.piece),
      " ",
      h("b", {}, trial.kept ? W.position.stays : W.position.goes),
    );
  const formula = (told) => h("div", { class: "sd-formula" }, told);

  /* A strip from 0 to 1, green where the token stays, hatched where it goes, and the pin where the coin fell. */
  function coin(draft, trial, width, isGreedy) {
    const P = W.position,
      H = hatch(),
      r = trial.chance,
      { u } = trial,
      g = svg(width, 96, P.coin_aria, H.defs),
      [us, rs] = apart(u, r);
    g.append(
      rect(0, 44, width * r, 26, { class: "sd-f-acc sd-o-acc" }),
      rect(width * r, 44, width * (1 - r), 26, { fill: H.fill, class: "sd-s-rej" }),
      text(0, 88, "0"),
      text(width, 88, "1", "", "end"),
    );
    if (r > 0.04 && r < 0.96) g.append(text(width * r, 88, rs, "sd-b", "middle"));
    if (width * r > 50) g.append(text(8, 61, P.keep, "sd-on"));
    if (width * (1 - r) > 76)
      g.append(
        rect(width - 54, 48, 48, 18, { class: "sd-f-rej", rx: 3 }),
        text(width - 10, 61, P.reject, "sd-on", "end"),
      );
    g.append(
      s(
        "g",
        { class: "sd-drop" },
        line(width * u, 22, width * u, 74, "sd-pin"),
        s("circle", { cx: width * u, cy: 19, r: 5, class: "sd-dot-a" }),
        text(clamp(width * u, 34, width - 34), 8, "u = " + us, "sd-b", "middle"),
      ),
    );
    const ratio =
      trial.h != null
        ? words(P.formula_block, { h: figure(trial.h) })
        : `${letters().ratio} = ${figure(trial.p)} / ${figure(trial.q)} = ${figure(trial.p / trial.q)}`;
    return [
      g,
      verdictOf(draft, trial, words(P.so, { u: us, sign: trial.kept ? "<" : "≥", r: rs }), " "),
      formula(ratio),
      note(trial.h != null ? P.note_block : isGreedy ? P.note_is_greedy : P.note_greedy),
    ];
  }

  /* The test of a rule without a coin. */
  function plainTest(draft, trial, width) {
    const P = W.position;
    if (trial.limit != null)
      return [
        threshold(trial, width),
        verdictOf(draft, trial),
        formula(
          words(P.formula_typical, {
            name: letters().p_short,
            p: figure(trial.p),
            sign: trial.kept ? "≥" : "<",
            limit: figure(trial.limit),
          }),
        ),
        note(P.note_typical),
      ];
    const { rule } = now().verdict,
      first = rule === FIRST,
      wanted = trial.sample
        ? h(
            "p",
            { class: "sd-so" },
            ...fill(first ? P.first : P.sample, {
              x: mark(trial.kept ? "acc" : "res", trial.sample.piece),
            }),
          )
        : null;
    return [
      wanted,
      verdictOf(draft, trial),
      note(first ? P.note_first : rule === MATCH ? P.note_match : P.note_noise),
    ].filter(Boolean);
  }

  function threshold(trial, width) {
    const most = Math.max(trial.p, trial.limit) * 1.25,
      x = (v) => (v / most) * width,
      H = hatch(),
      g = svg(width, 96, W.position.test, H.defs),
      at = x(trial.limit);
    g.append(
      rect(0, 44, at, 26, { fill: H.fill, class: "sd-s-rej" }),
      rect(at, 44, width - at, 26, { class: "sd-f-acc sd-o-acc" }),
      text(0, 88, "0"),
      text(at, 88, figure(trial.limit), "sd-b", "middle"),
      text(width, 88, figure(most), "", "end"),
    );
    g.append(
      line(x(trial.p), 22, x(trial.p), 74, "sd-pin"),
      s("circle", { cx: x(trial.p), cy: 19, r: 5, class: "sd-dot-a" }),
      text(
        clamp(x(trial.p), 34, width - 34),
        8,
        letters().p_short + " " + figure(trial.p),
        "sd-b",
        "middle",
      ),
    );
    return g;
  }

  /* -- the target's own token -- */

  /* Drawn from a whole row of the target; or the row of a draft, as a server tells it. */
  function row(width, draft = /** @type {any} */ (null)) {
    const own = draft
        ? {
            law: draft.target,
            state: "pla",
            sample: draft.piece ? { token: draft.token, piece: draft.piece, prob: draft.p } : null,
          }
        : now().own,
      O = W.own,
      state = own.state;
    const rows = own.law.top.slice(0, SHOWN),
      at = own.sample && rows.findIndex((one) => same(one, own.sample));
    if (own.sample && at < 0) rows.push({ ...own.sample, prob: own.sample.prob ?? 0 });
    const high = 26,
      rest = Math.max(0, 1 - rows.reduce((sum, one) => sum + one.prob, 0)),
      list = [...rows, { piece: null, prob: rest }],
      most = Math.max(...list.map((one) => one.prob)),
      g = svg(width, list.length * high, O.row);
    list.forEach((one, i) => {
      const hit = own.sample && one.piece !== null && same(one, own.sample),
        wide = (one.prob / most) * (width - 84 - 110);
      if (hit)
        g.append(
          rect(-8, i * high, width + 8, high - 2, {
            rx: 6,
            class: "sd-f-" + (state === "pla" ? "hot" : state),
          }),
        );
      g.append(
        text(
          0,
          i * high + 16,
          one.piece === null ? W.rest : short(one.piece, 84),
          one.piece === null ? "" : hit ? "sd-tk sd-on" : "sd-tk",
        ),
        rect(84, i * high + 6, wide, 11, {
          class: hit && state !== "pla" ? "sd-f-ink" : "sd-f-target",
        }),
        text(
          84 + wide + 6,
          i * high + 16,
          chance(one.prob) + (hit ? " " + (draft ? W.served.kept : O.drawn) : ""),
          hit ? "sd-b" + (state === "pla" ? "" : " sd-on") : "",
        ),
      );
    });
    return g;
  }

  /* Both distributions as areas: where they overlap, and which stands higher. */
  function areas(draft, weight, width) {
    const { kept, rest } = rowsToShow(distributionsOf(draft, weight), draft, drawn()),
      rows = [...kept.filter((one) => one.p != null && one.q != null), { rest: true, ...rest }],
      wide = width / rows.length,
      zero = 186,
      H = hatch(),
      g = svg(width, 214, W.own.areas_aria, H.defs);
    const most = Math.max(
        1e-6,
        ...rows.map((one) => (one.rest ? one.p + one.q - one.min : Math.max(one.p, one.q))),
      ),
      y = (v) => (v / most) * 150;
    rows.forEach((one, i) => {
      const x = i * wide + 3,
        w = wide - 6,
        low = one.rest ? one.min : Math.min(one.p, one.q),
        more = one.p - low,
        less = one.q - low;
      g.append(rect(x, zero - y(low), w, y(low), { class: "sd-f-acc" }));
      if (more > 5e-4)
        g.append(rect(x, zero - y(low + more), w, y(more), { class: "sd-f-res sd-o-res" }));
      if (less > 5e-4)
        g.append(
          rect(x, zero - y(low + more + less), w, y(less), { fill: H.fill, class: "sd-s-rej" }),
        );
      const top = zero - y(low + more + less) - 6,
        label =
          more > 0.004 && less > 0.004
            ? "±"
            : more > 0.004
              ? "+" + more.toFixed(2)
              : less > 0.004
                ? "−" + less.toFixed(2)
                : "";
      if (label) g.append(text(x + w / 2, top, label, "sd-b", "middle"));
      g.append(
        text(
          x + w / 2,
          zero + 17,
          one.rest ? W.rest_short : short(one.piece, wide),
          one.rest ? "" : "sd-tk",
          "middle",
        ),
      );
    });
    g.append(line(0, zero, width, zero, "sd-ax"));
    return g;
  }

  /* The two surpluses, which are equal, and the draw from the target's. */
  function surpluses(draft, weight, width, guess) {
    const O = W.own,
      N = letters(),
      laws = distributionsOf(draft, weight),
      H = hatch(),
      beta = clamp(laws.overlap, 0, 1),
      at = beta * width,
      top = weight < 1 ? 0 : 110,
      g = svg(width, top + 84, O.equal_aria, H.defs),
      room = (1 - beta) * width > 34;
    if (weight === 1) {
      g.append(
        text(0, 12, N.target, "sd-k"),
        rect(0, 18, at, 24, { class: "sd-f-acc" }),
        rect(at, 18, width - at, 24, { class: "sd-f-res sd-o-res" }),
        text(0, 60, N.draft, "sd-k"),
        rect(0, 66, at, 24, { class: "sd-f-acc" }),
        rect(at, 66, width - at, 24, { fill: H.fill, class: "sd-s-rej" }),
      );
      if (at > 150)
        g.append(
          text(at / 2, 34, N.overlap + " " + chance(beta), "sd-on", "middle"),
          text(at / 2, 82, words(O.kept, { beta: chance(beta) }), "sd-on", "middle"),
        );
      if (room)
        g.append(
          text((at + width) / 2, 34, chance(1 - beta), "sd-on", "middle"),
          rect((at + width) / 2 - 17, 70, 34, 16, { class: "sd-f-rej", rx: 3 }),
          text((at + width) / 2, 82, chance(1 - beta), "sd-on", "middle"),
        );
    }
    drawStrip(g, laws, width, top);
    const told = drawn() ? fill(O.falls, { own: mark("res", drawn().piece) }) : [guess];
    return [
      g,
      h("p", { class: "sd-so" }, ...told),
      weight === 1 ? note(whyNotTheWholeRow(draft, beta)) : null,
      formula(words(O.formula, { residual: weight < 1 ? N.residual_block : N.residual })),
    ].filter(Boolean);
  }

  /* How often the rejected token would come if its replacement were drawn from all of p: kept, or rejected and
   * drawn again. */
  function whyNotTheWholeRow({ p, q, piece }, beta) {
    const told = { x: shown(piece), p: figure(p), wrong: figure(Math.min(p, q) + (1 - beta) * p) };
    return words(W.own.why, told);
  }

  /* The target's surplus, scaled to 1; the drawn token carries the mark. */
  function drawStrip(g, laws, width, top) {
    const sample = drawn(),
      parts = laws.known
        .filter((one) => one.p > one.q)
        .map((one) => ({ ...one, share: (one.p - one.q) / laws.surplus }))
        .sort((a, b) => b.share - a.share);
    const wide = parts.filter(
        (one) => one.share * width > 16 || (sample && one.token === sample.token),
      ),
      rest = Math.max(0, 1 - wide.reduce((sum, one) => sum + one.share, 0));
    let x = 0;
    g.append(text(0, top + 20, W.own.scaled, "sd-k"));
    for (const one of [...wide, { share: rest }]) {
      const w = one.share * width,
        hit = sample && one.token === sample.token;
      if (w < 0.5 && !hit) continue;
      g.append(rect(x, top + 40, w, 26, { class: "sd-f-res sd-o-res" }));
      if (w > 40)
        g.append(
          text(
            x + 6,
            top + 57,
            one.piece == null ? W.rest_short : short(one.piece, w - 8),
            one.piece == null ? "sd-on" : "sd-tk sd-on",
          ),
        );
      if (w > 30)
        g.append(text(x + w / 2, top + 82, chance(one.share), hit ? "sd-b" : "", "middle"));
      if (hit)
        g.append(s("path", { d: `M${x + w / 2 - 6} ${top + 28}h12l-6 9z`, class: "sd-dot-a" }));
      x += w;
    }
  }

  return { bars, coin, plainTest, row, areas, surpluses };
}

module.exports = { pictures, apart, figure, key, mark, note, title };
