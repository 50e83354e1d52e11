/* Waits for the player, because parts of the page that need it may be drawn first. */

/* Calls `mount` with the player once it stands in Gradio's tabs and no longer in the first screen. */
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
