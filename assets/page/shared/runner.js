/* A prompt of the visitor's own, computed in this browser by a worker: what is asked is checked, models are fetched at
 * the first run, and the log grows. The Gradio page and the page of files share it. */

// The smallest module with a register of 128 bits: (func (result v128) (v128.const 0)).
const SIMD = "AGFzbQEAAAABBQFgAAF7AwIBAAoWARQA/QwAAAAAAAAAAAAAAAAAAAAACw==";
const computes = () =>
  typeof Worker === "function" &&
  typeof WebAssembly === "object" &&
  WebAssembly.validate(Uint8Array.from(atob(SIMD), (one) => one.charCodeAt(0)));

const OPEN = "default", // in a drafter's place, and 0 in that of K: here the usual ones, for no costs are measured
  USUAL_K = 4,
  MUCH = 50e6, // bytes that are fetched only after a second press
  bytes = (files) => Object.values(files).reduce((sum, { size }) => sum + size, 0);

const fill = (text, told) => text.replace(/\{(\w+)\}/g, (_, name) => told[name]);

/** What is asked for, or one sentence that says what to change.
 * @param {any} W @param {Record<string, any>} values by the names of settings
 * @param {Record<string, { low: number, high: number, step: number, label: string }>} numbers
 * @param {Record<string, Record<string, string>>} drafters by name, of every family here, the usual one first
 * @returns {any} */
export function checkRequest(W, values, numbers, drafters) {
  const told = /** @type {any} */ ({}),
    { prompt } = values,
    family = Object.hasOwn(drafters, values.family) ? values.family : Object.keys(drafters)[0],
    drafter = values.drafter === OPEN ? Object.keys(drafters[family])[0] : values.drafter;
  if (!String(prompt).trim()) return W.empty;
  if (!Object.hasOwn(drafters[family], drafter))
    return fill(W.drafter, { names: Object.values(drafters[family]).join(", ") });
  for (const [name, { low, high, step, label }] of Object.entries(numbers)) {
    const text = String(values[name] ?? "").trim(),
      number = Number(text);
    const inside = number >= low && number <= high && (step !== 1 || Number.isInteger(number));
    if (text === "" || !inside) return fill(W.range, { name: label, low, high });
    told[name] = number;
  }
  const { k, ...params } = told,
    stop = String(values.stop || "")
      .split("\n")
      .filter(Boolean)
      .map((one) => one.replaceAll("\\n", "\n"));
  if (stop.length > 4 || stop.some((one) => one.length > 64)) return W.stop;
  return {
    prompt,
    family,
    drafter,
    k: k || USUAL_K,
    params: { ignore_end: false, ...params, stop },
  };
}

/** @param {{ W: any, base: URL, files: (family: string) => Promise<any>,
 *   say: (text: string, wrong?: boolean, share?: number) => void, write: (log: string) => void,
 *   running: (is: boolean) => void }} host
 * `base` is where the engine's files are, `files` tells which a family has; `write` is given the log as it grows;
 * `running` is called at the beginning and once at the end of a run, however it ends. */
export function createRunner({ W, base, files, say, write, running }) {
  /** @type {Worker | null} */
  let worker = null;
  /** @type {Record<string, any>} */
  const listed = {},
    agreed = {};
  let number = 0,
    family = "",
    log = "",
    runs = false,
    stopped = false;

  /** @param {any} wanted of `checked` */
  async function start(wanted) {
    if (typeof wanted === "string") return say(wanted, true);
    if (location.protocol === "file:") return say(W.disk, true);
    if (!computes()) return say(W.simd, true);
    log = "";
    stopped = false;
    run(true);
    say(W.begin);
    const mine = ++number;
    family = wanted.family;
    try {
      const told = (listed[family] ||= await files(family)),
        size = bytes(told);
      if (mine !== number || !runs) return;
      if (size > MUCH && !agreed[family]) {
        agreed[family] = true;
        say(fill(W.agree, { size: (size / 1e6).toFixed(0) }));
        return run(false);
      }
      if (!worker) {
        worker = new Worker(new URL("worker.js", base), { type: "module" });
        worker.onmessage = heard;
        worker.onerror = () => heard({ data: { wrong: log ? "broken" : "missing" } });
      }
      worker.postMessage({ run: wanted, number, files: told, base: String(base) });
    } catch {
      if (mine === number && runs) heard({ data: { wrong: "missing" } });
    }
  }

  function heard({ data }) {
    if (data.of && !stopped) {
      const [done, total] = [data.fetched, data.of].map((one) => (one / 1e6).toFixed(0));
      const whole = data.fetched >= data.of;
      say(whole ? W.begin : fill(W.fetching, { done, total }), false, data.fetched / data.of);
    }
    if (data.lines) {
      if (!log) say("");
      write((log += data.lines));
    }
    if (data.done && !stopped) say(W.done[family]);
    if (data.wrong) say(fill(W[data.wrong] || W.broken, data), true);
    if (data.wrong === "missing" || data.wrong === "broken") forget();
    if (data.done || data.wrong) run(false);
  }

  /** @param {boolean} is */
  function run(is) {
    if (is === runs) return;
    runs = is;
    running(is);
  }

  function forget() {
    if (worker) worker.terminate();
    worker = null;
  }

  /* What was written stays. Before anything was, nobody waits for what is still on its way. */
  function stop() {
    stopped = true;
    if (log && worker) worker.postMessage({ stop: true });
    else {
      forget();
      run(false);
    }
    say(W.stopped);
  }

  return { start, stop, runs: () => runs };
}
