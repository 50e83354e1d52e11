/* A table that a press on a heading sorts: rows of words and figures, null where there is none. Of each column `digits`
 * tells how many its figures show, null for words; `even` is the figure that is not tinted. First what decides, for
 * Node; then the drawing, by `textContent`. */

const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));

/* By one column; what has no figure comes last either way, and rows that are even keep their order. */
export function sortRows(rows, at, down) {
  const gone = (row) => Number(row[at] === null),
    sign = down ? -1 : 1;
  return [...rows].sort(
    (a, b) => gone(a) - gone(b) || (gone(a) ? 0 : sign * compare(a[at], b[at])),
  );
}

export function mount(element, props) {
  const [box, table] = [element.querySelector(".sd-scroll"), element.querySelector("table")],
    [heads, digits] = [props.heads, props.digits].map((text) => JSON.parse(text));
  const S = { at: null, down: false };
  const formats = digits.map(
    (n) =>
      new Intl.NumberFormat("en", { minimumFractionDigits: n ?? 0, maximumFractionDigits: n ?? 0 }),
  );
  const isWords = (i) => digits[i] === null;

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  const align = (i) => (isWords(i) ? {} : { class: "sd-num" });
  const written = (value, i) =>
    value === null ? "–" : isWords(i) || value === 0 ? String(value) : formats[i].format(value);
  const cell = (value, i) =>
    tinted(
      make(i ? "td" : "th", { ...align(i), ...(i ? {} : { scope: "row" }) }, written(value, i)),
      value,
    );

  /* Stronger the further the figure is from the even one, beside the furthest on its side. */
  function tinted(node, value) {
    if (typeof value !== "number" || props.even == null) return node;
    const off = (figure) => Math.abs(figure - props.even),
      isBelow = (figure) => figure < props.even,
      figures = props.value.flat().filter((figure) => typeof figure === "number"),
      furthest = Math.max(...figures.filter((one) => isBelow(one) === isBelow(value)).map(off));
    node.dataset.side = isBelow(value) ? "below" : "above";
    node.style.setProperty("--share", `${(80 * off(value)) / furthest}%`);
    return node;
  }

  /* The largest figure first, words from A; a second press reverses the order. */
  function press(i) {
    Object.assign(S, { at: i, down: S.at === i ? !S.down : !isWords(i) });
    draw();
  }

  function heading(name, i) {
    const button = make("button", { type: "button" }, name, make("i", { "aria-hidden": "true" }));
    button.addEventListener("click", () => press(i));
    return make("th", { ...align(i), scope: "col" }, button);
  }

  function draw() {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      head.setAttribute("aria-sort", i !== S.at ? "none" : S.down ? "descending" : "ascending");
      head.querySelector("i").textContent = i !== S.at ? "↕" : S.down ? "↓" : "↑";
    });
    const rows = S.at === null ? props.value : sortRows(props.value, S.at, S.down);
    table.tBodies[0].replaceChildren(...rows.map((row) => make("tr", {}, ...row.map(cell))));
  }

  for (const node of [box, table]) node.setAttribute("aria-label", props.caption);
  table.tHead.rows[0].append(...heads.map(heading));
  draw();
}
