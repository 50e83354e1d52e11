/* What every view of a run shares: words and figures as the page writes them, elements, token chips. */

import { visible } from "#page/race/text.js";

const UNNAMEABLE = ["rej", "dis", "cut", "pen"]; // states of a draft that a server may leave without a name
export const MARK = {
  acc: "✓",
  rej: "✗",
  dis: "·",
  res: "↻",
  bon: "+1",
  pen: "",
  pla: "",
  cut: "·",
};
export const BLOCK = "block verification",
  NOISE = "shared noise"; // rules with words of their own

export function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value != null && value !== false) node.setAttribute(name, value);
  node.append(...children.flat(9).filter((child) => child != null));
  return node;
}
export const h = (tag, attributes, ...children) =>
  dress(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
export const text = (x, y, words, cls, anchor) =>
  s("text", { x, y, class: cls, "text-anchor": anchor }, words);
export const line = (x1, y1, x2, y2, cls, more) =>
  s("line", { x1, y1, x2, y2, class: cls, ...more });
export const rect = (x, y, width, height, more) =>
  s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...more });
export const svg = (width, height, label, ...children) =>
  s("svg", { width, height, role: "img", "aria-label": label }, children);

export function button(label, act, cls = /** @type {string | null} */ ("sd-btn")) {
  const node = h("button", { type: "button", class: cls }, label);
  node.onclick = act;
  return node;
}
/* Buttons by name, of which one is pressed: the function that comes back is told which. */
export function choice(box, labels, choose) {
  for (const [name, label] of labels) {
    const node = button(label, () => choose(name), null);
    node.dataset.name = name;
    box.append(node);
  }
  return (chosen) => {
    for (const node of box.children)
      node.setAttribute("aria-pressed", String(node.dataset.name === chosen));
  };
}
export const link = (href, label, cls) =>
  h("a", { class: cls, href, target: "_blank", rel: "noreferrer" }, label);

/* The head of a table, from names and cells. */
export const headRow = (heads) =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      heads.map((head) => (typeof head === "string" ? h("th", { scope: "col" }, head) : head)),
    ),
  );
export const tableRow = (name, cells, cls) =>
  h(
    "tr",
    { class: cls },
    h("th", { scope: "row" }, name),
    cells.map((cell) => (cell && cell.tagName === "TD" ? cell : h("td", {}, cell))),
  );
export const table = (cls, heads, rows) =>
  h("table", { class: cls }, headRow(heads), h("tbody", {}, rows));
/* What the colours of a chart mean. */
export const legend = (...items) =>
  h(
    "div",
    { class: "sd-key" },
    items.map(([cls, label]) => h("span", {}, h("i", { class: cls }), label)),
  );

/* Bars of one look make one path: a long run has thousands of them. */
export function bundle() {
  const looks = new Map(),
    at = (v) => v.toFixed(2);
  function add(look, x, y, width, height, round = 0) {
    if (!(width > 0 && height > 0)) return;
    const r = width < 6 ? 0 : round,
      corner = (dx, dy, ex, ey) => (r ? `q${dx} ${dy} ${ex} ${ey}` : "");
    const bar = [
      `M${at(x + r)} ${at(y)}h${at(width - 2 * r)}${corner(r, 0, r, r)}v${at(height - 2 * r)}`,
      `${corner(0, r, -r, r)}h${at(2 * r - width)}${corner(-r, 0, -r, -r)}v${at(2 * r - height)}`,
      `${corner(0, -r, r, -r)}z`,
    ].join("");
    looks.set(look, (looks.get(look) || "") + bar);
  }
  return {
    add,
    paths: (dressing) => [...looks].map(([look, d]) => s("path", { d, ...dressing(look) })),
  };
}

/* Written only when it is another: each writing costs a style recalculation. */
export const write = (node, name, value) => {
  if (node[name] !== value) node[name] = value;
};
export const attribute = (node, name, value) => {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
};

let hatches = 0;
export function hatch() {
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
export function atBreak(piece) {
  const cut = piece.lastIndexOf("\n") + 1;
  return cut && cut < piece.length ? [piece.slice(0, cut), piece.slice(cut)] : [piece];
}

export function chip(W, piece, state, tag = "button", status = W.status[state]) {
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
export const statusOf = (W, state, { draft }) =>
  state === "dis" && draft.u != null ? W.status.late : W.status[state];

/* The elements of a template by the names of their parts. */
export const parts = (root) =>
  /** @type {any} */ (
    Object.fromEntries(
      [...root.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]),
    )
  );

/* Whether a text could be copied: without https a page may not write to the clipboard. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/* A button answers in its own place for two seconds. Pressed again meanwhile, it still goes back to its name. */
export function answer(button, word) {
  button.label ??= button.textContent;
  clearTimeout(button.timer);
  button.textContent = word;
  button.timer = setTimeout(() => {
    button.textContent = button.label;
  }, 2000);
}

/* A file for the visitor, named after the run. */
export function saved(blob, run, extension) {
  const url = URL.createObjectURL(blob),
    name = String((run && run.header.run) || "run")
      .replace(/[^\w-]/g, "")
      .slice(0, 40);
  h("a", { href: url, download: "specdec-" + name + extension }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export const freshId = (name) => `sd-${name}-${hatches++}`;

/* The prompt of a run, as `write` shows text; grey around it, what the model's chat template adds. */
export function prompted(header, write) {
  const chat = (header.models || {}).chat,
    own = write(header.prompt || "");
  if (!Array.isArray(chat) || chat.length !== 2 || chat.some((text) => typeof text !== "string"))
    return h("span", { class: "sd-prompt" }, own);
  const [before, after] = chat.map((text) => h("span", { class: "sd-template" }, write(text)));
  return h("span", { class: "sd-prompt sd-asked" }, before, own, after);
}
