// @ts-check
/* What every view of a run shares: words and figures as the page writes them, elements, token chips. */

const { EPS } = require("./run.js");

const UNNAMEABLE = ["rej", "dis", "cut", "pen"]; // states of a draft that a server may leave without a name
const MARK = { acc: "✓", rej: "✗", dis: "·", res: "↻", bon: "+1", pen: "", pla: "", cut: "·" };
const BLOCK = "block verification",
  NOISE = "shared noise"; // rules with words of their own

/* ---- text ---------------------------------------------------------------------------------------------------- */

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const fixed = (x, digits = 2) => x.toFixed(digits);

/* A probability: two significant digits, so that a ratio of two agrees with both; never a false 0 or 1. */
function chance(x) {
  if (x == null || Number.isNaN(x)) return "–";
  if (x > 0 && x < 0.0001) return "<0.0001";
  if (x < 1 && x > 0.995) return ">0.99";
  return x >= 0.0995 || x === 0 ? fixed(x) : x.toPrecision(2);
}

/* Two chances with enough digits to tell them apart. */
function apart(a, b) {
  let digits = 2;
  while (digits < 6 && a !== b && fixed(a, digits) === fixed(b, digits)) digits++;
  return [a, b].map((x) => (digits > 2 ? fixed(x, digits) : chance(x)));
}

function duration(ms) {
  if (ms >= 10000) return fixed(ms / 1000, 1) + " s";
  return fixed(ms, ms < 10 ? 2 : 1) + " ms";
}

function size(n) {
  if (!(n > 0)) return "";
  if (n >= 1e9) return fixed(n / 1e9, 1) + " B";
  return n >= 1e6 ? fixed(n / 1e6, n >= 1e7 ? 0 : 1) + " M" : Math.round(n / 1e3) + " k";
}

/* Characters that would be invisible or would turn the line round are shown by their number. */
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = (piece) =>
  piece
    .replace(/\n/g, "↵")
    .replace(/\t/g, "⇥")
    .replace(ODD, (c) => "⟨" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
const blank = (piece) => (/^ {4,}$/.test(piece) ? "␣×" + piece.length : piece.replace(/ /g, "␣"));
const shown = (piece) => visible(piece.trim() ? piece.replace(/^ /, "") : blank(piece)) || "∅";

/* Where the drafter cut the text otherwise: its own pieces under this token; else "". */
const wrote = (draft) =>
  (draft.seam || []).map((piece) => visible(piece).replace(/ /g, "␣")).join("|");

/* The words for a name, or those for any other. */
const pick = (map, name) => (Object.hasOwn(map, name) ? map[name] : map.other);

/* "a {name} b" with values that may be nodes. */
function fill(template, values) {
  return template
    .split(/\{(\w+)\}/)
    .map((part, i) => (i % 2 ? (values && values[part] != null ? values[part] : "") : part))
    .filter((part) => part !== "");
}
const words = (template, values) => fill(template, values).join("");

/* What the drafter wrote in place of these, as a sentence after others. */
function seams(W, drafts) {
  const pieces = drafts.map(wrote).filter(Boolean).join("  ");
  return pieces ? [" ", words(W.card.seam, { pieces })] : [];
}

/* Side by side; a Chinese full stop is as wide as a character, so no space follows it. */
const sentences = (...parts) =>
  parts
    .flat()
    .filter(Boolean)
    .join(" ")
    .replace(/([。：？！]) /g, "$1");

function niceStep(span, count) {
  const rough = Math.max(span, EPS) / count,
    power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
}
const tick = (v, step) =>
  step >= 1 ? String(Math.round(v)) : v.toFixed(Math.min(3, Math.ceil(-Math.log10(step))));

/* Where an axis from `from` on over `span` has its marks; `count` of them fit into `window`. Of no time there are none. */
function marksOf(from, span, window, count) {
  if (!(window > EPS)) return [];
  const step = niceStep(window, count),
    first = Math.ceil(from / step - EPS),
    last = Math.floor((from + span) / step + EPS);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => ({
    at: (first + i) * step,
    label: tick((first + i) * step, step),
  }));
}

/* About how wide a label is at 12 px, before it is drawn: a Chinese character is square. */
const widthOf = (label) =>
  [...label].reduce((width, one) => width + (one > "\u2e80" ? 12 : 5.8), 0);

/* ---- small makers of elements -------------------------------------------------------------------------------- */

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value != null && value !== false) node.setAttribute(name, value);
  node.append(...children.flat(9).filter((child) => child != null));
  return node;
}
const h = (tag, attributes, ...children) =>
  dress(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const text = (x, y, words, cls, anchor) =>
  s("text", { x, y, class: cls, "text-anchor": anchor }, words);
const line = (x1, y1, x2, y2, cls, more) => s("line", { x1, y1, x2, y2, class: cls, ...more });
const rect = (x, y, width, height, more) =>
  s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...more });
const svg = (width, height, label, ...children) =>
  s("svg", { width, height, role: "img", "aria-label": label }, children);

