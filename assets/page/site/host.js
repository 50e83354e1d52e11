/* Stands in for Gradio where the page is files: a component's script gets from it `element`, `props`, `watch`,
 * `trigger` and `server`, as from Gradio. It opens tabs and folds, and plays recorded runs. Every
 * answer was worked out beforehand by `specdec/ui/site.py`; nothing is asked of a server. */

import { handler } from "#page/handlers/restore.js";
import { createOwnRuns } from "#page/site/runs.js";
import { readTrace } from "#page/site/trace.js";

/** @typedef {{ at: number, script: string, tab: string, props: any, server: Record<string, string> }} Part */

const files = /** @type {any} */ (self).specdec,
  { page } = files,
  W = page.words;
const ROOT = new URL(page.up || ".", location.href);
const one = (/** @type {string} */ selector) =>
    /** @type {any} */ (document.querySelector(selector)),
  all = (/** @type {string} */ selector) =>
    /** @type {any[]} */ ([...document.querySelectorAll(selector)]),
  at = (/** @type {number} */ number) => one(`[data-at="${number}"]`);

/* ---- files: scripts, which load from a disk, too ---- */
/** @type {Record<string, Promise<any>>} */
const loading = {};

/** @param {string} name @returns {Promise<any>} */
function load(name) {
  if (Object.hasOwn(files, name)) return Promise.resolve(files[name]);
  loading[name] ||= new Promise((done, failed) => {
    const script = document.createElement("script"),
      missing = () => {
        delete loading[name];
        script.remove();
        failed(new Error(name + " is not here"));
      };
    script.src = String(new URL(name + ".js", ROOT));
    script.onload = () => (Object.hasOwn(files, name) ? done(files[name]) : missing());
    script.onerror = missing;
    document.head.append(script);
  });
  return loading[name];
}

/* ---- components --------------------------------------------------------------------------------------------- */

/** @type {Map<number, { props: any, watched: [string[], () => void][] }>} */
const mounted = new Map();

/** @param {Part} part */
async function mount(part) {
  const element = at(part.at),
    props = { ...part.props },
    /** @type {[string[], () => void][]} */ watched = [];
  mounted.set(part.at, { props, watched });
  const watch = (names, act) => watched.push([[names].flat(), act]);
  const trigger = (event, told) => {
    if (event === "opened") show(told.head);
  };
  const module = await import(`#page/${part.script}.js`);
  module.mount(element, props, watch, trigger, server(part));
  const left = [...element.querySelectorAll("[data-engine]")].pop();
  if (left && !element.querySelector(".sd-engine")) left.parentElement.append(needsEngine());
}

/* What a script asks of Python is in a file, or cannot be had. */
function server(part) {
  const ask = (name, asked) =>
    name in part.server
      ? load(part.server[name].replace("*", encodeURIComponent(asked)))
      : Promise.reject(new Error(W.live));
  return new Proxy(
    {},
    { get: (_, name) => (name === "open_trace" ? open : (asked) => ask(name, asked)) },
  );
}

/* Python's checks are not here: what has the form of a run is shown as it is. */
async function open(text) {
  const log = readTrace(text, page.limit);
  return log ? { log, said: W.opened } : { said: W.unreadable, wrong: true };
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
  line.append(W.live + " ", code);
  return line;
}

/* ---- tabs and folds ----------------------------------------------------------------------------------------- */

const tabs = all(".sd-tabs [role=tab]");

