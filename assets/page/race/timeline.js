/* Draws when each lane drafted and verified. */

import { EPS, isOver, replayEnd, isServed, lanesOf } from "#page/race/run.js";
import { clamp, formatDuration, estimateWidth } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";
import { html } from "#page/race/html.js";
import { svg, svgText, svgLine, svgRoot, createBarPaths } from "#page/race/svg.js";
import { drawTimeAxis, timeAxisEnd } from "#page/race/axes.js";

const TOP_PX = 16,
  ROW_PX = 44; // a phone's rows are lower

/* Returns where a text begins and ends. */
function edgesOf(/** @type {SVGElement} */ text) {
  const width = 1.12 * estimateWidth(text.textContent || ""), // bold is wider
    shift = { start: 0, middle: 0.5, end: 1 }[text.getAttribute("text-anchor") || "start"] || 0,
    left = Number(text.getAttribute("x")) - shift * width;
  return { left, right: left + width };
}

export function createTimeline(/** @type {PlayerTexts} */ texts, /** @type {Parts} */ part, /** @type {View} */ view) {
  /* The strip holds bars and axis. It is built again only when the run, the zoom or the width changes. In the replay,
   * the strip, the line at the current time and the veil over the future move, and labels appear, and go where an edge
   * would cut them. */
  const strip = html("div", { class: "sd-strip" }),
    veil = html("div", { class: "sd-veil" }),
    now = html("div", { class: "sd-nowline" });
  /** @type {{ key: string, scale: number, span: number, close: boolean, labels: any[], done: any, rowPx: number }} */
  const drawing = { key: "", scale: 1, span: 1, close: true, labels: [], done: null, rowPx: ROW_PX };

  function paint(/** @type {number} */ end) {
    const box = part.gantt,
      width = view.widths.gantt,
      [speculative, plain] = lanesOf(view.run);
    if (!width || !speculative.prefill) return box.replaceChildren();
    if (box.firstChild !== strip) box.replaceChildren(strip, veil, now);
    const totalMs = timeAxisEnd(view.run, end),
      key = [
        view.run.header.run,
        speculative.cycles.length,
        plain ? plain.cycles.length : 0,
        isOver(view.run),
        view.zoom,
        width,
        totalMs,
      ].join();
    if (key !== drawing.key) {
      drawing.key = key;
      build(totalMs, width);
    }
    const fromMs = drawing.close ? clamp(view.timeMs - drawing.span * 0.72, 0, Math.max(0, totalMs - drawing.span)) : 0,
      x = (view.timeMs - fromMs) * drawing.scale;
    strip.style.transform = `translateX(${(-fromMs * drawing.scale).toFixed(1)}px)`;
    now.style.transform = `translateX(${x.toFixed(1)}px)`;
    // the veil shrinks towards the right edge of the box, so that it never reaches outside
    veil.style.transform = `scaleX(${clamp(1 - x / width, 0, 1).toFixed(4)})`;
    const left = fromMs * drawing.scale,
      { done } = drawing;
    if (done) {
      done.node.setAttribute("x", Math.max(done.x, left + 12));
      Object.assign(done, edgesOf(done.node));
    }
    for (const label of drawing.labels) {
      const hidden = label.ms > view.timeMs + EPS || (left > 0 && label.left < left) || label.right > left + width;
      if (label.hidden !== hidden) label.node.style.visibility = hidden ? "hidden" : "visible";
      label.hidden = hidden;
    }
  }

  function build(/** @type {number} */ totalMs, /** @type {number} */ width) {
    const [speculative, plain, peer] = lanesOf(view.run),
      rows = peer ? 3 : plain ? 2 : 1,
      isClose = view.zoom === "close",
      rowPx = /** @type {Part | null} */ (part.rows.firstElementChild)?.offsetHeight || ROW_PX,
      axisY = TOP_PX + rows * rowPx - 16;
    const span = Math.max(isClose ? closeSpanMs(speculative, plain, width) : totalMs, EPS),
      scale = width / span,
      fullWidth = Math.max(width, totalMs * scale),
      height = axisY + 20;
    Object.assign(drawing, { close: isClose, span, scale, labels: [], done: null, rowPx });
    const x = (/** @type {number} */ ms) => ms * scale,
      bars = createBarPaths(),
      revealAt = (/** @type {number} */ ms, /** @type {SVGElement[]} */ ...nodes) =>
        nodes.forEach((node) => drawing.labels.push({ ms, node, x: Number(node.getAttribute("x")), ...edgesOf(node) }));
    for (const [lane, y, isSpeculative] of /** @type {[Lane | undefined, number, boolean][]} */ ([
      [speculative, TOP_PX, true],
      [peer, TOP_PX + rowPx, true],
      [plain, TOP_PX + (rows - 1) * rowPx, false],
    ])) {
      for (const cycle of lane ? lane.cycles : []) {
        addDraftBars(cycle, y, x, isClose, bars);
        revealAt(cycle.endMs, ...addPassBar(cycle, y, x, isClose, bars, isSpeculative));
      }
    }
    const chart = svgRoot(
      fullWidth,
      height,
      texts.time.aria,
      svg("desc", {}, describe(speculative, plain)),
      bars.paths((look) => ({ class: look, "stroke-width": 0.5 })),
    );
    const [first] = [speculative, plain].filter((lane) => lane?.finished).sort((a, b) => a.endMs - b.endMs);
    if (first && plain) {
      const isPlainFirst = first === plain,
        last = isPlainFirst ? speculative : plain,
        time = formatDuration(first.endMs),
        y = TOP_PX + (isPlainFirst ? (rows - 1) * rowPx : 0) + rowPx / 4;
      const label = [fillText(texts.time.done, { time }), time].find(
        (label) => 14 + 1.12 * estimateWidth(label) < fullWidth - x(first.endMs), // 1.12: bold is wider
      );
      if (label)
        revealAt(
          first.endMs,
          svgLine(x(first.endMs) + 4, y, x(last.endMs), y, "sd-ax", { "stroke-dasharray": "2 3" }),
          svgText(x(first.endMs) + 12, y - 5, label, "sd-b"),
        );
      drawing.done = label && drawing.labels.at(-1);
    }
    chart.append(...drawing.labels.map((label) => label.node), svgLine(0, axisY, fullWidth, axisY, "sd-ax"));
    const ticks = drawTimeAxis(chart, {
      span: fullWidth / scale,
      window: span,
      x,
      width: fullWidth,
      y: axisY + 16,
      top: axisY,
      count: view.widths.gantt > 500 ? 9 : 5,
    });
    if (fullWidth > width) revealAt(0, ...ticks);
    strip.replaceChildren(chart);
  }

  const describe = (/** @type {Lane} */ speculative, /** @type {Lane | null} */ plain) =>
    plain
      ? fillText(texts.time.told, {
          ks: speculative.cycles.length,
          ts: formatDuration(speculative.endMs),
          kp: plain.cycles.length,
          tp: formatDuration(plain.endMs),
        })
      : fillText(texts.time.told_alone, {
          ks: speculative.cycles.length,
          ts: formatDuration(speculative.endMs),
        });

  /** @param {Cycle} cycle @param {number} y @param {Scale} x @param {boolean} isClose @param {BarPaths} bars */
  function addDraftBars(cycle, y, x, isClose, bars) {
    if (!cycle.drafting) return;
    let fromMs = cycle.drafting.start;
    for (const end of isClose && cycle.drafting.steps.length ? cycle.drafting.steps : [cycle.drafting.end]) {
      bars.add(
        "sd-f-draft" + (isClose ? " sd-s-draft" : ""),
        x(fromMs),
        y,
        x(end) - x(fromMs) - (isClose ? 0.5 : 0),
        drawing.rowPx / 2,
      );
      fromMs = end;
    }
  }

  /** Draws the bar of the target's pass and returns its labels. @param {Cycle} cycle @param {number} y
   * @param {Scale} x @param {boolean} isClose @param {BarPaths} bars @param {boolean} isSpeculative */
  function addPassBar(cycle, y, x, isClose, bars, isSpeculative) {
    if (!cycle.check) return [];
    const left = x(cycle.check.start),
      width = x(cycle.check.end) - left,
      middle = left + width / 2,
      labels = /** @type {SVGElement[]} */ ([]);
    bars.add("sd-f-target", left, y, width - (isClose ? 1 : 0.5), drawing.rowPx / 2, isClose ? 2 : 0);
    if (!isClose) return labels;
    if (width > 16) labels.push(svgText(middle, y - 4, (width > 22 ? "+" : "") + cycle.gained, "sd-b", "middle"));
    const n = cycle.drafts.length,
      wordings = isServed(view.run)
        ? isSpeculative && n
          ? [fillText(texts.server.cycle, { n }), String(n)]
          : []
        : isSpeculative && n
          ? [
              fillText(n > 1 ? texts.time.checks : texts.time.checks_one, { n }),
              fillText(texts.time.checks_short, { n }),
              String(n),
            ]
          : [texts.time.target_short];
    const wording = wordings.find((wording) => width > 8 + estimateWidth(wording));
    if (wording) labels.push(svgText(middle, y + drawing.rowPx / 4 + 4, wording, "sd-on-target", "middle"));
    return labels;
  }

  function closeSpanMs(/** @type {Lane} */ speculative, /** @type {Lane | null} */ plain, /** @type {number} */ width) {
    const cycles = speculative.cycles.length || !plain ? speculative.cycles : plain.cycles,
      meanMs = cycles.length ? cycles[cycles.length - 1].endMs / cycles.length : 1;
    const plainPassMs = plain && plain.cycles.length ? plain.endMs / plain.cycles.length : meanMs;
    return Math.min(
      timeAxisEnd(view.run, replayEnd(view.run)),
      Math.max(meanMs * (width > 500 ? 4.3 : 2.1), plainPassMs * (width > 500 ? 5 : 2.5)),
    );
  }

  return paint;
}
