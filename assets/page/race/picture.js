/* Draws a race as a picture to share: the moment at which the speculative lane ended. */

import { EPS, speculativeOf, plainOf, serverOf, SHARED_NOISE } from "#page/race/run.js";
import { countCyclesBy, figuresAt, wasMachineBusy, findDivergence } from "#page/race/measure.js";
import { fillText, makeVisible } from "#page/race/text.js";
import { formatDuration, toFixed } from "#page/race/format.js";

const WIDTH = 1200,
  HEIGHT = 630, // the usual size of a link's preview
  PADDING = 56;
const FONT_PX = 25,
  LINE_PX = 33,
  MAX_LINES = 5, // lines per lane
  ON_TINT = "#0b0f14"; // colour of text on a tinted token, in both themes

/* Summarizes a finished run: tokens, passes and time of both lanes, and which was faster. */
export function summarize(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run) {
  const speculative = speculativeOf(run),
    plain = plainOf(run),
    figures = figuresAt(run, Infinity);
  const rows = /** @type {["speculative" | "plain", Lane, LaneFigures][]} */ (
    [
      ["speculative", speculative, figures.speculative],
      ["plain", plain, figures.plain],
    ].filter(([, lane]) => lane)
  ).map(([name, lane, totals]) => ({
    name: texts.lane[name],
    kind: name,
    lane,
    time: lane.endMs,
    label: fillText(serverOf(lane) ? texts.server.bar : texts.finish.bar, {
      passes: totals.passes,
      time: formatDuration(lane.endMs),
    }),
  }));
  const titleKey = !plain
    ? "title_alone"
    : figures.speculative.written === figures.plain.written && !serverOf(speculative)
      ? "title"
      : "title_unequal";
  return {
    headline: headline(texts, run, figures),
    title: fillText(serverOf(speculative) && plain ? texts.server.title : texts.finish[titleKey], {
      n: figures.speculative.written,
      m: figures.plain.written,
      ks: figures.speculative.passes,
      kp: figures.plain.passes,
    }),
    rows,
    speedup: figures.speedup,
    longest: Math.max(...rows.map((row) => row.time)),
  };
}

/* Says which lane was faster, or that the machine was busy. Returns "" if the lanes cannot be compared. */
function headline(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run, /** @type {Figures} */ figures) {
  const { params, rule, lossless } = speculativeOf(run).started || {},
    headlines = texts.finish.headline;
  if (!figures.speedup || !params) return "";
  if (wasMachineBusy(run)) return texts.figures.busy;
  const sampled = params.temperature > 0 && rule !== SHARED_NOISE,
    agreement =
      serverOf(speculativeOf(run)) || (sampled && lossless === false)
        ? ""
        : sampled
          ? headlines.odds
          : findDivergence(run).at < 0
            ? headlines.words
            : "",
    outcome = figures.speedup >= 1.02 ? "faster" : figures.speedup < 0.98 ? "slower" : "even";
  return (
    fillText(headlines[outcome], {
      times: toFixed(figures.speedup, outcome === "slower" ? 2 : 1),
    }) + agreement
  );
}

/* Returns the tokens that a lane has written by the time `ms`, each with its state. */
const tokensAt = (/** @type {Lane} */ lane, /** @type {number} */ ms) =>
  [
    ...(lane.prefill ? lane.prefill.texts.map((piece) => ({ piece, state: /** @type {State} */ ("plain") })) : []),
    ...lane.cycles.slice(0, countCyclesBy(lane.cycles, ms)).flatMap(({ texts: pieces, targetToken }) =>
      pieces.map((piece, i) => ({
        piece,
        state: targetToken && i === pieces.length - 1 ? targetToken.state : "accepted",
      })),
    ),
  ].filter(({ piece }) => piece);

/** Breaks tokens into lines, between words if possible. Returns each line as a list of parts with their x and width.
 * @param {{ piece: string, state: State }[]} tokens @param {(text: string) => number} widthOf
 * @param {number} maxWidth */
function linesOf(tokens, widthOf, maxWidth) {
  const lines = /** @type {any[][]} */ ([[]]);
  let x = 0;
  const endLine = () => {
    if (lines[lines.length - 1].length) lines.push([]);
    x = 0;
  };
  tokens.forEach(({ piece, state }, i) => {
    for (const part of piece.split(/(\n)/)) {
      if (part === "\n") endLine();
      else if (part) {
        const next = tokens.findIndex((token, j) => j > i && /^\s/.test(token.piece)),
          tail = tokens.slice(i + 1, next < 0 ? undefined : next),
          word = part + tail.map((token) => token.piece).join("");
        if (/^ /.test(part) && x && x + widthOf(makeVisible(word.trimEnd())) > maxWidth) endLine();
        const shown = makeVisible(x || !part.trim() ? part : part.replace(/^ (?=\S)/, "")),
          width = widthOf(shown);
        if (x && x + width > maxWidth) endLine();
        lines[lines.length - 1].push({ shown, state, x, width });
        x += width;
      }
    }
  });
  if (!lines[lines.length - 1].length) lines.pop();
  return lines;
}

