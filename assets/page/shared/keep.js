/* Saves the settings, the open tab and the run on show. The address holds the settings and the tab. The run, and a
 * prompt that is too long for the address, go into `sessionStorage`. `handlers/restore.js` restores them when the page
 * loads again. */

import { latestValues } from "#page/handlers/changed.js";
import { restoredLog } from "#page/handlers/restore.js";
import { stopLines } from "#page/race/text.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

const RUN = "specdec.run",
  PROMPT = "specdec.prompt";
const LONGEST = 4000; // characters; a prompt that makes the query longer is stored

/** Writes settings into a query, but leaves out settings at their usual value. Other parameters of the query stay.
 * @param {string | URLSearchParams} search @param {string[]} names @param {any[]} values
 * @param {Record<string, unknown>} usual */
export function settingsQuery(search, names, values, usual) {
  const query = new URLSearchParams(search);
  names.forEach((name, i) => {
    const value = String(values[i] ?? "");
    value === String(usual[name] ?? "") ? query.delete(name) : query.set(name, value);
  });
  return query;
}

export const formatQuery = (/** @type {URLSearchParams} */ query) => (String(query) ? "?" + query : "");

/** Returns [query, null]. If the query is too long for the address, returns [query without the prompt, prompt].
 * @param {string | URLSearchParams} search @param {string[]} names @param {any[]} values
 * @param {Record<string, unknown>} usual */
export function splitQuery(search, names, values, usual) {
  const query = settingsQuery(search, names, values, usual);
  if (String(query).length <= LONGEST) return [query, null];
  query.delete("prompt");
  return [query, values[names.indexOf("prompt")]];
}

/** Returns the query with `tab` as the open tab. The first tab is not written into it.
 * @param {string | URLSearchParams} search @param {string} tab @param {string} first */
function withTab(search, tab, first) {
  const query = new URLSearchParams(search);
  tab === first ? query.delete("tab") : query.set("tab", tab);
  return query;
}

const SAMPLING = ["temperature", "top_p", "top_k", "max_tokens", "seed"]; // the sampling settings that a run records

/** With these values the page chooses both, so any run matches. @type {Record<string, string>} */
const CHOSEN_BY_PAGE = { drafter: "default", k: "0" };

/** Returns whether the run on show has another prompt or other settings than `values`. Of a server's
 * run, only the prompt counts. K does not count with an adaptive drafter, which chooses it. @param {Run} run
 * @param {string[]} names @param {any[]} values @param {Record<string, string>} [ruleKeys] */
export function hasOtherSettings(run, names, values, ruleKeys = {}) {
  const started = /** @type {any} */ (run.lanes[run.names[0]].started || {}),
    { models = {}, prompt } = run.header,
    valueOf = (/** @type {string} */ name) => values[names.indexOf(name)],
    isChosenByPage = (/** @type {string} */ name) => CHOSEN_BY_PAGE[name] === String(valueOf(name)),
    differs = (/** @type {string} */ name, /** @type {unknown} */ actual) =>
      actual != null && valueOf(name) != null && !isChosenByPage(name) && String(valueOf(name)) !== String(actual);
  if (differs("prompt", prompt)) return true;
  if (started.server || !started.params) return false;
  return (
    differs("drafter", started.drafter) ||
    (!/^adaptive/.test(started.drafter) && differs("k", started.k)) ||
    differs("target", models.family || "embedded") ||
    differs("rule", ruleKeys[started.rule]) ||
    differs("peer", run.names.length > 2) ||
    differs("stop", stopLines(started.params.stop)) ||
    SAMPLING.some((name) => differs(name, started.params[name]))
  );
}