/* Bars of one look make one path: a long run has thousands of them. */
function bundle() {
  const looks = new Map(),
    at = (v) => v.toFixed(2);
  function add(look, x, y, width, height, round = 0) {
    if (!(width > 0 && height > 0)) return;
    const r = width < 6 ? 0 : round,
      corner = (dx, dy, ex, ey) => (r ? `q${dx} ${dy} ${ex} ${ey}` : "");
    const bar = `M${at(x + r)} ${at(y)}h${at(width - 2 * r)}${corner(r, 0, r, r)}v${at(height - 2 * r)}${corner(0, r, -r, r)}h${at(2 * r - width)}${corner(-r, 0, -r, -r)}v${at(2 * r - height)}${corner(0, -r, r, -r)}z`;
    looks.set(look, (looks.get(look) || "") + bar);
  }
  return {
    add,
    paths: (dressing) => [...looks].map(([look, d]) => s("path", { d, ...dressing(look) })),
  };
}

/* Written only when it is another: each writing costs a style recalculation. */
const write = (node, name, value) => {
  if (node[name] !== value) node[name] = value;
};
const attribute = (node, name, value) => {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
};

let hatches = 0;
function hatch() {
  const id = "sd-hatch-" + hatches++;
  const pattern = s(
    "pattern",
    { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    rect(0, 0, 5, 5, { class: "sd-f-rej" }),
    line(0, 0, 0, 5, "sd-s-rej", { "stroke-width": 1.6 }),
  );
  return { defs: s("defs", {}, pattern), fill: `url(#${id})` };
}

/* The visible body of a token: leading space as a small tray, runs of spaces counted. */
function body(piece) {
  const lead = /^ +/.exec(piece),
    spaces = lead ? lead[0].length : 0,
    rest = visible(piece.slice(spaces));
  const trays = Array.from({ length: Math.min(spaces, 3) }, () => h("i", { class: "sd-sp" }));
  return h(
    "span",
    { class: "sd-x" },
    trays,
    spaces > 3 ? "×" + spaces + (rest ? " " : "") : null,
    rest || (spaces ? null : "∅"),
  );
}

/* The parts of a token on their lines: its break ends one, its indentation begins the next. */
function atBreak(piece) {
  const cut = piece.lastIndexOf("\n") + 1;
  return cut && cut < piece.length ? [piece.slice(0, cut), piece.slice(cut)] : [piece];
}

function chip(W, piece, state, tag = "button", status = W.status[state]) {
  const unnamed = piece === "" && UNNAMEABLE.includes(state),
    name = unnamed
      ? W.server.unnamed
      : (/^ /.test(piece) ? W.space + " " : "") +
        (piece.trim() || (/\n/.test(piece) ? W.line_break : ""));
  const more =
    tag === "button"
      ? { type: "button", tabindex: -1 }
      : { title: unnamed ? W.server.unnamed_tip : null };
  const node = h(
    tag,
    {
      class: "sd-tok sd-" + state,
      "aria-label": name + ", " + status,
      "data-unnamed": unnamed ? "" : null,
      ...more,
    },
    unnamed ? h("span", { class: "sd-x" }) : body(piece),
  );
  if (MARK[state]) node.append(h("span", { class: "sd-m", "aria-hidden": "true" }, MARK[state]));
  return node;
}
/* After the end of a block tokens are discarded, too, but their coins were tossed. */
const statusOf = (W, state, { draft }) =>
  state === "dis" && draft.u != null ? W.status.late : W.status[state];

/* The elements of a template by the names of their parts. */
const parts = (root) =>
  /** @type {any} */ (
    Object.fromEntries(
      [...root.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]),
    )
  );

/* Whether a text could be copied: without https a page may not write to the clipboard. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    return false;
  }
}

/* A button answers in its own place for two seconds. Pressed again meanwhile, it still goes back to its name. */
function answer(button, word) {
  button.label ??= button.textContent;
  clearTimeout(button.timer);
  button.textContent = word;
  button.timer = setTimeout(() => {
    button.textContent = button.label;
  }, 2000);
}

/* A file for the visitor, named after the run. */
function saved(blob, run, extension) {
  const url = URL.createObjectURL(blob),
    name = String((run && run.header.run) || "run")
      .replace(/[^\w-]/g, "")
      .slice(0, 40);
  h("a", { href: url, download: "specdec-" + name + extension }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const freshId = (name) => `sd-${name}-${hatches++}`;

/* The prompt of a run, as `write` shows text; grey around it, what the model's chat template adds. */
function prompted(header, write) {
  const chat = (header.models || {}).chat,
    own = write(header.prompt || "");
  if (!Array.isArray(chat) || chat.length !== 2 || chat.some((text) => typeof text !== "string"))
    return h("span", { class: "sd-prompt" }, own);
  const [before, after] = chat.map((text) => h("span", { class: "sd-template" }, write(text)));
  return h("span", { class: "sd-prompt sd-asked" }, before, own, after);
}

module.exports = {
  MARK,
  BLOCK,
  NOISE,
  clamp,
  fixed,
  chance,
  apart,
  duration,
  size,
  visible,
  shown,
  wrote,
  seams,
  pick,
  fill,
  words,
  sentences,
  niceStep,
  tick,
  marksOf,
  widthOf,
  dress,
  h,
  s,
  text,
  line,
  rect,
  svg,
  write,
  attribute,
  bundle,
  hatch,
  body,
  atBreak,
  chip,
  statusOf,
  parts,
  copied,
  answer,
  saved,
  freshId,
  prompted,
};
