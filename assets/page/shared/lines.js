/* A few sentences as paragraphs; they enter by `textContent`. */

export function mount(element, props, watch) {
  const place = /** @type {HTMLElement} */ (element.querySelector(".sd-lines"));

  /** @param {string} text */
  function paragraph(text) {
    const line = document.createElement("p");
    line.textContent = text;
    return line;
  }

  const show = () => place.replaceChildren(...(props.value || []).map(paragraph));
  show();
  watch("value", show);
}