function keepState(/** @type {Props} */ props, /** @type {Player} */ player) {
  const firstLog = restoredLog ? "" : player.log(), // not stored, as the server sends it again
    [names, usual, order, ruleKeys] = [props.names, props.usual, props.tabs, props.rules].map((text) =>
      JSON.parse(text),
    );
  let values = latestValues.get("sd-settings") || null,
    timer = 0,
    openTab = /** @type {string | null} */ (null);

  const store = (/** @type {string} */ name, /** @type {string | null} */ text) => {
    try {
      text === null ? sessionStorage.removeItem(name) : sessionStorage.setItem(name, text);
    } catch {
      /* the storage is full or forbidden */
    }
  };
  /* Returns the page's address with `query`. Keeps the fragment if it holds a run or names a section of the Guide. */
  function address(/** @type {URLSearchParams} */ query) {
    const keepsHash = location.hash.startsWith("#run=") || query.get("tab") === "guide";
    return location.pathname + formatQuery(query) + (keepsHash ? location.hash : "");
  }

  /* -- settings -- */

  function queryWithSettings(/** @type {string | URLSearchParams} */ search) {
    if (!values) return new URLSearchParams(search);
    const [query, prompt] = splitQuery(search, names, values, usual);
    store(PROMPT, prompt);
    return query;
  }
  window.addEventListener("sd-settings", (event) => {
    values = /** @type {CustomEvent} */ (event).detail;
    clearTimeout(timer);
    timer = window.setTimeout(
      () => history.replaceState(history.state, "", address(queryWithSettings(location.search))),
      300,
    );
  });

  /* -- tabs -- */

  const tabs = /** @type {HTMLElement} */ (document.querySelector(".sd-tabs"));
  const nameOf = (/** @type {Element} */ button) => button.id.replace(/-button$/, "");
  const findOpenTab = () => {
    const button = tabs.querySelector("[role=tab][aria-selected=true]");
    return button && nameOf(button);
  };
  new MutationObserver(() => {
    const tab = findOpenTab();
    if (!tab || tab === openTab) return;
    const button = /** @type {HTMLElement} */ (document.getElementById(tab + "-button")),
      bar = /** @type {HTMLElement} */ (button.parentElement);
    bar.scrollLeft = button.offsetLeft - (bar.clientWidth - button.clientWidth) / 2; // a phone's bar scrolls
    const isInitial = openTab === null; // the tab that the page opened with needs no entry in the history
    openTab = tab;
    const query = withTab(location.search, tab, order[0]);
    if (!isInitial && formatQuery(query) !== location.search) history.pushState(null, "", address(query));
  }).observe(tabs, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["aria-selected"],
  });
  window.addEventListener("popstate", () => {
    const wantedTab = new URLSearchParams(location.search).get("tab") || order[0];
    // Back and Forward change the tab, but not the settings
    history.replaceState(history.state, "", address(queryWithSettings(location.search)));
    if (wantedTab === findOpenTab()) return;
    openTab = wantedTab;
    const button = document.getElementById(wantedTab + "-button");
    if (button) button.click();
  });

  /* -- the run -- */

  /* Marks the player if its run has other settings than the fields show. Disables the examples during a live run. */
  function compareSettings() {
    const run = player.run(),
      isLive = Boolean(run && run.header.source === "live" && !run.closed);
    player.toggleAttribute(
      "data-other",
      Boolean(
        run && hasOtherSettings(run, names, values || names.map((/** @type {string} */ name) => usual[name]), ruleKeys),
      ),
    );
    for (const row of document.querySelectorAll(".sd-pills")) row.toggleAttribute("inert", isLive);
  }
  window.addEventListener("sd-settings", compareSettings);
  player.addEventListener("sd-run", compareSettings);
  player.addEventListener("sd-ended", compareSettings);
  if (restoredLog && player.log() === restoredLog) player.returned();
  compareSettings();

  window.addEventListener("pagehide", () => {
    clearTimeout(timer);
    history.replaceState(history.state, "", address(queryWithSettings(location.search)));
    const log = player.log();
    store(RUN, log && log !== firstLog ? JSON.stringify({ left: Date.now(), log }) : null);
  });
}

/** @type {Mount} */
export const mount = (element, props) => whenPlayerReady((player) => keepState(props, player));
