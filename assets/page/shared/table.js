/* Shows a table that a press on a heading sorts. A cell is words, a number, a number with its interval, or null.
 * `digits` has each column's number of decimals, or null for words. If `even` is given, numbers are tinted by their
 * distance from it, and the rows come sorted by the second column. With `choices`, a button for each, the value holds
 * several tables. */

import { createChoice, html } from "#page/race/html.js";

const numberOf = (/** @type {Cell} */ cell) => (Array.isArray(cell) ? cell[0] : cell);
const compare = (/** @type {any} */ a, /** @type {any} */ b) => (typeof a === "number" ? a - b : a.localeCompare(b));

/** Sorts rows by one column. Rows with null in this column always come last, and equal rows keep their order.
 * @param {Cell[][]} rows @param {number} column @param {boolean} descending */
export function sortRows(rows, column, descending) {
  const valueOf = (/** @type {Cell[]} */ row) => numberOf(row[column]),
    isMissing = (/** @type {Cell[]} */ row) => Number(valueOf(row) === null),
    sign = descending ? -1 : 1;
  return [...rows].sort(
    (a, b) => isMissing(a) - isMissing(b) || (isMissing(a) ? 0 : sign * compare(valueOf(a), valueOf(b))),
  );
}

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  const [box, table] = [element.querySelector(".sd-scroll"), /** @type {any} */ (element.querySelector("table"))],
    [heads, digits, choices] = [props.heads, props.digits, props.choices || "[]"].map((text) => JSON.parse(text)),
    even = props.even ?? null,
    /** @type {Cell[][][]} */ tables = choices.length ? props.value : [props.value];
  const state = { table: 0, column: even === null ? -1 : 1, descending: true };
  const formats = digits.map(
    (/** @type {number | null} */ n) =>
      new Intl.NumberFormat("en", { minimumFractionDigits: n ?? 0, maximumFractionDigits: n ?? 0 }),
  );
  const isText = (/** @type {number} */ i) => digits[i] === null;
  const cells = tables.flat(2),
    ends = [even, ...cells.flatMap((cell) => (Array.isArray(cell) ? cell : []))],
    [lowest, highest] = [Math.min(...ends), Math.max(...ends)],
    placeOf = (/** @type {number} */ value) => `${(100 * (value - lowest)) / (highest - lowest)}%`;

  const classOf = (/** @type {number} */ i) => (isText(i) ? null : "sd-num");
  const formatValue = (/** @type {string | number | null} */ value, /** @type {number} */ i) =>
    value === null ? "–" : isText(i) || value === 0 ? String(value) : formats[i].format(value);

  function createCell(/** @type {Cell} */ cell, /** @type {number} */ i) {
    const value = numberOf(cell),
      [text, line] = formatValue(value, i).split("\n"),
      node = html(i ? "td" : "th", { class: classOf(i), scope: i ? null : "row" }, text);
    if (line) node.append(html("small", {}, line));
    if (i === (state.column || 1)) node.dataset.now = "";
    if (even !== null && typeof value === "number") node.append(createSpan(cell, i));
    return tint(node, cell, i);
  }

  /* Draws a number within its interval or, without one, a bar from `even`, on the axis that all cells share. */
  function createSpan(/** @type {any} */ cell, /** @type {number} */ i) {
    const ends = Array.isArray(cell) ? cell : [cell, Math.min(cell, even), Math.max(cell, even)],
      node = html("i", { class: "sd-span" });
    if (ends === cell) {
      const text = [ends[1], ends[2]].map((end) => formats[i].format(end)).join(" – ");
      Object.assign(node, { role: "img", ariaLabel: text, title: text });
    }
    ["at", "low", "high"].forEach((name, at) => node.style.setProperty(`--${name}`, placeOf(ends[at])));
    node.style.setProperty("--even", placeOf(even));
    return node;
  }

  /** Tints a number by its distance from `even`, and marks the best of its column and what reaches it.
   * @param {HTMLElement} node @param {Cell} cell @param {number} i */
  function tint(node, cell, i) {
    const value = numberOf(cell);
    if (typeof value !== "number" || even === null) return node;
    const isBelow = (/** @type {number} */ number) => number < even,
      furthest = Math.max(
        ...cells
          .map(numberOf)
          .filter((number) => typeof number === "number" && isBelow(number) === isBelow(value))
          .map((number) => Math.abs(Number(number) - even)),
      );
    node.dataset.side = isBelow(value) ? "below" : "above";
    node.style.setProperty("--share", `${(80 * Math.abs(value - even)) / furthest}%`);
    const best = Math.max(...tables[state.table].map((row) => Number(numberOf(row[i]))));
    node.toggleAttribute("data-best", value >= best);
    node.toggleAttribute("data-near", Array.isArray(cell) && value < best && cell[2] >= best);
    return node;
  }

  function sortBy(/** @type {number} */ i) {
    Object.assign(state, { column: i, descending: state.column === i ? !state.descending : !isText(i) });
    draw();
  }

  function createHeading(/** @type {string} */ name, /** @type {number} */ i) {
    const button = html("button", { type: "button" }, name, html("i", { "aria-hidden": "true" }));
    button.onclick = () => sortBy(i);
    return html("th", { class: classOf(i), scope: "col" }, button);
  }

  function draw() {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const order = i !== state.column ? "none" : state.descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", order);
      head.querySelector("i").textContent = { none: "", descending: "↓", ascending: "↑" }[order];
    });
    showChoice(String(state.table));
    const rows = tables[state.table];
    table.tBodies[0].replaceChildren(
      ...(state.column < 0 ? rows : sortRows(rows, state.column, state.descending)).map((row) =>
        html("tr", {}, row.map(createCell)),
      ),
    );
  }

  const chosen = html("div", { class: "sd-seg", role: "group", "aria-label": props.caption }),
    names = choices.map((/** @type {string} */ name, /** @type {number} */ i) => [String(i), name]),
    showChoice = createChoice(chosen, names, (i) => {
      state.table = +i;
      draw();
    });
  if (choices.length) element.prepend(chosen);
  for (const node of [box, table]) node?.setAttribute("aria-label", props.caption);
  table.tHead.rows[0].append(...heads.map(createHeading));
  draw();
}
