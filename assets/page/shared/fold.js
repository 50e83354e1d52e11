/* A section that a press opens. Gradio puts what is in it beside the template, perhaps later: it is moved into it. */

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
