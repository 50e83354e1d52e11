/* What the card of a token says: its numbers, its coin and both distributions. */

import { EPS, lanesOf, isGreedy, serverOf, UNNAMED } from "#page/race/run.js";
import { depthOf } from "#page/race/cycle.js";
import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { createChip, statusOf } from "#page/race/tokens.js";
import { clamp, formatChance } from "#page/race/format.js";
import { formatPiece, fillText } from "#page/race/text.js";

export function createTokenCards(W, S) {
  const cardHead = (item, place) => [
    html(
      "div",
      { class: "sd-cardhead" },
      createChip(W, item.piece, item.now, "span"),
      html("b", {}, statusOf(W, item.now, item)),
    ),
    html("p", { class: "sd-sub" }, place),
  ];

  function draftCard(item) {
    const { draft, cycle, i } = item,
      C = W.card,
      test = testOf(item),
      at = {
        cycle: cycle.number,
        i: i + 1,
        n: cycle.drafts.length,
        level: draft.level,
        levels: depthOf(cycle),
      };
    const head = cardHead(item, fillText(cycle.tree ? C.tree_place : C.place, at));
    if (item.now === "pen") return head;
    const rows = serverOf(laneOf(item.lane))
      ? draft.p == null
        ? []
        : [[C.p, formatChance(draft.p)]]
      : [
          [C.p, formatChance(draft.p)],
          [C.q, formatChance(draft.q)],
        ];
    if (test.label)
      rows.push(
        [test.label, formatChance(test.stay)],
        [
          C.u,
          test.u != null
            ? formatChance(test.u)
            : item.lane === 2 && draft.status !== "discarded"
              ? C.untold
              : C.not_drawn,
        ],
      );
    if (draft.overlap != null) rows.push([C.beta, formatChance(draft.overlap)]);
    const notes = [
      draft.piece === "" && test.served ? W.server.unnamed_tip : null,
      test.note,
      item.state === "cut" ? C.cut : item.state === "dis" ? whyDiscarded(draft, cycle) : null,
    ];
    return [
      ...head,
      html(
        "div",
        { class: "sd-kv" },
        rows.map(([name, value]) => [html("span", {}, name), html("b", {}, value)]),
      ),
      test.label ? coin(test) : null,
      notes.map((note) => note && html("p", { class: "sd-sub" }, note)),
      distributions(draft),
    ]
      .flat()
      .filter(Boolean);
  }

  /* What decided: a coin against a chance, or no coin at all. */
  /** @returns {any} */
  function testOf({ draft, lane }) {
    const C = W.card,
      rule = ruleName(lane),
      judged = draft.status !== "discarded",
      { u } = draft;
    if (serverOf(laneOf(lane))) return { served: true, note: judged ? W.server.no_coin : null };
    if (lane === 2)
      return {
        label: C.chance,
        stay: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1,
        words: judged ? C.untold : C.never,
      };
    if (draft.h != null)
      return {
        label: C.block,
        stay: draft.h,
        u,
        words: C.not_needed,
        note: u == null ? C.longer : null,
      };
    const without = Object.hasOwn(C.without_coin, rule)
      ? C.without_coin[rule]
      : judged && u == null && C.without_coin.other;
    if (without) return { note: judged ? without : null };
    return {
      label: C.chance,
      stay: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1,
      u,
      words: C.never,
    };
  }

  function whyDiscarded(draft, cycle) {
    const C = W.card,
      up = cycle.drafts[draft.parent];
    if (draft.u != null) return C.dis_block;
    if (!cycle.tree) return C.dis;
    return !up || up.state === "acc" ? C.dis_beside : C.dis_branch;
  }

  const laneOf = (l) => lanesOf(S.run)[l];
  const ruleName = (l) => {
    const { started } = laneOf(l);
    return started ? started.rule : "";
  };

  function ownCard(item) {
    const C = W.card,
      greedy = isGreedy(S.run),
      straight = Object.hasOwn(C.without_coin, ruleName(item.lane)),
      place =
        item.place === "first"
          ? C.first_place
          : item.lane === 1
            ? fillText(C.plain_place, { i: item.cycle.number + 1 })
            : fillText(C.own_place, { cycle: item.cycle.number });
    const served = serverOf(laneOf(item.lane)),
      told =
        served && item.state === "res"
          ? W.server.res
          : item.state === "res" && greedy
            ? C.res_greedy
            : item.state === "res" && straight
              ? C.res_straight
              : C[item.state] || C.pla,
      own = item.own;
    const parts = [...cardHead(item, place), html("p", { class: "sd-sub sd-told" }, told)];
    const draft = item.cycle && item.cycle.drafts.find((one) => one.state === "rej"),
      row = own.distribution || (served && item.state === "res" && draft && draft.target);
    if (own.p != null)
      parts.push(
        html(
          "div",
          { class: "sd-kv" },
          html("span", {}, C.own_p),
          html("b", {}, formatChance(own.p)),
        ),
      );
    if (row)
      parts.push(
        oneDistribution(
          row,
          item.state === "res" && !greedy && !straight && !served ? C.residual : C.target,
        ),
      );
    return parts;
  }

  /* The strip from 0 to 1: green is kept, hatched is rejected, the pin is the coin u. */
  function coin({ label, stay, u, words }) {
    const width = 298,
      H = createHatch(),
      g = svgRoot(width, 32, label, H.defs);
    g.append(
      svgRect(0, 12, width * stay, 10, { class: "sd-f-acc" }),
      svgRect(width * stay, 12, width * (1 - stay), 10, { fill: H.fill }),
    );
    if (u == null) g.append(svgText(width, 9, words, "", "end"));
    else
      g.append(
        svgLine(width * u, 6, width * u, 27, "sd-pin"),
        svgText(clamp(width * u, 5, width - 5), 5, "u", "sd-b", "middle"),
      );
    return g;
  }

  /* The likeliest tokens of both distributions, the drafted one first. */
  function distributions(draft) {
    const target = draft.target ? draft.target.top : [],
      source = draft.draft ? draft.draft.top : [];
    if (!target.length && !source.length) return null;
    const key = (one) => (one.token === UNNAMED ? one.piece : one.token),
      rows = new Map([
        [key(draft), /** @type {any} */ ({ piece: draft.piece, p: draft.p, q: draft.q })],
      ]);
    for (const [list, name] of [
      [target, "p"],
      [source, "q"],
    ])
      for (const one of list) {
        if (!rows.has(key(one))) rows.set(key(one), { piece: one.piece });
        if (rows.get(key(one))[name] == null) rows.get(key(one))[name] = one.prob;
      }
    const [first, ...others] = [...rows.values()].filter(
      (one) => one.piece !== "" || one.p != null,
    ); // a server that does not name its draft shows the target's tokens alone
    others.sort((a, b) => Math.max(b.p || 0, b.q || 0) - Math.max(a.p || 0, a.q || 0));
    const columns = [{ x: 96, title: W.card.target, of: "p", model: "target" }];
    if (source.length) columns.push({ x: 204, title: W.card.draft, of: "q", model: "draft" });
    return bars([first, ...others.slice(0, 5)], columns, 62);
  }

  function oneDistribution({ top, rest }, title) {
    const rows = top.slice(0, 6).map(({ piece, prob }) => ({ piece, p: prob })),
      others = rest + top.slice(6).reduce((sum, row) => sum + row.prob, 0),
      g = bars(rows, [{ x: 96, title, of: "p", model: "target" }], 150, 20),
      y = 33 + rows.length * 20;
    g.append(svgText(0, y, W.card.rest), svgText(96, y, formatChance(others)));
    return g;
  }

  /* Draw one row per token and one bar per column; the largest bar is `room` pixels wide. */
  function bars(rows, columns, room, below = 0) {
    const height = 22 + rows.length * 20 + below,
      titles = columns.map(({ x, title }) => svgText(x, 12, title)),
      g = svgRoot(298, height, columns[0].title, titles),
      most = Math.max(EPS, ...rows.flatMap((row) => columns.map(({ of }) => row[of] || 0)));
    rows.forEach((row, i) => {
      const y = 22 + i * 20,
        label = formatPiece(row.piece),
        short = label.length > 11 ? label.slice(0, 10) + "…" : label;
      g.append(svg("text", { x: 0, y: y + 11, class: "sd-tk" }, short));
      for (const { x, of, model } of columns) {
        const wide = ((row[of] || 0) / most) * room;
        g.append(
          svgRect(x, y + 2, wide, 10, { class: "sd-f-" + model }),
          svgText(
            x + wide + (row[of] == null ? 0 : 4),
            y + 11,
            row[of] == null ? "·" : formatChance(row[of]),
          ),
        );
      }
    });
    return g;
  }

  return { draftCard, ownCard };
}
