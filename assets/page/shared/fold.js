/* Fills a section that folds. Gradio puts the content beside the template, perhaps late; this script moves it in. */

export function mount(element) {
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