/** Paints the picture in the page's current colours and font. @param {HTMLCanvasElement} canvas
 * @param {PlayerTexts} texts @param {Run} run */
function paintPicture(canvas, texts, run) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
    endMs = speculativeOf(run).endMs,
    { title, rows, speedup, longest } = summarize(texts, run),
    styles = getComputedStyle(/** @type {Element} */ (document.querySelector(".sd-player"))),
    font = styles.fontFamily,
    colourOf = (/** @type {string} */ name) => styles.getPropertyValue("--sd-" + name).trim(),
    barColour = document.querySelector(".dark") ? "accepted" : "accepted-l";
  /** @param {string} text @param {number} x @param {number} y @param {number} size @param {number} weight
   * @param {string} fill @param {boolean} [right] */
  const drawText = (text, x, y, size, weight, fill, right = false) => {
    context.font = `${weight} ${size}px ${font}`;
    context.fillStyle = colourOf(fill);
    context.textAlign = right ? "right" : "left";
    context.fillText(text, x, y, right ? undefined : WIDTH - x - PADDING);
  };
  Object.assign(canvas, { width: WIDTH, height: HEIGHT });
  context.fillStyle = colourOf("page");
  context.fillRect(0, 0, WIDTH, HEIGHT);
  drawText(texts.finish.brand, PADDING, 58, 22, 600, "ink-2");
  drawText(title, PADDING, 112, 40, 600, "ink");
  rows.forEach(({ name, kind, lane, time, label }, i) => {
    const y = 164 + i * 226,
      tokens = tokensAt(lane, endMs);
    drawText(name, PADDING, y, 24, 600, "ink");
    const clock = fillText(texts.lane.clock, { tokens: tokens.length });
    drawText(endMs + EPS >= time ? label : clock, WIDTH - PADDING, y, 22, 400, "ink-2", true);
    context.fillStyle = colourOf("surface-2");
    context.fillRect(PADDING, y + 12, WIDTH - 2 * PADDING, 8);
    context.fillStyle = colourOf(kind === "plain" ? "ink-2" : barColour);
    context.fillRect(PADDING, y + 12, ((WIDTH - 2 * PADDING) * Math.min(endMs, time)) / (longest || 1), 8);
    context.font = `400 ${FONT_PX}px ${font}`;
    context.textAlign = "left";
    const lines = linesOf(tokens, (text) => context.measureText(text).width, WIDTH - 2 * PADDING);
    if (lines.length > MAX_LINES) drawText("…", PADDING - 26, y + 48, FONT_PX, 400, "ink-2");
    lines.slice(-MAX_LINES).forEach((line, n) => {
      const baseline = y + 48 + n * LINE_PX;
      for (const { shown, state, x, width } of line) {
        const indent = context.measureText(shown.slice(0, shown.search(/\S|$/))).width;
        if (state !== "plain") {
          context.fillStyle = colourOf(state);
          context.fillRect(PADDING + x + indent, baseline - 24, width - indent, 30);
          context.fillStyle = colourOf(state + "-l");
          context.fillRect(PADDING + x + indent, baseline + 4, width - indent, 3);
        }
        context.fillStyle = state === "plain" ? colourOf("ink") : ON_TINT;
        context.fillText(shown, PADDING + x, baseline);
      }
    });
  });
  if (speedup) {
    const measured = fillText(texts.finish.measured, { times: toFixed(speedup) });
    drawText(wasMachineBusy(run) ? texts.say.busy : measured, PADDING, HEIGHT - 24, 28, 600, "ink");
  }
  if (location.protocol === "https:")
    drawText(location.host + location.pathname, WIDTH - PADDING, HEIGHT - 24, 22, 400, "ink-2", true);
}

/* Returns a promise of the picture as a PNG file. */
export function drawPicture(/** @type {PlayerTexts} */ texts, /** @type {Run} */ run) {
  const canvas = document.createElement("canvas");
  paintPicture(canvas, texts, run);
  return new Promise((resolve) => canvas.toBlob(resolve));
}
