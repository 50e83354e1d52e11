/* Runs a visitor's prompt in this browser, in a worker: checks the request, fetches the models at the first run, and
 * extends the log. The Gradio page and the site without a server share it. */

import { fillText, joinSentences } from "#page/race/text.js";

// A module that is valid only with SIMD: (func (result v128) (v128.const 0)).
const SIMD = "AGFzbQEAAAABBQFgAAF7AwIBAAoWARQA/QwAAAAAAAAAAAAAAAAAAAAACw==";
const canCompute = () =>
  typeof Worker === "function" &&
  typeof WebAssembly === "object" &&
  WebAssembly.validate(Uint8Array.from(atob(SIMD), (char) => char.charCodeAt(0)));

const CHOSEN_BY_PAGE = "default", // means the family's first drafter: only its costs are measured
  TIMES = "specdec.times", // the measured times of passes in `localStorage`
  DEEPER = 3, // the K that is offered after a run with K = 1
  ASK_ABOVE_BYTES = 50e6, // a larger download starts only after a second press on Run
  sumBytes = (/** @type {Record<string, { size: number }>} */ files) =>
    Object.values(files).reduce((sum, { size }) => sum + size, 0);

/** @typedef {{ numbers: Record<string, { low: number, high: number, step: number, label: string }>,
 *   drafters: Record<string, Record<string, string>>, version: string,
 *   acceptance: Record<string, Record<string, Record<string, number[]>>> }} Offer what `settings_there` returns in
 * `ui/browser.py`; `drafters` maps family -> drafter -> label, and the usual drafter comes first */

function readTimes(/** @type {string} */ version) {
  try {
    const stored = JSON.parse(localStorage.getItem(TIMES) || "{}");
    return stored.version === version ? stored.times : {};
  } catch {
    return {}; // it is forbidden
  }
}

function storeTimes(/** @type {string} */ version, /** @type {any} */ times) {
  try {
    localStorage.setItem(TIMES, JSON.stringify({ version, times: { ...readTimes(version), ...times } }));
  } catch {
    /* it is full or forbidden */
  }
}

/** Returns the request for the worker, or a sentence that says what to change.
 * @param {any} texts @param {Record<string, any>} values by the names of settings
 * @param {Offer} offer @returns {any} */
export function checkRequest(texts, values, { numbers, drafters, acceptance }) {
  const parsedNumbers = /** @type {any} */ ({}),
    { prompt } = values,
    family = Object.hasOwn(drafters, values.target) ? values.target : Object.keys(drafters)[0],
    drafter = values.drafter === CHOSEN_BY_PAGE ? Object.keys(drafters[family])[0] : values.drafter;
  if (!String(prompt).trim()) return texts.empty;
  if (!Object.hasOwn(drafters[family], drafter))
    return fillText(texts.drafter, { names: Object.values(drafters[family]).join(", ") });
  for (const [name, { low, high, step, label }] of Object.entries(numbers)) {
    const text = String(values[name] ?? "").trim(),
      number = Number(text);
    const isValid = number >= low && number <= high && (step !== 1 || Number.isInteger(number));
    if (text === "" || !isValid) return fillText(texts.range, { name: label, low, high });
    parsedNumbers[name] = number;
  }
  const { k, ...params } = parsedNumbers, // 0 lets the worker choose K
    stop = String(values.stop || "")
      .split("\n")
      .filter(Boolean)
      .map((line) => line.replace(/\\([\\n])/g, (_, c) => (c == "n" ? "\n" : c)));
  if (stop.length > 4 || stop.some((text) => text.length > 64)) return texts.stop;
  return {
    prompt,
    family,
    drafter,
    k,
    acceptance: acceptance[family][drafter],
    params: { ignore_end: false, ...params, stop },
  };
}

/** @param {{ texts: any, offer: Offer, base: URL, files: (family: string) => Promise<any>,
 *   showNotice: (text: string, wrong?: boolean, share?: number, press?: Press) => void, write: (log: string) => void,
 *   onRunning: (running: boolean) => void, runAgain: (k: number) => void }} host
 * `base` is the address of the engine's files; `files` returns the files of a family; `write` receives the growing log;
 * `onRunning` is called at the beginning and end of a run; `runAgain` sets K and runs. */
