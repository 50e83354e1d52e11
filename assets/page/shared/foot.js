/* Links to the API. Gradio's own button is hidden, because its label follows the browser's language, not the page's. */

export function mount(element) {
  /** @type {HTMLElement} */ (element.querySelector("a")).addEventListener("click", (event) => {
    const button = /** @type {HTMLElement | null} */ (document.querySelector("button.show-api"));
    if (!button) return;
    event.preventDefault();
    button.click();
  });
}
