/* Shows a table that a press on a heading sorts. Its cells are words, numbers or null. `digits` has each column's
 * number of decimals, or null for words. If `even` is given, numbers are tinted by their distance from it. */

const compare = (/** @type {any} */ a, /** @type {any} */ b) => (typeof a === "number" ? a - b : a.localeCompare(b));

/** Sorts rows by one column. Rows with null in this column always come last, and equal rows keep their order.
 * @param {Cell[][]} rows @param {number} column @param {boolean} descending */
export function sortRows(rows, column, descending) {
  const isMissing = (/** @type {Cell[]} */ row) => Number(row[column] === null),
    sign = descending ? -1 : 1;
  return [...rows].sort(
    (a, b) => isMissing(a) - isMissing(b) || (isMissing(a) ? 0 : sign * compare(a[column], b[column])),
  );
}

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  const [box, table] = [element.querySelector(".sd-scroll"), /** @type {any} */ (element.querySelector("table"))],
    [heads, digits] = [props.heads, props.digits].map((text) => JSON.parse(text));
  const sorting = { column: null, descending: false };
  const formats = digits.map(
    (/** @type {number | null} */ n) =>
      new Intl.NumberFormat("en", { minimumFractionDigits: n ?? 0, maximumFractionDigits: n ?? 0 }),
  );
  const isText = (/** @type {number} */ i) => digits[i] === null;

  /** @param {string} tag @param {Record<string, string>} attributes @param {...(string | Node)} children */
  function createNode(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  /** @returns {Record<string, string>} */
  const attributesOf = (/** @type {number} */ i) => (isText(i) ? {} : { class: "sd-num" });
  const formatValue = (/** @type {Cell} */ value, /** @type {number} */ i) =>
    value === null ? "–" : isText(i) || value === 0 ? String(value) : formats[i].format(value);
  const createCell = (/** @type {Cell} */ value, /** @type {number} */ i) =>
    tint(
      createNode(i ? "td" : "th", { ...attributesOf(i), ...(i ? null : { scope: "row" }) }, formatValue(value, i)),
      value,
    );

  /* Tints a number by its distance from `props.even`. */
  function tint(/** @type {HTMLElement} */ node, /** @type {Cell} */ value) {
    if (typeof value !== "number" || props.even == null) return node;
    const distance = (/** @type {number} */ number) => Math.abs(number - props.even),
      isBelow = (/** @type {number} */ number) => number < props.even,
      numbers = props.value.flat().filter((/** @type {Cell} */ number) => typeof number === "number"),
      furthest = Math.max(
        ...numbers.filter((/** @type {number} */ number) => isBelow(number) === isBelow(value)).map(distance),
      );
    node.dataset.side = isBelow(value) ? "below" : "above";
    node.style.setProperty("--share", `${(80 * distance(value)) / furthest}%`);
    return node;
  }

  /* Sorts by a column: numbers from the largest, words from A. A second press reverses the order. */
  function sortBy(/** @type {number} */ i) {
    Object.assign(sorting, {
      column: i,
      descending: sorting.column === i ? !sorting.descending : !isText(i),
    });
    draw();
  }

  function createHeading(/** @type {string} */ name, /** @type {number} */ i) {
    const button = createNode("button", { type: "button" }, name, createNode("i", { "aria-hidden": "true" }));
    button.addEventListener("click", () => sortBy(i));
    return createNode("th", { ...attributesOf(i), scope: "col" }, button);
  }

  function draw() {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      head.setAttribute("aria-sort", i !== sorting.column ? "none" : sorting.descending ? "descending" : "ascending");
      head.querySelector("i").textContent = i !== sorting.column ? "↕" : sorting.descending ? "↓" : "↑";
    });
    const rows = sorting.column === null ? props.value : sortRows(props.value, sorting.column, sorting.descending);
    table.tBodies[0].replaceChildren(
      ...rows.map((/** @type {Cell[]} */ row) => createNode("tr", {}, ...row.map(createCell))),
    );
  }

  for (const node of [box, table]) node.setAttribute("aria-label", props.caption);
  table.tHead.rows[0].append(...heads.map(createHeading));
  draw();
}
