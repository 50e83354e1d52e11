/* A race as a picture to share: the moment when the speculative lane is done, with the text of both lanes in
 * the colours of its tokens, and what it took. */

import { EPS, speculativeOf, plainOf, serverOf, SHARED_NOISE } from "#page/race/run.js";
import { countCyclesBy, figuresAt, wasMachineBusy, findDivergence } from "#page/race/measure.js";

import { fillText, makeVisible } from "#page/race/text.js";
import { formatDuration, toFixed } from "#page/race/format.js";

const WIDTH = 1200,
  HEIGHT = 630, // what pages show of a link
  EDGE = 56;
const SIZE = 25,
  LEADING = 33,
  LINES = 5, // of a lane
  ON_TINT = "#0b0f14"; // text on a tinted token, light and dark

/* What the end says: tokens, passes and time of both lanes, and who was faster. */
export function summarize(W, run) {
  const A = speculativeOf(run),
    B = plainOf(run),
    F = figuresAt(run, Infinity);
  const rows = [
    ["speculative", A, F.a],
    ["plain", B, F.b],
  ]
    .filter(([, lane]) => lane)
    .map(([name, lane, at]) => ({
      name: W.lane[name],
      kind: name,
      lane,
      time: lane.end,
      label: fillText(serverOf(lane) ? W.server.bar : W.finish.bar, {
        passes: at.k,
        time: formatDuration(lane.end),
      }),
    }));
  const name = !B
    ? "title_alone"
    : F.a.written === F.b.written && !serverOf(A)
      ? "title"
      : "title_unequal";
  return {
    headline: headline(W, run, F),
    title: fillText(serverOf(A) && B ? W.server.title : W.finish[name], {
      n: F.a.written,
      m: F.b.written,
      ks: F.a.k,
      kp: F.b.k,
    }),
    rows,
    speedup: F.speedup,
    longest: Math.max(...rows.map((row) => row.time)),
  };
}

/* Who was faster, and whether the text is the same; of what cannot be compared, the tokens and passes. */
function headline(W, run, F) {
  const { params, rule, lossless } = speculativeOf(run).started || {},
    H = W.finish.headline;
  if (!F.speedup || !params) return "";
  if (wasMachineBusy(run)) return W.figures.busy;
  const sampled = params.temperature > 0 && rule !== SHARED_NOISE,
    same =
      serverOf(speculativeOf(run)) || (sampled && lossless === false)
        ? ""
        : sampled
          ? H.odds
          : findDivergence(run).at < 0
            ? H.words
            : "",
    pace = F.speedup >= 1.02 ? "faster" : F.speedup < 0.98 ? "slower" : "even";
  return fillText(H[pace], { times: toFixed(F.speedup, pace === "slower" ? 2 : 1) }) + same;
}

/* The tokens of a lane until then, with the state that each has in the text. */
const tokensAt = (lane, t) =>
  [
    ...(lane.first ? lane.first.texts.map((piece) => ({ piece, state: "pla" })) : []),
    ...lane.cycles.slice(0, countCyclesBy(lane.cycles, t)).flatMap(({ texts, own }) =>
      texts.map((piece, i) => ({
        piece,
        state: own && i === texts.length - 1 ? own.state : "acc",
      })),
    ),
  ].filter(({ piece }) => piece);

/* Lines of a width: parts with their place, broken before words and where the text breaks; empty lines go. */
function linesOf(tokens, widthOf, room) {
  const lines = /** @type {any[][]} */ ([[]]);
  let x = 0;
  const end = () => {
    if (lines[lines.length - 1].length) lines.push([]);
    x = 0;
  };
  tokens.forEach(({ piece, state }, i) => {
    for (const part of piece.split(/(\n)/)) {
      if (part === "\n") end();
      else if (part) {
        const next = tokens.findIndex((one, at) => at > i && /^\s/.test(one.piece)),
          tail = tokens.slice(i + 1, next < 0 ? undefined : next),
          word = part + tail.map((one) => one.piece).join("");
        if (/^ /.test(part) && x && x + widthOf(makeVisible(word.trimEnd())) > room) end();
        const shown = makeVisible(x || !part.trim() ? part : part.replace(/^ (?=\S)/, "")),
          width = widthOf(shown);
        if (x && x + width > room) end();
        lines[lines.length - 1].push({ shown, state, x, width });
        x += width;
      }
    }
  });
  if (!lines[lines.length - 1].length) lines.pop();
  return lines;
}

