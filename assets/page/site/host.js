/* Replaces Gradio on the site without a server. It gives a component's script `element`, `props`, `watch`, `trigger`
 * and `server`, as Gradio does. It opens tabs and folds, and plays recorded runs. The answers of Python functions
 * are files, which `specdec/ui/site.py` wrote when it built the site. */

import { handler } from "#page/handlers/restore.js";
import { createOwnRuns } from "#page/site/runs.js";
import { readTrace } from "#page/site/trace.js";

/** @typedef {{ at: number, script: string, tab: string, props: any, server: Record<string, string> }} Part */

const files = /** @type {any} */ (self).specdec,
  { page } = files,
  texts = page.words;
const ROOT = new URL(page.up || ".", location.href);
const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector)),
  findAll = (/** @type {string} */ selector) => /** @type {any[]} */ ([...document.querySelectorAll(selector)]),
  findPart = (/** @type {number} */ number) => find(`[data-at="${number}"]`);

/* ---- files: each is a script, because a page opened from disk can load scripts but cannot fetch files ---- */
/** @type {Record<string, Promise<any>>} */
const pending = {};

/** @param {string} path @returns {Promise<any>} */
function load(path) {
  if (Object.hasOwn(files, path)) return Promise.resolve(files[path]);
  pending[path] ||= new Promise((resolve, reject) => {
    const script = document.createElement("script"),
      fail = () => {
        delete pending[path];
        script.remove();
        reject(new Error(path + " is not on this site"));
      };
    script.src = String(new URL(path + ".js", ROOT));
    script.onload = () => (Object.hasOwn(files, path) ? resolve(files[path]) : fail());
    script.onerror = fail;
    document.head.append(script);
  });
  return pending[path];
}

/* ---- components --------------------------------------------------------------------------------------------- */

/** @type {Map<number, { props: any, watched: [string[], () => void][] }>} */
const mounted = new Map();

/** @param {Part} part */
async function mount(part) {
  const element = findPart(part.at),
    props = { ...part.props },
    /** @type {[string[], () => void][]} */ watched = [];
  mounted.set(part.at, { props, watched });
  const watch = (/** @type {string | string[]} */ names, /** @type {Act} */ act) => watched.push([[names].flat(), act]);
  const trigger = (/** @type {string} */ event, /** @type {any} */ settings) => {
    if (event === "opened") showSettings(settings.head);
  };
  const module = await import(`#page/${part.script}.js`);
  module.mount(element, props, watch, trigger, server(part));
  const lastButton = [...element.querySelectorAll("[data-engine]")].pop();
  if (lastButton && !element.querySelector(".sd-engine")) lastButton.parentElement.append(needsEngine());
}

/* Answers a script's calls to Python from files. `open_trace` runs here; any other call without a file fails. */
function server(/** @type {HostPart} */ part) {
  const askFile = (/** @type {string} */ name, /** @type {any} */ argument) =>
    name in part.server
      ? load(part.server[name].replace("*", encodeURIComponent(argument)))
      : Promise.reject(new Error(texts.live));
  return new Proxy(
    {},
    {
      get: (_, /** @type {string} */ name) =>
        name === "open_trace" ? openTrace : (/** @type {any} */ argument) => askFile(name, argument),
    },
  );
}

/* Opens a text that has the form of a run. Unlike Python, does not check the run's decisions. */
async function openTrace(/** @type {string} */ text) {
  const log = readTrace(text, page.limit);
  return log ? { log, said: texts.opened } : { said: texts.unreadable, wrong: true };
}

/** @param {number} number @param {any} change */
function update(number, change) {
  const { props, watched } = mounted.get(number) || { props: {}, watched: [] };
  Object.assign(props, change);
  for (const [names, act] of watched) if (names.some((name) => name in change)) act();
}

function needsEngine() {
  const line = document.createElement("p"),
    code = document.createElement("code");
  line.className = "sd-sub sd-engine";
  code.textContent = page.command;
  line.append(texts.live + " ", code);
  return line;
}

/* ---- tabs and folds ----------------------------------------------------------------------------------------- */

const tabs = findAll(".sd-tabs [role=tab]");

