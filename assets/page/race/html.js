/* Builds the HTML elements that views share, copies texts to the clipboard and saves files. */

export function setUp(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value != null && value !== false) node.setAttribute(name, value);
  node.append(...children.flat(9).filter((child) => child != null));
  return node;
}
export const html = (tag, attributes, ...children) => setUp(document.createElement(tag), attributes, children);

export function createButton(label, act, cls = /** @type {string | null} */ ("sd-btn")) {
  const node = html("button", { type: "button", class: cls }, label);
  node.onclick = act;
  return node;
}
/* Adds a button for each [name, label] to `box`. Returns a function that shows the button of a name as pressed. */
export function createChoice(box, labels, choose) {
  for (const [name, label] of labels) {
    const node = createButton(label, () => choose(name), null);
    node.dataset.name = name;
    box.append(node);
  }
  return (chosen) => {
    for (const node of box.children) node.setAttribute("aria-pressed", String(node.dataset.name === chosen));
  };
}
export const createLink = (href, label, cls) =>
  html("a", { class: cls, href, target: "_blank", rel: "noreferrer" }, label);

/* Creates the header row of a table from strings and finished cells. */
export const createHeadRow = (heads) =>
  html(
    "thead",
    {},
    html(
      "tr",
      {},
      heads.map((head) => (typeof head === "string" ? html("th", { scope: "col" }, head) : head)),
    ),
  );
export const createRow = (name, cells, cls) =>
  html(
    "tr",
    { class: cls },
    html("th", { scope: "row" }, name),
    cells.map((cell) => (cell && cell.tagName === "TD" ? cell : html("td", {}, cell))),
  );
export const createTable = (cls, heads, rows) =>
  html("table", { class: cls }, createHeadRow(heads), html("tbody", {}, rows));
export const createLegend = (...items) =>
  html(
    "div",
    { class: "sd-key" },
    items.map(([cls, label]) => html("span", {}, html("i", { class: cls }), label)),
  );

/* Sets a property only if it changes, because each write costs a style recalculation. */
export const setProperty = (node, name, value) => {
  if (node[name] !== value) node[name] = value;
};
export const setAttribute = (node, name, value) => {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
};

/* Returns the elements inside `root` that have the attribute `data-part`, keyed by its value. */
export const findParts = (root) =>
  /** @type {any} */ (
    Object.fromEntries([...root.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]))
  );

/* Copies a text and returns whether that worked. Without https, browsers block the clipboard. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/* Shows `word` on a button for two seconds, then its label again. */
export function showAnswer(button, word) {
  button.label ??= button.textContent;
  clearTimeout(button.timer);
  button.textContent = word;
  button.timer = setTimeout(() => {
    button.textContent = button.label;
  }, 2000);
}

/* Downloads `blob` as a file that is named after the run. */
export function saveFile(blob, run, extension) {
  const url = URL.createObjectURL(blob),
    name = String((run && run.header.run) || "run")
      .replace(/[^\w-]/g, "")
      .slice(0, 40);
  html("a", { href: url, download: "specdec-" + name + extension }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let idCount = 0;
export const createId = (name) => `sd-${name}-${idCount++}`;
