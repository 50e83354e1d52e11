/* Shows a table that a press on a heading sorts. Its cells are words, numbers or null. `digits` has each column's
 * number of decimals, or null for words. If `even` is given, numbers are tinted by their distance from it. */

const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));

/* Sorts rows by one column. Rows with null in this column always come last, and equal rows keep their order. */
export function sortRows(rows, column, descending) {
  const isMissing = (row) => Number(row[column] === null),
    sign = descending ? -1 : 1;
  return [...rows].sort(
    (a, b) => isMissing(a) - isMissing(b) || (isMissing(a) ? 0 : sign * compare(a[column], b[column])),
  );
}

export function mount(element, props) {
  const [box, table] = [element.querySelector(".sd-scroll"), element.querySelector("table")],
    [heads, digits] = [props.heads, props.digits].map((text) => JSON.parse(text));
  const sorting = { column: null, descending: false };
  const formats = digits.map(
    (n) => new Intl.NumberFormat("en", { minimumFractionDigits: n ?? 0, maximumFractionDigits: n ?? 0 }),
  );
  const isText = (i) => digits[i] === null;

  function createNode(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  const attributesOf = (i) => (isText(i) ? {} : { class: "sd-num" });
  const formatValue = (value, i) =>
    value === null ? "–" : isText(i) || value === 0 ? String(value) : formats[i].format(value);
  const createCell = (value, i) =>
    tint(
      createNode(i ? "td" : "th", { ...attributesOf(i), ...(i ? {} : { scope: "row" }) }, formatValue(value, i)),
      value,
    );

  /* Tints a number by its distance from `props.even`. */
  function tint(node, value) {
    if (typeof value !== "number" || props.even == null) return node;
    const distance = (number) => Math.abs(number - props.even),
      isBelow = (number) => number < props.even,
      numbers = props.value.flat().filter((number) => typeof number === "number"),
      furthest = Math.max(...numbers.filter((number) => isBelow(number) === isBelow(value)).map(distance));
    node.dataset.side = isBelow(value) ? "below" : "above";
    node.style.setProperty("--share", `${(80 * distance(value)) / furthest}%`);
    return node;
  }

  /* Sorts by a column: numbers from the largest, words from A. A second press reverses the order. */
  function sortBy(i) {
    Object.assign(sorting, {
      column: i,
      descending: sorting.column === i ? !sorting.descending : !isText(i),
    });
    draw();
  }

  function createHeading(name, i) {
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
    table.tBodies[0].replaceChildren(...rows.map((row) => createNode("tr", {}, ...row.map(createCell))));
  }

  for (const node of [box, table]) node.setAttribute("aria-label", props.caption);
  table.tHead.rows[0].append(...heads.map(createHeading));
  draw();
}
