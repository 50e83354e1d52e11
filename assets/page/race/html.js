/* Builds the HTML elements that views share, copies texts to the clipboard and saves files. */

/** Sets attributes and appends children. @template {Element} T
 * @param {T} node @param {Attributes | null} attributes @param {Child[]} children @returns {T} */
export function setUp(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value != null && value !== false) node.setAttribute(name, String(value));
  node.append(.../** @type {Node[]} */ (children.flat(9).filter((child) => child != null && child !== false)));
  return node;
}
/** @returns {Part} @param {string} tag @param {Attributes | null} [attributes] @param {...Child} children */
export const html = (tag, attributes, ...children) =>
  setUp(/** @type {Part} */ (document.createElement(tag)), attributes ?? null, children);

/** @param {Child} label @param {Act} act @param {string | null} cls */
export function createButton(label, act, cls = "sd-btn") {
  const node = html("button", { type: "button", class: cls }, label);
  node.onclick = act;
  return node;
}
/** Adds a button for each [name, label] to `box`. Returns a function that shows the button of a name as pressed.
 * @param {Part} box @param {Iterable<[string, string]>} labels @param {(name: string) => unknown} choose */
export function createChoice(box, labels, choose) {
  for (const [name, label] of labels) {
    const node = createButton(label, () => choose(name), null);
    node.dataset.name = name;
    box.append(node);
  }
  return (/** @type {string} */ chosen) => {
    for (const node of /** @type {Iterable<Part>} */ (box.children))
      node.setAttribute("aria-pressed", String(node.dataset.name === chosen));
  };
}
/** @param {string} href @param {string} label @param {string} [cls] */
export const createLink = (href, label, cls) =>
  html("a", { class: cls, href, target: "_blank", rel: "noreferrer" }, label);

export const createHeadRow = (/** @type {Child[]} */ heads) =>
  html(
    "thead",
    {},
    html(
      "tr",
      {},
      heads.map((head) => (typeof head === "string" ? html("th", { scope: "col" }, head) : head)),
    ),
  );
/** @param {Child} name @param {Child[]} cells @param {string|null} [cls] */
export const createRow = (name, cells, cls) =>
  html(
    "tr",
    { class: cls },
    html("th", { scope: "row" }, name),
    cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : html("td", {}, cell))),
  );
export const createTable = (/** @type {string} */ cls, /** @type {Child[]} */ heads, /** @type {Child} */ rows) =>
  html("table", { class: cls }, createHeadRow(heads), html("tbody", {}, rows));
export const createBarCell = (/** @type {number} */ share, /** @type {boolean} */ strong) =>
  html(
    "td",
    { class: "sd-th-bar" },
    html("i", {
      style: `width:${(Math.min(1, share) * 100).toFixed(1)}%`,
      class: strong ? "sd-th-strong" : null,
    }),
  );
export const createLegend = (/** @type {string[][]} */ ...items) =>
  html(
    "div",
    { class: "sd-key" },
    items.map(([cls, label]) => html("span", {}, html("i", { class: cls }), label)),
  );

/* Sets a property only if it changes, because each write costs a style recalculation. */
export const setProperty = (/** @type {any} */ node, /** @type {string} */ name, /** @type {unknown} */ value) => {
  if (node[name] !== value) node[name] = value;
};
export const setAttribute = (/** @type {Element} */ node, /** @type {string} */ name, /** @type {string} */ value) => {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
};

export const findParts = (/** @type {Element} */ root) =>
  Object.fromEntries(
    /** @type {Part[]} */ ([...root.querySelectorAll("[data-part]")]).map((node) => [node.dataset.part, node]),
  );

export async function copyText(/** @type {string} */ text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function showAnswer(/** @type {Part} */ button, /** @type {string} */ word) {
  button.label ??= button.textContent;
  clearTimeout(button.timer);
  button.textContent = word;
  button.timer = setTimeout(() => {
    button.textContent = button.label;
  }, 2000);
}

export function saveFile(/** @type {Blob} */ blob, /** @type {Run|null} */ run, /** @type {string} */ extension) {
  const url = URL.createObjectURL(blob),
    name = String((run && run.header.run) || "run")
      .replace(/[^\w-]/g, "")
      .slice(0, 40);
  html("a", { href: url, download: "specdec-" + name + extension }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let idCount = 0;
export const createId = (/** @type {string} */ name) => `sd-${name}-${idCount++}`;
