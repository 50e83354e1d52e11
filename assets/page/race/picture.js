/* Draws a finished race as a card to share: prompt, verdict, bars, the text with what was struck out of it, and at
 * its foot models, machine and the key of the colours. */

import { speculativeOf } from "#page/race/run.js";
import { describeSetup } from "#page/race/setup.js";
import { summarize } from "#page/race/verdict.js";
import { makeVisible, nameOf } from "#page/race/text.js";

const WIDTH = 1200,
  HEIGHT = 630, // the usual size of a link's preview
  PADDING = 56,
  NAME_PX = 150, // room for a lane's name
  FOOT_Y = 604; // baseline of the foot
const FONT_PX = 24,
  LINE_PX = 35,
  PROMPT_LINES = 2,
  ON_TINT = "#0b0f14"; // colour of text on a tinted token, in both themes

/** @typedef {{ piece: string, state: State }} Bit */

/** Returns what the speculative lane wrote, and the rejected draft before each token that took its place.
 * @param {PlayerTexts} texts @param {Lane} lane @returns {Bit[]} */
export function bitsOf(texts, { prefill, cycles }) {
  const bits = (prefill ? prefill.texts : []).map((piece) => ({ piece, state: /** @type {State} */ ("plain") }));
  for (const { texts: pieces, targetToken, drafts, tree } of cycles) {
    const written = pieces.map((piece) => ({ piece, state: /** @type {State} */ ("accepted") })),
      rejected = !tree && drafts.find((draft) => draft.state === "rejected"),
      last = written[written.length - 1];
    if (targetToken && last) last.state = targetToken.state;
    if (rejected) written.splice(-1, 0, { piece: nameOf(texts, rejected), state: "rejected" });
    bits.push(...written);
  }
  return bits.filter(({ piece }) => piece);
}

/** Breaks tokens into lines, between words if possible. Returns each line as a list of parts with their x and width.
 * @param {Bit[]} tokens @param {(text: string) => number} widthOf
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

/** Paints the card in the page's current colours and font. @param {HTMLCanvasElement} canvas
 * @param {PlayerTexts} texts @param {Run} run */
function paintCard(canvas, texts, run) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
    { headline, clock, rows } = summarize(texts, run),
    styles = getComputedStyle(document.querySelector(".sd-player")),
    isDark = Boolean(document.querySelector(".dark")),
    colourOf = (/** @type {string} */ name) => styles.getPropertyValue("--sd-" + name).trim();
  const setFont = (/** @type {number} */ size, weight = 400) =>
    (context.font = `${weight} ${size}px ${styles.fontFamily}`);
  /** @param {string} text @param {number} x @param {number} y @param {number} size @param {number} weight
   * @param {string} fill @param {"left" | "right"} [align] */
  const drawText = (text, x, y, size, weight, fill, align = "left") => {
    setFont(size, weight);
    Object.assign(context, { fillStyle: colourOf(fill), textAlign: align });
    context.fillText(text, x, y, align === "right" ? undefined : WIDTH - x - PADDING);
    context.textAlign = "left";
  };
  const fillRect = (/** @type {string} */ name, /** @type {[number, number, number, number]} */ ...box) => {
    context.fillStyle = colourOf(name);
    context.fillRect(...box);
  };
  const breakLines = (/** @type {Bit[]} */ bits, /** @type {number} */ size) => {
    setFont(size);
    return linesOf(bits, (text) => context.measureText(text).width, WIDTH - 2 * PADDING - 24);
  };
  Object.assign(canvas, { width: WIDTH, height: HEIGHT });
  fillRect("page", 0, 0, WIDTH, HEIGHT);
  drawText(texts.finish.brand, PADDING, 56, 21, 600, "ink-2");
  if (location.protocol === "https:")
    drawText(location.host + location.pathname, WIDTH - PADDING, 56, 21, 400, "ink-2", "right");
  let y = 104;
  const prompt = breakLines([{ piece: run.header.prompt || "", state: "plain" }], 26);
  for (const [i, line] of prompt.slice(0, PROMPT_LINES).entries()) {
    const text = line.map(({ shown }) => shown).join("");
    drawText(text + (i === PROMPT_LINES - 1 && prompt.length > PROMPT_LINES ? " …" : ""), PADDING, y, 26, 400, "ink");
    y += 36;
  }
  drawText(headline, PADDING, (y += 28), 46, 600, "ink");
  if (clock) drawText(clock, PADDING, (y += 40), 26, 400, "ink-2");
  y += 24;
  const barWidth = WIDTH - 2 * PADDING - NAME_PX;
  for (const { name, fill, share, label } of rows) {
    drawText(name, PADDING, y + 25, 22, 600, "ink");
    fillRect("surface-2", PADDING + NAME_PX, y, barWidth, 36);
    context.globalAlpha = isDark && fill !== "line-2" ? 0.4 : 1;
    fillRect(fill, PADDING + NAME_PX, y, barWidth * share, 36);
    context.globalAlpha = 1;
    drawText(label, PADDING + NAME_PX + 12, y + 25, 21, 600, "ink");
    y += 46;
  }
  const lines = breakLines(bitsOf(texts, speculativeOf(run)), FONT_PX),
    count = Math.floor((FOOT_Y - 28 - y) / LINE_PX);
  lines.slice(0, count).forEach((line, n) => {
    const baseline = y + (n + 1) * LINE_PX - 4;
    for (const { shown, state, x, width } of line) paintBit(shown, state, PADDING + x, baseline, width);
    const { x, width } = line[line.length - 1];
    if (n === count - 1 && lines.length > count) drawText(" …", PADDING + x + width, baseline, FONT_PX, 400, "ink-2");
  });
  let x = WIDTH - PADDING;
  for (const state of /** @type {State[]} */ (["bonus", "resampled", "rejected", "accepted"])) {
    setFont(18);
    x -= context.measureText(texts.status[state]).width;
    drawText(texts.status[state], x, FOOT_Y, 18, 400, "ink-2");
    fillRect(state, x - 24, FOOT_Y - 14, 16, 16);
    x -= 44;
  }
  drawText(describeSetup(texts, run), PADDING, FOOT_Y, 18, 400, "ink-2");

  /** @param {string} shown @param {State} state @param {number} x @param {number} baseline @param {number} width */
  function paintBit(shown, state, x, baseline, width) {
    setFont(FONT_PX);
    const indent = context.measureText(shown.slice(0, shown.search(/\S|$/))).width;
    if (state !== "plain") {
      fillRect(state, x + indent, baseline - 24, width - indent, 31);
      if (state !== "rejected") fillRect(state + "-l", x + indent, baseline + 4, width - indent, 3);
    }
    context.fillStyle = state === "plain" ? colourOf("ink") : ON_TINT;
    context.fillText(shown, x, baseline);
    if (state === "rejected") fillRect("rejected-l", x + indent, baseline - 9, width - indent, 3);
  }
}

/** Returns the card as a PNG file. @param {PlayerTexts} texts @param {Run} run @returns {Promise<Blob>} */
export function drawPicture(texts, run) {
  const canvas = document.createElement("canvas");
  paintCard(canvas, texts, run);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(/** @type {Blob} */ (blob))));
}
