// @ts-check
/* The timeline, the three charts and the table below them. Every chart takes its width from the page, so that its text stays 12 px. */

const {
  EPS,
  speculative,
  isOver,
  atEnd,
  horizon,
  written,
  shownLanes,
  isServed,
  isBusy,
  gapsOf,
} = require("./run.js");
const {
  MARK,
  h,
  s,
  text,
  line,
  svg,
  bundle,
  hatch,
  clamp,
  fixed,
  duration,
  words,
  niceStep,
  marksOf,
  widthOf,
  write,
} = require("./kit.js");

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
function charts(W, part, S, term) {
  /* The timeline is drawn once for as long as the run and the zoom stay; time only moves the strip, the line of now and
   * the veil over what is still to come. */
  const strip = h("div", { class: "sd-strip" }),
    veil = h("div", { class: "sd-veil" }),
    now = h("div", { class: "sd-nowline" });
  const G = { key: "", scale: 1, span: 1, close: true, labels: [], told: 0 };

  function drawGantt(end) {
    const box = part.gantt,
      width = S.room.gantt,
      [A, B] = shownLanes(S.run);
    if (!width || !A.first) return box.replaceChildren();
    if (box.firstChild !== strip) box.replaceChildren(strip, veil, now);
    const length = axisEnd(end),
      key = [
        S.run.header.run,
        A.cycles.length,
        B ? B.cycles.length : 0,
        isOver(S.run),
        S.zoom,
        width,
        length,
      ].join();
    if (key !== G.key) {
      G.key = key;
      buildGantt(length, width);
    }
    const from = G.close ? clamp(S.t - G.span * 0.72, 0, Math.max(0, length - G.span)) : 0,
      x = (S.t - from) * G.scale;
    strip.style.transform = `translateX(${(-from * G.scale).toFixed(1)}px)`;
    now.style.transform = `translateX(${x.toFixed(1)}px)`;
    veil.style.transform = `scaleX(${clamp(1 - x / width, 0, 1).toFixed(4)})`; // from the right edge, so it never lies outside
    while (G.told < G.labels.length && G.labels[G.told].at <= S.t + EPS)
      G.labels[G.told++].node.style.visibility = "visible";
    while (G.told > 0 && G.labels[G.told - 1].at > S.t + EPS)
      G.labels[--G.told].node.style.visibility = "hidden";
  }

  function buildGantt(length, width) {
    const [A, B, P] = shownLanes(S.run),
      down = P ? 56 : B ? 0 : -56,
      close = S.zoom === "close"; // a third row pushes the plain one down
    const span = Math.max(close ? closeSpan(A, B, width) : length, EPS),
      scale = width / span,
      wide = Math.max(width, length * scale),
      height = 132 + down;
    Object.assign(G, { close, span, scale, labels: [], told: 0 });
    const x = (v) => v * scale,
      looks = bundle(),
      told = (at, ...nodes) =>
        nodes.forEach((node) => {
          node.style.visibility = "hidden";
          G.labels.push({ at, node });
        });
    for (const [lane, y, checks] of [
      [A, 18, true],
      [P, 74, true],
      [B, 74 + down, false],
    ]) {
      for (const cycle of lane ? lane.cycles : []) {
        draftBars(cycle, y, x, close, looks);
        told(cycle.at, ...passBar(cycle, y, x, close, looks, checks));
      }
    }
    const g = svg(
      wide,
      height,
      W.time.aria,
      s("desc", {}, ganttTold(A, B)),
      looks.paths((look) => ({ class: look, "stroke-width": 0.5 })),
    );
    if (!close && B && A.finished && A.end < B.end * 0.8) {
      const label = [words(W.time.done, { time: duration(A.end) }), duration(A.end), ""].find(
        (one) => 14 + 1.12 * widthOf(one) < wide - x(A.end),
      ); // it is bold
      told(
        A.end,
        line(x(A.end) + 4, 31, x(B.end), 31, "sd-ax", { "stroke-dasharray": "2 3" }),
        text(x(A.end) + 12, 26, label || "", "sd-b"),
      );
    }
    g.append(...G.labels.map((one) => one.node), line(0, 110 + down, wide, 110 + down, "sd-ax"));
    axis(g, 0, wide / scale, x, wide, 127 + down, 110 + down, span);
    G.labels.sort((a, b) => a.at - b.at);
    strip.replaceChildren(g);
  }

  /* For who cannot see it. */
  const ganttTold = (A, B) =>
    B
      ? words(W.time.told, {
          ks: A.cycles.length,
          ts: duration(A.end),
          kp: B.cycles.length,
          tp: duration(B.end),
        })
      : words(W.time.told_alone, { ks: A.cycles.length, ts: duration(A.end) });

  function axis(g, from, span, x, width, y, top, window = span) {
    marksOf(from, span, window, S.room.gantt > 500 ? 9 : 5).forEach(({ at, label }, i, all) => {
      const here = x(at);
      if (top != null) g.append(line(here, top, here, top + 4, "sd-ax"));
      g.append(
        text(
          here,
          y,
          label + (i === all.length - 1 || top != null ? " ms" : ""),
          "",
          here < 8 ? "start" : here > width - 26 ? "end" : "middle",
        ),
      );
    });
  }

  function draftBars(cycle, y, x, close, looks) {
    if (!cycle.draft) return;
    let from = cycle.draft.start;
    for (const end of close && cycle.draft.steps.length ? cycle.draft.steps : [cycle.draft.end]) {
      looks.add(
        "sd-f-draft" + (close ? " sd-s-draft" : ""),
        x(from),
        y,
        x(end) - x(from) - (close ? 0.5 : 0),
        26,
      );
      from = end;
    }
  }

  /* Draws the pass, and returns its labels. */
  function passBar(cycle, y, x, close, looks, checks) {
    if (!cycle.check) return [];
    const left = x(cycle.check.start),
      wide = x(cycle.check.end) - left,
      mid = left + wide / 2,
      parts = [];
    looks.add("sd-f-target", left, y, wide - (close ? 1 : 0.5), 26, close ? 2 : 0);
    if (!close && !checks) return parts;
    if (wide > (close ? 16 : 9))
      parts.push(text(mid, y - 6, (close ? "+" : "") + cycle.gained, "sd-b", "middle"));
    const n = cycle.drafts.length,
      labels = isServed(S.run)
        ? checks && n
          ? [words(W.server.cycle, { n }), String(n)]
          : []
        : checks && n
          ? [words(W.time.checks, { n }), words(W.time.checks_short, { n }), String(n)]
          : [W.time.target_short];
    const label = close && labels.find((one) => wide > 8 + widthOf(one));
    if (label) parts.push(text(mid, y + 17, label, "sd-on-target", "middle"));
    return parts;
  }

  /* About four cycles, and never a plain pass too narrow for its label. */
  function closeSpan(A, B, width) {
    const cycles = A.cycles.length || !B ? A.cycles : B.cycles,
      mean = cycles.length ? cycles[cycles.length - 1].at / cycles.length : 1;
    const pass = B && B.cycles.length ? B.end / B.cycles.length : mean;
    return Math.min(
      axisEnd(horizon(S.run)),
      Math.max(mean * (width > 500 ? 4.3 : 2.1), pass * (width > 500 ? 5 : 2.5)),
    );
  }

  /* The whole time axis; while a run goes on, as long as it will probably be. */
  function axisEnd(end) {
    const [A, ...others] = shownLanes(S.run),
      known = Math.max(end, A.end, ...others.map((lane) => lane.end), EPS);
    if (isOver(S.run)) return known;
    const wanted = (lane) =>
      (lane.started && lane.started.params && lane.started.params.max_tokens) || 0;
    return Math.max(
      known,
      ...others
        .filter((lane) => lane.cycles.length && !lane.finished)
        .map((lane) => (lane.end * wanted(lane)) / written(lane, lane.cycles.length)),
    );
  }

  function columns(width, right) {
    const cycles = speculative(S.run).cycles,
      n = Math.max(cycles.length, 8);
    return { cycles, n, width, step: (width - right) / n, right };
  }

  function cycleAxis(g, C, y, current) {
    const every = niceStep(C.n, C.width > 300 ? 5 : 4);
    for (let i = 0; i < C.cycles.length; i++)
      if (i === 0 || (i + 1) % every === 0)
        g.append(
          text(i * C.step + C.step / 2, y, String(i + 1), i === current ? "sd-b" : "", "middle"),
        );
    g.append(text(C.width - C.right + 4, y, W.charts.cycle));
  }

  function drawBars(F) {
    const C = columns(S.room.bars, 40),
      up = Math.max(2, ...C.cycles.map((c) => c.gained)),
      down = Math.max(1, ...C.cycles.map((c) => c.drafts.length - c.accepted));
    const row = clamp(Math.floor(160 / (up + down)), 5, 17),
      zero = 18 + up * row,
      height = zero + down * row + 36,
      pad = C.step > 8 ? 3 : C.step > 4 ? 1 : 0,
      H = hatch(),
      looks = bundle(),
      marks = [];
    const cell = (i, level, state, on) => {
      const x = i * C.step + pad / 2,
        y = level > 0 ? zero - level * row : zero + (-level - 1) * row + 6;
      looks.add(on ? state : "ghost", x, y + 1, C.step - pad, row - 2, 2);
      if (on && C.step - pad > 11 && row > 12 && state !== "rej" && MARK[state])
        marks.push(
          text(
            x + (C.step - pad) / 2,
            y + row / 2 + 4,
            state === "bon" ? "+" : MARK[state],
            "sd-cell",
            "middle",
          ),
        );
    };
    C.cycles.forEach((cycle, i) => {
      const on = i < F.a.k,
        kept = cycle.drafts.filter((d) => d.state === "acc"),
        lost = cycle.drafts.filter((d) => d.state !== "acc");
      kept.forEach((_, j) => cell(i, j + 1, "acc", on));
      if (cycle.own) cell(i, kept.length + 1, cycle.own.state, on);
      lost.forEach((draft, j) => cell(i, -j - 1, draft.state, on));
    });
    const wide = C.width - C.right,
      g = svg(
        C.width,
        height,
        W.charts.bars_aria,
        s(
          "desc",
          {},
          words(W.charts.bars_told, {
            cycles: C.cycles
              .map((c) => `${c.number}: ${c.gained} / ${c.drafts.length - c.accepted}`)
              .join(", "),
          }),
        ),
        H.defs,
        looks.paths((state) => ({
          class: `sd-f-${state} sd-o-${state}`,
          fill: state === "rej" ? H.fill : null,
        })),
        marks,
      );
    g.append(
      line(0, zero + 3, wide, zero + 3, "sd-ax"),
      line(0, zero - row, wide, zero - row, "sd-dots"),
    );
    const level = F.tau == null ? null : zero - F.tau * row,
      near = level != null && Math.abs(level - (zero - row)) < 12;
    g.append(text(wide + 4, zero - row + (near ? 14 : 4), W.charts.plain));
    if (level != null)
      g.append(
        line(0, level, wide, level, "sd-mean"),
        text(wide + 4, level + (near ? -2 : 4), "τ " + fixed(F.tau, 1), "sd-b"),
      );
    cycleAxis(g, C, height - 6, F.a.k - 1);
    part.bars.replaceChildren(g);
  }

  function drawAlpha(F) {
    part.alpha.closest("figure").hidden = !F.told; // of sums alone there is no course to draw
    if (!F.told) return;
    const C = columns(S.room.alpha, 40),
      height = 196,
      top = 8,
      bottom = 24,
      y = (a) => top + (1 - a) * (height - top - bottom),
      x = (i) => i * C.step + C.step / 2;
    const g = svg(
        C.width,
        height,
        W.charts.alpha_aria,
        s(
          "desc",
          {},
          C.cycles
            .filter((c) => c.sum.judged)
            .map((c) => `${c.number}: ${fixed(c.sum.accepted / c.sum.judged)}`)
            .join(", "),
        ),
      ),
      wide = C.width - C.right;
    for (const a of [0, 0.5, 1]) g.append(line(0, y(a), wide, y(a), a ? "sd-grid" : "sd-ax"));
    const points = C.cycles.map((cycle, i) =>
      cycle.sum.judged ? [x(i), y(cycle.sum.accepted / cycle.sum.judged)] : null,
    );
    const path = (list) =>
      list
        .filter(Boolean)
        .map(([px, py], i) => (i ? "L" : "M") + px.toFixed(1) + " " + py.toFixed(1))
        .join("");
    g.append(
      s("path", { d: path(points) || "M0 0", class: "sd-ghost-line" }),
      s("path", { d: path(points.slice(0, F.a.k)) || "M0 0", class: "sd-line-a" }),
    );
    const now = points.slice(0, F.a.k).filter(Boolean).pop();
    const label = now ? clamp(now[1] + 4, top + 4, height - bottom) : null;
    for (const a of [0, 1])
      if (label == null || Math.abs(label - 4 - y(a)) > 13)
        g.append(text(wide + 4, y(a) + 4, String(a)));
    if (now)
      g.append(
        s("circle", { cx: now[0], cy: now[1], r: 3.5, class: "sd-dot-a" }),
        text(wide + 4, label, fixed(F.alpha), "sd-b"),
      );
    cycleAxis(g, C, height - 4, F.a.k - 1);
    part.alpha.replaceChildren(g);
  }

  function drawCurve(F, end) {
    const box = part.curve,
      width = S.room.curve,
      height = 224,
      left = 28,
      bottom = 26,
      [A, B, P] = shownLanes(S.run);
    if (!width) return;
    const tokens = (lane) => written(lane, lane.cycles.length),
      asked = B || A,
      wanted = (asked.started && asked.started.params && asked.started.params.max_tokens) || 0;
    const last = axisEnd(end),
      most = Math.max(4, ...shownLanes(S.run).map(tokens), isOver(S.run) ? 0 : wanted);
    const x = (v) => left + (v / last) * (width - left - 10),
      y = (n) => height - bottom - (n / most) * (height - bottom - 18),
      g = svg(
        width,
        height,
        W.charts.curve_aria,
        s(
          "desc",
          {},
          shownLanes(S.run)
            .map(
              (lane) =>
                `${W.lane[lane.name] || lane.name}: ` +
                words(W.lane.clock, { tokens: tokens(lane) }) +
                ", " +
                duration(lane.end),
            )
            .join("; "),
        ),
      );
    const step = niceStep(most, 4);
    for (let n = 0; n <= most + EPS; n += step)
      g.append(
        line(left, y(n), width, y(n), "sd-grid"),
        text(left - 6, y(n) + 4, String(n), "", "end"),
      );
    axis(g, 0, last, x, width, height - 8, null);
    for (const [lane, cls] of [
      [B, "sd-line-b"],
      [P, "sd-line-c"],
      [A, "sd-line-a"],
    ])
      if (lane)
        g.append(
          s("path", { d: stairs(lane, last, x, y), class: "sd-ghost-line" }),
          s("path", { d: stairs(lane, S.t, x, y), class: cls }),
        );
    curveKey(g, width - 112, height - bottom - 6, B, P);
    if (!B) return box.replaceChildren(g);
    if (isOver(S.run) && atEnd(S)) finishLabel(g, F, A, B, x, y, width);
    else if (!P && F.a.tokens + F.b.tokens) nowLabels(g, F, x, y, width);
    box.replaceChildren(g);
  }

  /* The lines are told apart by a key, below them at the right: names beside them would run into the lines. */
  function curveKey(g, x, bottom, plain, peer) {
    const rows = [
      ["sd-line-a", W.charts.speculative],
      peer && ["sd-line-c", W.charts.peer],
      plain && ["sd-line-b", W.charts.plain],
    ].filter(Boolean);
    rows.forEach(([cls, name], i) => {
      const y = bottom - (rows.length - i) * 17 + 9;
      g.append(line(x, y, x + 24, y, cls), text(x + 31, y + 4, name));
    });
  }

  function stairs(lane, until, x, y) {
    let d = `M${x(0).toFixed(1)} ${y(written(lane, 0)).toFixed(1)}`,
      at = 0;
    lane.cycles.every((cycle, i) => {
      if (cycle.at > until + EPS) return false;
      d += `H${x(cycle.at).toFixed(1)}V${y(written(lane, i + 1)).toFixed(1)}`;
      at = cycle.at;
      return true;
    });
    return until > at && at < lane.end ? d + `H${x(Math.min(until, lane.end)).toFixed(1)}` : d;
  }

  function nowLabels(g, F, x, y, width) {
    const at = x(S.t),
      flip = at > width - 40,
      side = flip ? -9 : 9,
      anchor = flip ? "end" : "start",
      ya = y(F.a.written),
      yb = y(F.b.written),
      apart = Math.abs(ya - yb) < 14 ? 8 : 0,
      first = F.a.written >= F.b.written ? -1 : 1;
    g.append(
      line(at, ya, at, yb, "sd-mean"),
      s("circle", { cx: at, cy: ya, r: 3.5, class: "sd-dot-a" }),
      s("circle", { cx: at, cy: yb, r: 3.5, class: "sd-dot-b" }),
    );
    g.append(
      text(at + side, ya + 4 + first * apart, String(F.a.written), "sd-b", anchor),
      text(at + side, yb + 4 - first * apart, String(F.b.written), "", anchor),
    );
  }

  /* Above all lines: the distance between the two ends. */
  function finishLabel(g, F, A, B, x, y, width) {
    if (A.cycles.length && B.cycles.length && F.speedup) {
      const top = y(Math.max(F.a.written, F.b.written)),
        xa = x(A.end),
        xb = x(B.end);
      const label =
          words(W.charts.against, { a: duration(B.end), b: duration(A.end) }) +
          (F.a.written === F.b.written && !isBusy(S.run) ? " = " + fixed(F.speedup) + "×" : ""),
        room = label.length * 6.4;
      if (F.a.written === F.b.written)
        g.append(
          line(xa, top, xb, top, "sd-mean"),
          line(xa, top - 4, xa, top + 4, "sd-mean"),
          line(xb, top - 4, xb, top + 4, "sd-mean"),
        );
      g.append(
        text(
          clamp((xa + xb) / 2, room / 2 + 4, width - room / 2),
          top - 7,
          label,
          "sd-b",
          "middle",
        ),
      );
    }
  }

  function paintAccount(F) {
    const U = W.figures,
      [A, B, P] = shownLanes(S.run),
      p = F.peer,
      ms = (v) => (v ? duration(v) : "–"),
      ratio = (v) => (v == null ? "–" : fixed(v) + (P ? "" : " " + U.passes_unit));
    const tpot = (at) => (at.tokens ? ms(at.time / at.tokens) : "–"),
      drafting = (at) => (at.time ? fixed((at.drafting / at.time) * 100, 0) + " %" : "–");
    const kept = (at) =>
      at.drafted
        ? fixed(at.accepted / at.drafted) + (P ? "" : ` (${at.accepted}/${at.drafted})`)
        : "–";
    const served = isServed(S.run),
      gap = (lane, which) => {
        const found = gapsOf(lane, S.t);
        return found ? ms(found[which]) : "–";
      },
      dar = served ? (F.dar == null ? "–" : fixed(F.dar)) : kept(F.a);
    const rows = [
      ["ttft", ms(A.zero * 1000), P && ms(P.zero * 1000), B && ms(B.zero * 1000)],
      ["tpot", tpot(F.a), p && tpot(p), B && tpot(F.b)],
      ...(served
        ? ["median", "longest"].map((which) => [which, gap(A, which), B && gap(B, which)])
        : []),
      ["passes", String(F.a.k), p && String(p.k), B && String(F.b.k)],
      ["dar", dar, p && kept(p), B && ""],
    ]
      .concat(
        served
          ? []
          : [
              ["c", ratio(F.c), p && ratio(F.perPass(p.drafting, p.drafted)), B && ""],
              [
                "v",
                ratio(F.v),
                p && ratio(F.perPass(p.checking, p.checks)),
                B && (F.b.k ? "1" : ""),
              ],
              ["drafting", drafting(F.a), p && drafting(p), B && ""],
            ],
      )
      .map((row) => row.filter((cell) => cell != null));
    const heads = [W.lane.speculative, ...(P ? [W.lane.peer] : []), ...(B ? [W.lane.plain] : [])];
    if (
      part.account.rows.length !== rows.length + 1 ||
      part.account.rows[0].cells.length !== heads.length + 1
    ) {
      part.account.replaceChildren(
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("td"),
            heads.map((head) => h("th", { scope: "col" }, head)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map(([name]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, term(name, U[name])),
              heads.map(() => h("td")),
            ),
          ),
        ),
      );
    }
    rows.forEach(([, ...values], i) =>
      values.forEach((value, j) =>
        write(part.account.tBodies[0].rows[i].cells[j + 1], "textContent", value),
      ),
    );
  }

  return { drawGantt, drawBars, drawAlpha, drawCurve, paintAccount };
}

module.exports = { charts };
