/* Buttons that save files; the browser makes them, of what the page holds or asks the server for. */

export function mount(element, props, watch, trigger, server) {
  const TYPES = { csv: "text/csv", json: "application/json" };
  const row = /** @type {HTMLElement} */ (element.querySelector(".sd-save")),
    names = JSON.parse(props.words);

  /** @param {string} kind @param {string} text */
  function save(kind, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: TYPES[kind] }));
    link.download = props.filename + "." + kind;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /** @param {[string, string]} file */
  function button([kind, text]) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "sd-btn";
    made.textContent = names[kind];
    made.addEventListener("click", async () => save(kind, text || (await server.file(kind))));
    return made;
  }

  const show = () => row.replaceChildren(...Object.entries(props.value || {}).map(button));
  show();
  watch("value", show);
}
