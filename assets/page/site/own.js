// @ts-check
/* A prompt of the visitor's own on a page of files: the engine runs in a worker of this browser. */

// The smallest module with a register of 128 bits: (func (result v128) (v128.const 0)).
const SIMD = "AGFzbQEAAAABBQFgAAF7AwIBAAoWARQA/QwAAAAAAAAAAAAAAAAAAAAACw==";
const computes = () =>
  typeof Worker === "function" &&
  typeof WebAssembly === "object" &&
  WebAssembly.validate(Uint8Array.from(atob(SIMD), (one) => one.charCodeAt(0)));

const fill = (text, told) => text.replace(/\{(\w+)\}/g, (_, name) => told[name]);

/** @param {{ page: any, root: URL, say: (text: string, wrong?: boolean, share?: number) => void,
 *   write: (log: string) => void, over: () => void }} host
 * `write` is given the log as it grows, `over` is called once at the end of a run, however it ends.
 * Of what this gives, `press` is what the button does, and `offer` fills in the settings. */
function own({ page, root, say, write, over }) {
  const W = page.words.own,
    button = /** @type {HTMLElement} */ (document.getElementById("run")),
    /** @type {any} */ field = (name) => document.querySelector(`#settings [name=${name}]`),
    /** @type {HTMLTextAreaElement} */ prompt = /** @type {any} */ (
      document.querySelector("#prompt textarea")
    );
  /** @type {Worker | null} */
  let worker = null;
  let number = 0,
    log = "",
    running = false,
    stopped = false;

  /* The settings of the run on show, and who may draft: those that are recorded, and those that run here. */
  function offer(told, recorded) {
    const drafters = field("drafter"),
      group = (label, names) => {
        const made = document.createElement("optgroup");
        made.label = label;
        made.append(...names.map((name) => new Option(page.drafters[name] || name, name)));
        return made;
      },
      others = page.engine.drafters.filter((name) => !recorded.includes(name));
    drafters.replaceChildren(group(page.words.recorded, recorded), group(page.words.here, others));
    drafters.value = told.drafter;
    for (const name of page.engine.numbers) {
      const { min, max } = field(name);
      if (name in told) field(name).value = Math.min(max, Math.max(min, told[name]));
    }
  }

  /* What is asked for, or one sentence that says what to change. */
  function asked() {
    const drafter = field("drafter").value,
      told = /** @type {any} */ ({});
    if (!prompt.value.trim()) return W.empty;
    if (!page.engine.drafters.includes(drafter))
      return fill(W.drafter, {
        names: page.engine.drafters.map((one) => page.drafters[one]).join(", "),
      });
    for (const name of page.engine.numbers) {
      const { value, min, max, step } = field(name),
        number = Number(value);
      if (
        value.trim() === "" ||
        !(number >= min && number <= max) ||
        (step === "1" && !Number.isInteger(number))
      )
        return fill(W.range, {
          name: field(name).labels[0].textContent.trim(),
          low: min,
          high: max,
        });
      told[name] = number;
    }
    const { k, ...params } = told,
      stop = field("stop").value.split("\n").filter(Boolean);
    if (stop.length > 4 || stop.some((one) => one.length > 64)) return W.stop;
    const usual = { top_k: 0, top_p: 1, ignore_end: false };
    return { prompt: prompt.value, drafter, k, params: { ...usual, ...params, stop } };
  }

  function press() {
    if (running) return stop();
    const wanted = asked();
    if (typeof wanted === "string") return say(wanted, true);
    if (location.protocol === "file:") return say(W.disk, true);
    if (!computes()) return say(W.simd, true);
    if (!worker) {
      worker = new Worker(new URL("assets/engine.js", root));
      worker.onmessage = heard;
      worker.onerror = () => heard({ data: { wrong: "missing" } });
      worker.postMessage({ files: page.engine.files, base: String(root) });
    }
    log = "";
    run(true);
    say(W.begin);
    worker.postMessage({ run: wanted, number: ++number });
  }

  function heard({ data }) {
    if (data.of) {
      const [done, total] = [data.fetched, data.of].map((one) => (one / 1e6).toFixed(0));
      say(
        data.fetched < data.of ? fill(W.fetching, { done, total }) : W.begin,
        false,
        data.fetched / data.of,
      );
    }
    if (data.lines) {
      if (!log) say("");
      write((log += data.lines));
    }
    if (data.done && !stopped) say(W.done);
    if (data.wrong) say(fill(W[data.wrong] || W.broken, data), true);
    if (data.wrong === "missing" && worker) forget();
    if (data.done || data.wrong) end();
  }

  function run(is) {
    running = is;
    stopped = false;
    button.textContent = is ? page.words.stop : page.words.run;
  }

  function end() {
    if (!running) return;
    run(false);
    over();
  }

  function forget() {
    if (worker) worker.terminate();
    worker = null;
  }

  /* What was written stays. */
  function stop() {
    stopped = true;
    if (worker) worker.postMessage({ stop: true });
    say(W.stopped);
  }

  return { offer, press };
}

module.exports = { own };
