/* Makes our API link press Gradio's hidden button, whose label is not in the language of the page. */

export function mount(/** @type {HTMLElement} */ element) {
  /** @type {HTMLElement} */ (element.querySelector("a")).addEventListener("click", (event) => {
    const button = /** @type {HTMLElement | null} */ (document.querySelector("button.show-api"));
    if (!button) return;
    event.preventDefault();
    button.click();
  });
}
