/* Adds buttons that save files: the server sends a text, and the browser makes a file of it. */

/** @param {HTMLElement} element @param {Props} props @param {Watch} _watch @param {Trigger} _trigger
 * @param {Server} server */
export function mount(element, props, _watch, _trigger, server) {
  const TYPES = /** @type {Record<string, string>} */ ({ csv: "text/csv", json: "application/json" });
  const row = /** @type {HTMLElement} */ (element.querySelector(".sd-save")),
    notice = /** @type {HTMLElement} */ (element.querySelector(".sd-notice")),
    labels = JSON.parse(props.words);

  /** @param {string} kind @param {string} text */
  function save(kind, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: TYPES[kind] }));
    link.download = props.filename + "." + kind;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /** @param {string} kind */
  function createButton(kind) {
    const node = document.createElement("button");
    node.type = "button";
    node.className = "sd-btn";
    node.textContent = labels[kind];
    node.addEventListener("click", async () => {
      const text = await server.file(kind).catch(() => "");
      notice.textContent = text ? "" : labels.unreachable;
      if (text) save(kind, text);
    });
    return node;
  }

  row.replaceChildren(...props.value.map(createButton));
}
