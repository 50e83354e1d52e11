/* Calls `draw` when the player or its charts enter or leave the screen, and `redraw` when a width or font changes. */

/* Measures the charts and returns whether a width changed. Keeps the old widths while the player's tab is hidden. */
function measureWidths(/** @type {Parts} */ part, /** @type {View} */ view) {
  if (!part.stage.clientWidth) return false;
  const before = Object.values(view.widths).join();
  for (const name of Object.keys(view.widths)) view.widths[name] = part[name].clientWidth;
  return Object.values(view.widths).join() !== before;
}

/** @param {HTMLElement} root @param {Parts} part @param {View} view @param {Act} draw @param {Act} redraw */
export function watchSizes(root, part, view, draw, redraw) {
  new IntersectionObserver((changes) => {
    view.onScreen = changes[changes.length - 1].isIntersecting; // several changes can arrive in one call
    view.lastFrameMs = performance.now();
    draw();
  }).observe(root);
  new IntersectionObserver((changes) => {
    view.chartsOnScreen = changes[changes.length - 1].isIntersecting;
    draw();
  }).observe(root.querySelector(".sd-two"));
  const redrawChips = () => view.run && redraw(); // the font changes their widths
  document.fonts.ready.then(redrawChips);
  document.fonts.addEventListener("loadingdone", redrawChips); // of a font that was asked for later
  new ResizeObserver(() => {
    if (view.run && measureWidths(part, view)) redraw();
  }).observe(root);
}
