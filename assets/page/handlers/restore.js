/* Restores a long prompt and the run, which `shared/keep.js` stored in this browser tab. The run returns after a
 * reload, after Back or within a minute of leaving. A run in the address takes precedence. */

const MAX_AWAY_MS = 60000;
const NO_CHANGE = { __type__: "update" };
export let restoredLog = ""; // the run that returned, if any

/**
 * Returns updates of the prompt's field and of the player.
 * @returns {any[]}
 * @param {string | null} prompt
 * @param {string | null} run as `shared/keep.js` stored it
 * @param {{ hash: string, cameBack: boolean, now: number }} page `cameBack` is true after a reload or Back
 */
export function restoreUpdates(prompt, run, { hash, cameBack, now }) {
  let leftAt = 0,
    log = "";
  try {
    ({ left: leftAt, log } = JSON.parse(String(run)) || {});
  } catch {
    /* another page stored this text */
  }
  const addressHoldsRun = hash.startsWith("#run=");
  restoredLog = log && !addressHoldsRun && (cameBack || now - leftAt < MAX_AWAY_MS) ? log : "";
  return [
    prompt === null ? NO_CHANGE : prompt,
    restoredLog ? { ...NO_CHANGE, value: restoredLog, ended: "kept" } : NO_CHANGE,
  ];
}

/** @param {string} name @returns {string | null} */
function readStored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // the storage is forbidden
  }
}

export const handler = () => () => {
  const [prompt, run] = [readStored("specdec.prompt"), readStored("specdec.run")];
  if (run !== null) sessionStorage.removeItem("specdec.run");
  const navigation = /** @type {any} */ (performance.getEntriesByType("navigation")[0] || {}).type;
  const cameBack = ["reload", "back_forward"].includes(navigation);
  return restoreUpdates(prompt, run, { hash: location.hash, cameBack, now: Date.now() });
};
