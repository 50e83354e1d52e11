/* A handler for Gradio, once the page has loaded: what the address cannot hold waited in the browser tab, a long
 * prompt, and the run (`shared/keep.js`). One that was left a minute ago, or before a reload, is shown again; no more
 * of it will come. */

const AWAY = 60000; // ms
const NOTHING = { __type__: "update" };

/**
 * Updates of the prompt's field and of the player.
 * @returns {any[]}
 * @param {string | null} prompt
 * @param {string | null} run as `shared/keep.js` stored it
 * @param {{ hash: string, here: boolean, now: number }} page `here`: it was reloaded, or came back to
 */
export function restoreUpdates(prompt, run, { hash, here, now }) {
  let left = 0,
    log = "";
  try {
    ({ left, log } = JSON.parse(String(run)) || {});
  } catch {
    /* somebody else's */
  }
  const another = hash.startsWith("#run="); // the address brings one
  return [
    prompt === null ? NOTHING : prompt,
    log && !another && (here || now - left < AWAY)
      ? { ...NOTHING, value: log, ended: "kept" }
      : NOTHING,
  ];
}

/** @param {string} name @returns {string | null} */
function stored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // forbidden
  }
}

export const handler = () => () => {
  const [prompt, run] = [stored("specdec.prompt"), stored("specdec.run")];
  if (run !== null) sessionStorage.removeItem("specdec.run");
  const way = /** @type {any} */ (performance.getEntriesByType("navigation")[0] || {}).type;
  const here = ["reload", "back_forward"].includes(way);
  return restoreUpdates(prompt, run, { hash: location.hash, here, now: Date.now() });
};