/** @param {string} name */
async function openTab(name) {
  for (const tab of tabs) {
    const chosen = tab.id === name + "-button";
    tab.classList.toggle("selected", chosen);
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    find("#" + tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  const newParts = page.parts.filter((/** @type {HostPart} */ part) => part.tab === name && !mounted.has(part.at));
  await Promise.all(newParts.map(mount));
}

function toggleFold(/** @type {any} */ heading) {
  const isOpen = heading.classList.toggle("open");
  heading.setAttribute("aria-expanded", String(isOpen));
  heading.nextElementSibling.hidden = !isOpen;
}

/* ---- recorded runs -------------------------------------------------------------------------------------------- */

const drafterMenu = find("#drafter"),
  PLAYER = page.parts.find((/** @type {HostPart} */ { script }) => script === "race/player").at;
let playNumber = 0,
  pressedTab = "";

const showNotice = (
    /** @type {string} */ value,
    wrong = false,
    share = 1,
    /** @type {Press | undefined} */ press = undefined,
  ) => find("#notice p").say(value, wrong, share, press),
  promptField = find("#prompt textarea"),
  kindOf = (/** @type {string | null} */ prompt) =>
    Object.keys(page.runs).find((kind) => page.runs[kind].prompt === prompt);

/* Returns the file of the drafter's recorded run, or else of the usual drafter's run. */
function fileOf(/** @type {string} */ kind, /** @type {string | null} */ drafterName) {
  const runFiles = page.runs[kind].files;
  return runFiles[drafterName ?? ""] || Object.values(runFiles)[0];
}

async function play(/** @type {string} */ kind, /** @type {string} */ drafterName) {
  const myNumber = ++playNumber,
    [usualDrafter] = Object.keys(page.runs[kind].files),
    labels = page.drafters,
    isSubstitute = !page.runs[kind].files[drafterName] && drafterName !== Object.keys(page.drafters)[0];
  try {
    const value = await load(fileOf(kind, drafterName));
    if (myNumber !== playNumber) return;
    find(".sd-player").load(value); // starts the run from its beginning, even if it is already shown
    showNotice(
      isSubstitute
        ? texts.other_trace.replace("{drafter}", labels[drafterName]).replace("{shown}", labels[usualDrafter])
        : "",
    );
  } catch {
    showNotice(texts.missing, true);
  }
}

/* Shows a run's settings in the bar above the player. `log` is the whole log or only its first two lines. */
function showSettings(/** @type {string} */ log) {
  const [header, started] = log.split("\n", 2).map((line) => JSON.parse(line)),
    settings = { ...started.params, ...started, k: ownRuns.k(), prompt: header.prompt };
  const kind = kindOf(settings.prompt),
    names = Object.keys(kind ? page.runs[kind].files : {}),
    shown = names.includes(settings.drafter) ? names : [...names, settings.drafter];
  promptField.value = settings.prompt;
  ownRuns.showSettings(settings, shown);
  const detail = page.order.map((/** @type {string} */ name) => settings[name] ?? "");
  window.dispatchEvent(new CustomEvent("sd-settings", { detail }));
  setAddress(kind, settings.drafter);
}

/* Writes a recorded run into the address. The first screen's run and the visitor's own runs have no address. */
function setAddress(/** @type {string | undefined} */ kind, /** @type {string} */ drafterName) {
  const url = new URL(location.href),
    hasAddress = kind && page.runs[kind].files[drafterName] && fileOf(kind, drafterName) !== page.begin,
    settings = hasAddress ? { prompt: page.runs[kind].prompt, drafter: drafterName } : { prompt: "", drafter: "" };
  for (const [key, value] of Object.entries(settings))
    value ? url.searchParams.set(key, value) : url.searchParams.delete(key);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

const ownRuns = createOwnRuns({
  page,
  root: ROOT,
  showNotice,
  write: (value) => update(PLAYER, { value }),
  // until the first token, the run on show is dimmed and stands
  onRunning: (isRunning) =>
    update(PLAYER, isRunning ? { preparing: "unrecorded" } : { preparing: false, ended: Date.now() }),
});

/* ---- links ---------------------------------------------------------------------------------------------------- */

function showWarning(/** @type {string} */ text) {
  const line = find("#link-notice .sd-notice");
  line.textContent = text;
  line.classList.add("sd-wrong");
}

/* Returns the file of the run that the address names, or else of the first screen's run. */
function linkedFile(/** @type {URLSearchParams} */ query) {
  const prompt = query.get("prompt"),
    kind = kindOf(prompt ?? page.runs[page.begin.split("/")[1]].prompt),
    drafterName = query.get("drafter");
  if (!kind || (drafterName && !page.runs[kind].files[drafterName])) {
    if (!location.hash.startsWith("#run=")) showWarning(texts.not_here);
    return page.begin;
  }
  return fileOf(kind, drafterName);
}

/* ---- the beginning --------------------------------------------------------------------------------------------- */

async function startPage() {
  const query = new URLSearchParams(location.search),
    theme = query.get("__theme"),
    prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.body.classList.toggle("dark", theme ? theme === "dark" : prefersDark);
  if (location.protocol === "file:") history.pushState = history.replaceState = () => {}; // fails for pages on disk
  const commonParts = page.parts.filter((/** @type {HostPart} */ part) => !part.tab && part.script !== "shared/keep");
  await Promise.all(commonParts.map(mount));
  const value = await load(linkedFile(query)).catch(() => load(page.begin));
  page.parts.find((/** @type {HostPart} */ part) => part.at === PLAYER).props.value = value;
  await openTab("race");
  await mount(page.parts.find((/** @type {HostPart} */ part) => part.script === "shared/keep"));
  const [, restored] = handler()(); // as Gradio calls it
  if (restored.value) update(PLAYER, restored);
  // if the visitor has chosen another run meanwhile, that run shows its own settings
  if (!playNumber && !location.hash.startsWith("#run=")) showSettings(restored.value || value);
  const tab = pressedTab || query.get("tab"); // a tab that was pressed meanwhile stays open
  if (tab && find(`#${CSS.escape(tab)}-button`)) openTab(tab);
  else if (tab) showWarning(texts.no_tab);
}

document.addEventListener("click", (event) => {
  const node = /** @type {any} */ (event.target),
    tab = node.closest(".sd-tabs [role=tab]"),
    heading = node.closest(".label-wrap"),
    example = node.closest("[data-kind]");
  if (tab) openTab((pressedTab = tab.id.replace(/-button$/, "")));
  if (heading) toggleFold(heading);
  if (example) play(example.dataset.kind, drafterMenu.value);
  if (node.closest("#run")) {
    playNumber++; // ignores a recorded run that is still loading
    ownRuns.press();
  }
});
drafterMenu.addEventListener("change", () => {
  const kind = kindOf(promptField.value);
  if (kind && page.runs[kind].files[drafterMenu.value]) play(kind, drafterMenu.value);
});
startPage();