/** @param {string} name */
async function openTab(name) {
  for (const tab of tabs) {
    const chosen = tab.id === name + "-button";
    tab.classList.toggle("selected", chosen);
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    one("#" + tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  const fresh = page.parts.filter((part) => part.tab === name && !mounted.has(part.at));
  await Promise.all(fresh.map(mount));
}

function fold(heading) {
  const is = heading.classList.toggle("open");
  heading.setAttribute("aria-expanded", String(is));
  heading.nextElementSibling.hidden = !is;
}

/* ---- recorded runs -------------------------------------------------------------------------------------------- */

const drafter = one("#drafter"),
  PLAYER = page.parts.find(({ script }) => script === "race/player").at;
let wanted = 0;

const say = (value, wrong = false, share = 1) =>
    update(+one("#notice [data-at]").dataset.at, { value, wrong, share }),
  prompt = one("#prompt textarea"),
  kindOf = (prompt) => Object.keys(page.runs).find((kind) => page.runs[kind].prompt === prompt);

/* The file of a kind by that drafter; the usual one's where it has none. */
function fileOf(kind, name) {
  const found = page.runs[kind].files;
  return found[name] || Object.values(found)[0];
}

async function play(kind, name) {
  const mine = ++wanted,
    [usual] = Object.keys(page.runs[kind].files),
    named = page.drafters,
    another = !page.runs[kind].files[name] && name !== Object.keys(page.drafters)[0];
  try {
    const value = await load(fileOf(kind, name));
    if (mine !== wanted) return;
    one(".sd-player").load(value); // from its beginning, even if it is on show
    say(
      another
        ? W.other_trace.replace("{drafter}", named[name]).replace("{shown}", named[usual])
        : "",
    );
  } catch {
    say(W.missing, true);
  }
}

/* What the bar above the player says of the run on show. `log` is its first two lines, or all of it. */
function show(log) {
  const [header, started] = log.split("\n", 2).map((line) => JSON.parse(line)),
    told = { ...started.params, ...started, prompt: header.prompt };
  const kind = kindOf(told.prompt),
    names = Object.keys(kind ? page.runs[kind].files : {}),
    shown = names.includes(told.drafter) ? names : [...names, told.drafter];
  prompt.value = told.prompt;
  engine.offer(told, shown);
  const detail = page.order.map((name) => told[name] ?? "");
  window.dispatchEvent(new CustomEvent("sd-settings", { detail }));
  name(kind, told.drafter);
}

/* The address names a recorded run, unless it is the first screen's; any other run it cannot. */
function name(kind, drafter) {
  const url = new URL(location.href),
    named = kind && page.runs[kind].files[drafter] && fileOf(kind, drafter) !== page.begin,
    told = named ? { prompt: page.runs[kind].prompt, drafter } : { prompt: "", drafter: "" };
  for (const [key, value] of Object.entries(told))
    value ? url.searchParams.set(key, value) : url.searchParams.delete(key);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

const engine = createOwnRuns({
  page,
  root: ROOT,
  say,
  write: (value) => update(PLAYER, { value }),
  over: () => update(PLAYER, { ended: Date.now() }),
});

/* ---- links ---------------------------------------------------------------------------------------------------- */

function warn(text) {
  const line = one("#link-notice .sd-notice");
  line.textContent = text;
  line.classList.add("sd-wrong");
}

/* The recorded run that the address asks for, as its file. */
function linked(asked) {
  const prompt = asked.get("prompt"),
    kind = kindOf(prompt ?? page.runs[page.begin.split("/")[1]].prompt),
    name = asked.get("drafter");
  if (!kind || (name && !page.runs[kind].files[name])) {
    if (!location.hash.startsWith("#run=")) warn(W.not_here);
    return page.begin;
  }
  return fileOf(kind, name);
}

/* ---- the beginning --------------------------------------------------------------------------------------------- */

async function begin() {
  const asked = new URLSearchParams(location.search),
    theme = asked.get("__theme"),
    night = matchMedia("(prefers-color-scheme: dark)").matches;
  document.body.classList.toggle("dark", theme ? theme === "dark" : night);
  if (location.protocol === "file:") history.pushState = history.replaceState = () => {}; // forbidden there
  const around = page.parts.filter((part) => !part.tab && part.script !== "shared/keep");
  await Promise.all(around.map(mount));
  const value = await load(linked(asked)).catch(() => load(page.begin));
  page.parts.find((part) => part.at === PLAYER).props.value = value;
  await openTab("race");
  await mount(page.parts.find((part) => part.script === "shared/keep"));
  const [, kept] = handler()();
  if (kept.value) update(PLAYER, kept);
  if (!location.hash.startsWith("#run=")) show(kept.value || value);
  const tab = asked.get("tab");
  if (tab && one(`#${CSS.escape(tab)}-button`)) openTab(tab);
  else if (tab) warn(W.no_tab);
}

document.addEventListener("click", (event) => {
  const node = /** @type {any} */ (event.target),
    tab = node.closest(".sd-tabs [role=tab]"),
    heading = node.closest(".label-wrap"),
    pill = node.closest("[data-kind]");
  if (tab) openTab(tab.id.replace(/-button$/, ""));
  if (heading) fold(heading);
  if (pill) play(pill.dataset.kind, drafter.value);
  if (node.closest("#run")) {
    wanted++; // a recorded run that is still on its way comes too late
    engine.press();
  }
});
drafter.addEventListener("change", () => {
  const kind = kindOf(prompt.value);
  if (kind && page.runs[kind].files[drafter.value]) play(kind, drafter.value);
});
begin();
