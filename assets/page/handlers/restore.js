/* A handler for Gradio, once the page has loaded: what the address cannot hold waited in the browser tab, a long
 * prompt, and the run (`shared/keep.js`). One that was left a minute ago, or before a reload, is shown again; no more
 * of it will come. */

const MAX_AWAY_MS = 60000; // ms
const NO_CHANGE = { __type__: "update" };

/**
 * Updates of the prompt's field and of the player.
 * @returns {any[]}
 * @param {string | null} prompt
 * @param {string | null} run as `shared/keep.js` stored it
 * @param {{ hash: string, cameBack: boolean, now: number }} page `cameBack`: it was reloaded, or came back to
 */
export function restoreUpdates(prompt, run, { hash, cameBack, now }) {
  let leftAt = 0,
    log = "";
  try {
    ({ left: leftAt, log } = JSON.parse(String(run)) || {});
  } catch {
    /* somebody else's */
  }
  const bringsRun = hash.startsWith("#run="); // the address brings one
  return [
    prompt === null ? NO_CHANGE : prompt,
    log && !bringsRun && (cameBack || now - leftAt < MAX_AWAY_MS)
      ? { ...NO_CHANGE, value: log, ended: "kept" }
      : NO_CHANGE,
  ];
}

/** @param {string} name @returns {string | null} */
function readStored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // forbidden
  }
}

export const handler = () => () => {
  const [prompt, run] = [readStored("specdec.prompt"), readStored("specdec.run")];
  if (run !== null) sessionStorage.removeItem("specdec.run");
  const navigation = /** @type {any} */ (performance.getEntriesByType("navigation")[0] || {}).type;
  const cameBack = ["reload", "back_forward"].includes(navigation);
  return restoreUpdates(prompt, run, { hash: location.hash, cameBack, now: Date.now() });
};
