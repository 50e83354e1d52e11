/* Waits for the player (`race/player.js`), because Gradio may draw it after the parts of the page that need it. */

/* Calls `mount` with the player once Gradio has drawn it and the first screen (`first.js`) is gone. */
export function whenPlayerReady(/** @type {(player: Player) => void} */ mount) {
  const mountIfReady = () => {
    const player = /** @type {any} */ (document.querySelector(".sd-player"));
    if (!player || !player.load || document.getElementById("first")) return false;
    mount(player);
    return true;
  };
  if (mountIfReady()) return;
  const observer = new MutationObserver(() => {
    if (mountIfReady()) observer.disconnect();
  });
  observer.observe(document.body, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["data-state"],
  });
}
