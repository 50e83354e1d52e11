/* Parts of the page that work with the player may be drawn before it is. */

/* Calls `mount` with the player, as soon as Gradio's tabs have it: before, it may be the first screen's. */
export function whenPlayerReady(mount) {
  const arrived = () => {
    const player = /** @type {any} */ (document.querySelector(".sd-player"));
    if (!player || !player.load || document.getElementById("first")) return false;
    mount(player);
    return true;
  };
  if (arrived()) return;
  const waiting = new MutationObserver(() => {
    if (arrived()) waiting.disconnect();
  });
  waiting.observe(document.body, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["data-state"],
  });
}