export function createRunner({ texts, offer, base, files, showNotice, write, onRunning, runAgain }) {
  /** @type {Worker | null} */
  let worker = null;
  /** @type {Record<string, any>} */
  const filesOf = {},
    wasWarned = /** @type {Record<string, boolean>} */ ({});
  let runNumber = 0,
    family = "",
    log = "",
    chosenDepth = 0, // by the engine, if K was left to it
    isRunning = false,
    stopped = false;

  /** @param {any} request what `checkRequest` returned */
  async function start(request) {
    if (typeof request === "string") return showNotice(request, true);
    if (location.protocol === "file:") return showNotice(texts.disk, true);
    if (!canCompute()) return showNotice(texts.simd, true);
    log = "";
    chosenDepth = 0;
    stopped = false;
    setRunning(true);
    showNotice(texts.begin);
    const myNumber = ++runNumber;
    family = request.family;
    try {
      const familyFiles = (filesOf[family] ||= await files(family)),
        size = sumBytes(familyFiles);
      if (myNumber !== runNumber || !isRunning) return;
      if (size > ASK_ABOVE_BYTES && !wasWarned[family]) {
        wasWarned[family] = true;
        showNotice(fillText(texts.agree, { size: (size / 1e6).toFixed(0) }));
        return setRunning(false);
      }
      if (!worker) {
        worker = new Worker(new URL("worker.js", base), { type: "module" });
        worker.onmessage = takeMessage;
        worker.onerror = () => takeMessage({ data: { wrong: log ? "broken" : "missing" } });
      }
      const times = readTimes(offer.version);
      worker.postMessage({ run: request, number: runNumber, files: familyFiles, base: String(base), times });
    } catch {
      if (myNumber === runNumber && isRunning) takeMessage({ data: { wrong: "missing" } });
    }
  }

  function takeMessage(/** @type {{ data: any }} */ { data }) {
    if (data.of && !stopped) {
      const [done, total] = [data.fetched, data.of].map((bytes) => (bytes / 1e6).toFixed(0));
      const isComplete = data.fetched >= data.of;
      showNotice(isComplete ? texts.begin : fillText(texts.fetching, { done, total }), false, data.fetched / data.of);
    }
    if (data.choice) {
      chosenDepth = data.choice.k;
      storeTimes(offer.version, data.times);
    }
    if (data.lines) {
      if (!log) showNotice("");
      write((log += data.lines));
    }
    if (data.done || data.wrong) setRunning(false);
    if (data.done && !stopped) explainEnd();
    if (data.wrong) showNotice(fillText(texts[data.wrong] || texts.broken, data), true);
    if (data.wrong === "missing" || data.wrong === "broken") endWorker();
  }

  /* Says who computed, and which K was chosen. Of K = 1, says why, and offers a deeper draft. */
  function explainEnd() {
    const chosen = chosenDepth ? fillText(texts.chosen, { k: chosenDepth }) : "";
    if (chosenDepth !== 1) return showNotice(joinSentences([texts.done[family], chosen]));
    showNotice(texts.one, false, 1, { label: fillText(texts.try, { k: DEEPER }), act: () => runAgain(DEEPER) });
  }

  /** @param {boolean} isNow */
  function setRunning(isNow) {
    if (isNow === isRunning) return;
    isRunning = isNow;
    onRunning(isNow);
  }

  function endWorker() {
    if (worker) worker.terminate();
    worker = null;
  }

  /* Stops a run and keeps the lines that it wrote. If there are none yet, ends the worker, so that none come later. */
  function stop() {
    stopped = true;
    if (log && worker) worker.postMessage({ stop: true });
    else {
      endWorker();
      setRunning(false);
    }
    showNotice(texts.stopped);
  }

  return { start, stop, isRunning: () => isRunning };
}
