/* Writes the card of a token: its probabilities, its coin (the random number of its test), the distributions. */

import { EPS, lanesOf, isGreedy, serverOf, UNNAMED } from "#page/race/run.js";
import { depthOf } from "#page/race/cycle.js";
import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRect, svgRoot, createHatch } from "#page/race/svg.js";
import { createChip, statusOf } from "#page/race/tokens.js";
import { clamp, formatChance } from "#page/race/format.js";
import { formatPiece, fillText } from "#page/race/text.js";

export function createTokenCards(/** @type {PlayerTexts} */ texts, /** @type {View} */ view) {
  const createHead = (/** @type {TokenItem} */ item, /** @type {string} */ placeText) => [
    html(
      "div",
      { class: "sd-cardhead" },
      createChip(texts, item.piece, item.shownState, "span"),
      html("b", {}, statusOf(texts, item.shownState, item)),
    ),
    html("p", { class: "sd-sub" }, placeText),
  ];

  function createDraftCard(/** @type {Required<TokenItem>} */ item) {
    const { draft, cycle, i } = item,
      labels = texts.card,
      test = testOf(item),
      values = {
        cycle: cycle.number,
        i: i + 1,
        n: cycle.drafts.length,
        level: draft.level,
        levels: depthOf(cycle),
      };
    const head = createHead(item, fillText(cycle.tree ? labels.tree_place : labels.place, values));
    if (item.shownState === "pending") return head;
    const rows = serverOf(laneAt(item.lane))
      ? draft.p == null
        ? []
        : [[labels.p, formatChance(draft.p)]]
      : [
          [labels.p, formatChance(draft.p)],
          [labels.q, formatChance(draft.q)],
        ];
    if (test.label)
      rows.push(
        [test.label, formatChance(test.chance)],
        [
          labels.u,
          test.u != null
            ? formatChance(test.u)
            : item.lane === 2 && draft.status !== "discarded"
              ? labels.untold
              : labels.not_drawn,
        ],
      );
    if (draft.overlap != null) rows.push([labels.beta, formatChance(draft.overlap)]);
    const notes = [
      draft.piece === "" && test.served ? texts.server.unnamed_tip : null,
      test.note,
      item.state === "cut" ? labels.cut : item.state === "discarded" ? whyDiscarded(draft, cycle) : null,
    ];
    return [
      ...head,
      html(
        "div",
        { class: "sd-kv" },
        rows.map(([name, value]) => [html("span", {}, name), html("b", {}, value)]),
      ),
      test.label ? drawCoin(test) : null,
      notes.map((note) => note && html("p", { class: "sd-sub" }, note)),
      drawDistributions(draft),
    ]
      .flat()
      .filter(Boolean);
  }

  /** Returns the test that decided about a draft: the acceptance probability and the coin, or only a note.
   * @returns {any} */
  function testOf(/** @type {any} */ { draft, lane }) {
    const labels = texts.card,
      rule = ruleOf(lane),
      judged = draft.status !== "discarded",
      { u } = draft;
    if (serverOf(laneAt(lane))) return { served: true, note: judged ? texts.server.no_coin : null };
    if (lane === 2)
      return {
        label: labels.chance,
        chance: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1,
        noCoinText: judged ? labels.untold : labels.never, // a peer does not report its coins
      };
    if (draft.h != null)
      return {
        label: labels.block,
        chance: draft.h,
        u,
        noCoinText: labels.not_needed,
        note: u == null ? labels.longer : null,
      };
    const noCoinNote = Object.hasOwn(labels.without_coin, rule)
      ? labels.without_coin[rule]
      : judged && u == null && labels.without_coin.other;
    if (noCoinNote) return { note: judged ? noCoinNote : null };
    return {
      label: labels.chance,
      chance: draft.q > 0 ? Math.min(1, draft.p / draft.q) : 1,
      u,
      noCoinText: labels.never,
    };
  }

  function whyDiscarded(/** @type {Draft} */ draft, /** @type {Cycle} */ cycle) {
    const labels = texts.card,
      parent = cycle.drafts[draft.parent];
    if (draft.u != null) return labels.discarded_block;
    if (!cycle.tree) return labels.discarded;
    return !parent || parent.state === "accepted" ? labels.discarded_beside : labels.discarded_branch;
  }

  const laneAt = (/** @type {number} */ laneIndex) => lanesOf(view.run)[laneIndex];
  const ruleOf = (/** @type {number} */ laneIndex) => {
    const { started } = laneAt(laneIndex);
    return started ? started.rule : "";
  };

  function createTargetCard(/** @type {TokenItem} */ item) {
    const labels = texts.card,
      greedy = isGreedy(view.run),
      withoutCoin = Object.hasOwn(labels.without_coin, ruleOf(item.lane)),
      placeText =
        item.place === "first"
          ? labels.first_place
          : item.lane === 1
            ? fillText(labels.plain_place, { i: Number(item.cycle?.number) + 1 })
            : fillText(labels.own_place, { cycle: item.cycle?.number });
    const onServer = serverOf(laneAt(item.lane)),
      sentence =
        onServer && item.state === "resampled"
          ? texts.server.resampled
          : item.state === "resampled" && greedy
            ? labels.resampled_greedy
            : item.state === "resampled" && withoutCoin
              ? labels.resampled_straight
              : /** @type {any} */ (labels)[item.state] || labels.plain,
      token = /** @type {TargetToken} */ (item.targetToken);
    const parts = /** @type {Element[]} */ ([
      ...createHead(item, placeText),
      html("p", { class: "sd-sub sd-told" }, sentence),
    ]);
    const draft = item.cycle && item.cycle.drafts.find((draft) => draft.state === "rejected"),
      distribution = token.distribution || (onServer && item.state === "resampled" && draft && draft.target);
    if (token.p != null)
      parts.push(html("div", { class: "sd-kv" }, html("span", {}, labels.own_p), html("b", {}, formatChance(token.p))));
    if (distribution)
      parts.push(
        drawDistribution(
          distribution,
          item.state === "resampled" && !greedy && !withoutCoin && !onServer ? labels.residual : labels.target,
        ),
      );
    return parts;
  }

  /* Draws a strip from 0 to 1: the green part accepts, the hatched part rejects, and a pin marks the coin u. */
  function drawCoin(/** @type {any} */ { label, chance, u, noCoinText }) {
    const width = 298,
      hatch = createHatch(),
      chart = svgRoot(width, 32, label, hatch.defs);
    chart.append(
      svgRect(0, 12, width * chance, 10, { class: "sd-f-accepted" }),
      svgRect(width * chance, 12, width * (1 - chance), 10, { fill: hatch.fill }),
    );
    if (u == null) chart.append(svgText(width, 9, noCoinText, "", "end"));
    else
      chart.append(
        svgLine(width * u, 6, width * u, 27, "sd-pin"),
        svgText(clamp(width * u, 5, width - 5), 5, "u", "sd-b", "middle"),
      );
    return chart;
  }

  function drawDistributions(/** @type {Draft} */ draft) {
    const targetTop = draft.target ? draft.target.top : [],
      draftTop = draft.draft ? draft.draft.top : [];
    if (!targetTop.length && !draftTop.length) return null;
    const key = (/** @type {{ token: number, piece: string }} */ token) =>
        token.token === UNNAMED ? token.piece : token.token,
      rows = new Map([[key(draft), /** @type {any} */ ({ piece: draft.piece, p: draft.p, q: draft.q })]]);
    for (const [list, name] of /** @type {[Candidate[], string][]} */ ([
      [targetTop, "p"],
      [draftTop, "q"],
    ]))
      for (const token of list) {
        if (!rows.has(key(token))) rows.set(key(token), { piece: token.piece });
        if (rows.get(key(token))[name] == null) rows.get(key(token))[name] = token.prob;
      }
    // if a server does not name its drafted token, show only the target's tokens
    const [first, ...others] = [...rows.values()].filter((token) => token.piece !== "" || token.p != null);
    others.sort((a, b) => Math.max(b.p || 0, b.q || 0) - Math.max(a.p || 0, a.q || 0));
    const columns = [{ x: 96, title: texts.card.target, of: "p", model: "target" }];
    if (draftTop.length) columns.push({ x: 204, title: texts.card.draft, of: "q", model: "draft" });
    return drawBars([first, ...others.slice(0, 5)], columns, 62);
  }

  function drawDistribution(/** @type {Distribution} */ { top, rest }, /** @type {string} */ title) {
    const rows = top.slice(0, 6).map(({ piece, prob }) => ({ piece, p: prob })),
      otherChance = rest + top.slice(6).reduce((sum, token) => sum + token.prob, 0),
      chart = drawBars(rows, [{ x: 96, title, of: "p", model: "target" }], 150, 20),
      y = 33 + rows.length * 20;
    chart.append(svgText(0, y, texts.card.rest), svgText(96, y, formatChance(otherChance)));
    return chart;
  }

  /** Draws one row per token, with one bar in each column. The largest bar is `maxWidth` px wide.
   * @param {any[]} rows @param {{ x: number, title: string, of: string, model: string }[]} columns
   * @param {number} maxWidth @param {number} [spaceBelow] */
  function drawBars(rows, columns, maxWidth, spaceBelow = 0) {
    const height = 22 + rows.length * 20 + spaceBelow,
      titles = columns.map(({ x, title }) => svgText(x, 12, title)),
      chart = svgRoot(298, height, columns[0].title, titles),
      highest = Math.max(EPS, ...rows.flatMap((row) => columns.map(({ of }) => row[of] || 0)));
    rows.forEach((row, i) => {
      const y = 22 + i * 20,
        label = formatPiece(row.piece),
        shortLabel = label.length > 11 ? label.slice(0, 10) + "…" : label;
      chart.append(svg("text", { x: 0, y: y + 11, class: "sd-tk" }, shortLabel));
      for (const { x, of, model } of columns) {
        const width = ((row[of] || 0) / highest) * maxWidth;
        chart.append(
          svgRect(x, y + 2, width, 10, { class: "sd-f-" + model }),
          svgText(x + width + (row[of] == null ? 0 : 4), y + 11, row[of] == null ? "·" : formatChance(row[of])),
        );
      }
    });
    return chart;
  }

  return { createDraftCard, createTargetCard };
}
