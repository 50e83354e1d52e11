/* Fills a section that folds. Gradio puts the content beside `details`, sometimes late; this script moves it inside. */

export function mount(/** @type {HTMLElement} */ element) {
  const fold = /** @type {HTMLDetailsElement} */ (element.querySelector("details"));
  function fill() {
    const content = element.querySelector(":scope > .column");
    if (content) fold.append(content);
    return content;
  }
  if (!fill()) {
    const observer = new MutationObserver(() => fill() && observer.disconnect());
    observer.observe(element, { childList: true });
  }
}
