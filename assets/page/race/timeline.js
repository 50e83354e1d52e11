/* The timeline: when each lane drafted and verified. It takes its width from the page, so that its text stays 12 px. */

import { EPS, isOver, replayEnd, isServed, lanesOf } from "#page/race/run.js";
import { clamp, formatDuration, estimateWidth } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRoot, createBarPaths } from "#page/race/svg.js";
import { drawTimeAxis, timeAxisEnd } from "#page/race/axes.js";

const TOP = 16,
  ROW = 44,
  BAR = 22; // px

/* S: the run on show, the moment S.t, and S.room: the widths of the charts. */
export function createTimeline(W, part, S) {
  /* The timeline is drawn once for as long as the run and the zoom stay; time only moves the strip, the line of now and
   * the veil over what is still to come. */
  const strip = html("div", { class: "sd-strip" }),
    veil = html("div", { class: "sd-veil" }),
    now = html("div", { class: "sd-nowline" });
  /** @type {{ key: string, scale: number, span: number, close: boolean, labels: any[], told: number }} */
  const G = { key: "", scale: 1, span: 1, close: true, labels: [], told: 0 };

  function drawGantt(end) {
    const box = part.gantt,
      width = S.room.gantt,
      [A, B] = lanesOf(S.run);
    if (!width || !A.first) return box.replaceChildren();
    if (box.firstChild !== strip) box.replaceChildren(strip, veil, now);
    const length = timeAxisEnd(S.run, end),
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
    // from the right edge, so it never lies outside
    veil.style.transform = `scaleX(${clamp(1 - x / width, 0, 1).toFixed(4)})`;
    while (G.told < G.labels.length && G.labels[G.told].at <= S.t + EPS)
      G.labels[G.told++].node.style.visibility = "visible";
    while (G.told > 0 && G.labels[G.told - 1].at > S.t + EPS)
      G.labels[--G.told].node.style.visibility = "hidden";
  }

  function buildGantt(length, width) {
    const [A, B, P] = lanesOf(S.run),
      rows = P ? 3 : B ? 2 : 1,
      close = S.zoom === "close",
      floor = TOP + rows * ROW - 16;
    const span = Math.max(close ? closeSpan(A, B, width) : length, EPS),
      scale = width / span,
      wide = Math.max(width, length * scale),
      height = floor + 20;
    Object.assign(G, { close, span, scale, labels: [], told: 0 });
    const x = (v) => v * scale,
      looks = createBarPaths(),
      told = (at, ...nodes) =>
        nodes.forEach((node) => {
          node.style.visibility = "hidden";
          G.labels.push({ at, node });
        });
    for (const [lane, y, checks] of [
      [A, TOP, true],
      [P, TOP + ROW, true],
      [B, TOP + (rows - 1) * ROW, false],
    ]) {
      for (const cycle of lane ? lane.cycles : []) {
        draftBars(cycle, y, x, close, looks);
        told(cycle.at, ...passBar(cycle, y, x, close, looks, checks));
      }
    }
    const g = svgRoot(
      wide,
      height,
      W.time.aria,
      svg("desc", {}, ganttTold(A, B)),
      looks.paths((look) => ({ class: look, "stroke-width": 0.5 })),
    );
    if (!close && B && A.finished && A.end < B.end * 0.8) {
      const label = [
        fillText(W.time.done, { time: formatDuration(A.end) }),
        formatDuration(A.end),
        "",
      ].find((one) => 14 + 1.12 * estimateWidth(one) < wide - x(A.end)); // it is bold
      told(
        A.end,
        svgLine(x(A.end) + 4, TOP + BAR / 2, x(B.end), TOP + BAR / 2, "sd-ax", {
          "stroke-dasharray": "2 3",
        }),
        svgText(x(A.end) + 12, TOP + BAR / 2 - 5, label || "", "sd-b"),
      );
    }
    g.append(...G.labels.map((one) => one.node), svgLine(0, floor, wide, floor, "sd-ax"));
    drawTimeAxis(g, {
      span: wide / scale,
      window: span,
      x,
      width: wide,
      y: floor + 16,
      top: floor,
      count: S.room.gantt > 500 ? 9 : 5,
    });
    G.labels.sort((a, b) => a.at - b.at);
    strip.replaceChildren(g);
  }

  /* For who cannot see it. */
  const ganttTold = (A, B) =>
    B
      ? fillText(W.time.told, {
          ks: A.cycles.length,
          ts: formatDuration(A.end),
          kp: B.cycles.length,
          tp: formatDuration(B.end),
        })
      : fillText(W.time.told_alone, { ks: A.cycles.length, ts: formatDuration(A.end) });

  function draftBars(cycle, y, x, close, looks) {
    if (!cycle.draft) return;
    let from = cycle.draft.start;
    for (const end of close && cycle.draft.steps.length ? cycle.draft.steps : [cycle.draft.end]) {
      looks.add(
        "sd-f-draft" + (close ? " sd-s-draft" : ""),
        x(from),
        y,
        x(end) - x(from) - (close ? 0.5 : 0),
        BAR,
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
    looks.add("sd-f-target", left, y, wide - (close ? 1 : 0.5), BAR, close ? 2 : 0);
    if (!close && !checks) return parts;
    if (wide > (close ? 16 : 9))
      parts.push(svgText(mid, y - 4, (close ? "+" : "") + cycle.gained, "sd-b", "middle"));
    const n = cycle.drafts.length,
      labels = isServed(S.run)
        ? checks && n
          ? [fillText(W.server.cycle, { n }), String(n)]
          : []
        : checks && n
          ? [fillText(W.time.checks, { n }), fillText(W.time.checks_short, { n }), String(n)]
          : [W.time.target_short];
    const label = close && labels.find((one) => wide > 8 + estimateWidth(one));
    if (label) parts.push(svgText(mid, y + 15, label, "sd-on-target", "middle"));
    return parts;
  }

  /* About four cycles, and never a plain pass too narrow for its label. */
  function closeSpan(A, B, width) {
    const cycles = A.cycles.length || !B ? A.cycles : B.cycles,
      mean = cycles.length ? cycles[cycles.length - 1].at / cycles.length : 1;
    const pass = B && B.cycles.length ? B.end / B.cycles.length : mean;
    return Math.min(
      timeAxisEnd(S.run, replayEnd(S.run)),
      Math.max(mean * (width > 500 ? 4.3 : 2.1), pass * (width > 500 ? 5 : 2.5)),
    );
  }

  return drawGantt;
}
