/* Fills a section that folds: Gradio puts its content beside the template, perhaps late, and this moves it inside. */

export function mount(element) {
  const fold = /** @type {HTMLDetailsElement} */ (element.querySelector("details"));
  function fill() {
    const inside = element.querySelector(":scope > .column");
    if (inside) fold.append(inside);
    return inside;
  }
  if (!fill()) {
    const waiting = new MutationObserver(() => fill() && waiting.disconnect());
    waiting.observe(element, { childList: true });
  }
}