/* In the palette and type of the page as it is now. */
function paint(canvas, W, run) {
  const pen = canvas.getContext("2d"),
    t = speculativeOf(run).end,
    { title, rows, speedup, longest } = summarize(W, run),
    styles = getComputedStyle(/** @type {Element} */ (document.querySelector(".sd-player"))),
    font = styles.fontFamily,
    colour = (name) => styles.getPropertyValue("--sd-" + name).trim(),
    bar = document.querySelector(".dark") ? "acc" : "acc-l";
  const write = (text, x, y, size, weight, fill, right = false) => {
    pen.font = `${weight} ${size}px ${font}`;
    pen.fillStyle = colour(fill);
    pen.textAlign = right ? "right" : "left";
    pen.fillText(text, x, y, right ? undefined : WIDTH - x - EDGE);
  };
  Object.assign(canvas, { width: WIDTH, height: HEIGHT });
  pen.fillStyle = colour("page");
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  write(W.finish.brand, EDGE, 58, 22, 600, "ink-2");
  write(title, EDGE, 112, 40, 600, "ink");
  rows.forEach(({ name, kind, lane, time, label }, i) => {
    const y = 164 + i * 226,
      tokens = tokensAt(lane, t);
    write(name, EDGE, y, 24, 600, "ink");
    const clock = fillText(W.lane.clock, { tokens: tokens.length });
    write(t + EPS >= time ? label : clock, WIDTH - EDGE, y, 22, 400, "ink-2", true);
    pen.fillStyle = colour("surface-2");
    pen.fillRect(EDGE, y + 12, WIDTH - 2 * EDGE, 8);
    pen.fillStyle = colour(kind === "plain" ? "ink-2" : bar);
    pen.fillRect(EDGE, y + 12, ((WIDTH - 2 * EDGE) * Math.min(t, time)) / (longest || 1), 8);
    pen.font = `400 ${SIZE}px ${font}`;
    pen.textAlign = "left";
    const lines = linesOf(tokens, (text) => pen.measureText(text).width, WIDTH - 2 * EDGE);
    if (lines.length > LINES) write("…", EDGE - 26, y + 48, SIZE, 400, "ink-2");
    lines.slice(-LINES).forEach((line, n) => {
      const base = y + 48 + n * LEADING;
      for (const { shown, state, x, width } of line) {
        const lead = pen.measureText(shown.slice(0, shown.search(/\S|$/))).width;
        if (state !== "pla") {
          pen.fillStyle = colour(state);
          pen.fillRect(EDGE + x + lead, base - 24, width - lead, 30);
          pen.fillStyle = colour(state + "-l");
          pen.fillRect(EDGE + x + lead, base + 4, width - lead, 3);
        }
        pen.fillStyle = state === "pla" ? colour("ink") : ON_TINT;
        pen.fillText(shown, EDGE + x, base);
      }
    });
  });
  if (speedup) {
    const measured = fillText(W.finish.measured, { times: toFixed(speedup) });
    write(wasMachineBusy(run) ? W.say.busy : measured, EDGE, HEIGHT - 24, 28, 600, "ink");
  }
  if (location.protocol === "https:")
    write(location.host + location.pathname, WIDTH - EDGE, HEIGHT - 24, 22, 400, "ink-2", true);
}

/* A promise of a file. */
export function drawPicture(W, run) {
  const canvas = document.createElement("canvas");
  paint(canvas, W, run);
  return new Promise((resolve) => canvas.toBlob(resolve));
}
