/* Runs the engine in a web worker, without a server. The worker receives `{ run, number, files, base, times }` and
 * `{ stop }`, or `{ help }` if it is only a thread of another worker. It posts `{ fetched, of }` in bytes, `{ lines }`
 * of the log, `{ done }`, or `{ wrong }`, the key of an error message. If a run leaves K open (0), the worker also
 * posts its `{ choice, times }`, and later runs refine these times if they bring them. */

import { chooseDepth, createCosts, ROWS, warmUp } from "./costs.js";
import { DraftModel, NoDrafter, PromptLookup } from "./drafters.js";
import { generate, interleave } from "./engine.js";
import { serveAsThread, loadLayers, Model } from "./model.js";
import { Tokenizer } from "./text.js";

const SLICE_MS = 40, // ms of work before the worker receives messages
  MAX_THREADS = 4,
  END_TOKEN = 0; // the token that begins and ends a text of the built-in models

// A module that is valid only with relaxed SIMD: (func (result v128) (i32x4.relaxed_dot_i8x16_i7x16_add_s …)).
const RELAXED =
  "AGFzbQEAAAABBQFgAAF7AwIBAAo9ATsA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/ZMCCw==";
const hasRelaxed = () => WebAssembly.validate(Uint8Array.from(atob(RELAXED), (char) => char.charCodeAt(0)));

/** @type {Record<string, Promise<any> | undefined>} models that are loading or loaded, by family */
const loading = {};
let wantedRun = 0; // the number of the last requested run; 0 after Stop
const post = (/** @type {any} */ message) => self.postMessage(message);

const countThreads = () => (self.crossOriginIsolated ? Math.min(MAX_THREADS, navigator.hardwareConcurrency || 1) : 1);

/* Starts this script in another worker, as one more thread on the same WebAssembly memory. */
const startThread = (/** @type {any} */ threadDetails) =>
  new Promise((ready, failed) => {
    const worker = new Worker(self.location.href, { type: "module" });
    worker.onmessage = ready;
    worker.onerror = failed;
    worker.postMessage({ help: threadDetails });
  });

/* Fetches the files of a family and loads its models. Throws if a size is wrong. */
async function load(/** @type {any} */ familyFiles, /** @type {any} */ base) {
  const { tokenizer, target, draft } = familyFiles,
    kind = familyFiles.relaxed && hasRelaxed() ? "relaxed" : "layers",
    threadCount = countThreads(),
    binary = familyFiles[threadCount > 1 ? kind + "_threads" : kind],
    files = [binary, tokenizer, target, draft].filter(Boolean),
    totalBytes = files.reduce((sum, { size }) => sum + size, 0);
  let fetched = 0;
  const fetchFile = async (/** @type {any} */ { path, size }) => {
    const answer = await fetch(new URL(path, base)),
      content = new Uint8Array(size),
      reader = answer.ok && answer.body ? answer.body.getReader() : null;
    let received = 0;
    for (;;) {
      const { value, done } = reader ? await reader.read() : { value: null, done: true };
      if (done || !value) break;
      if (received + value.length > size) throw new RangeError(path + " is longer than expected");
      content.set(value, received);
      received += value.length;
      fetched += value.length;
      post({ fetched, of: totalBytes });
    }
    if (received !== size) throw new RangeError(path + " did not arrive completely");
    return content.buffer;
  };
  const [module, tokenizerFile, ...modelFiles] = await Promise.all(files.map(fetchFile)),
    wasm = await loadLayers(module, threadCount, startThread),
    [targetModel, draftModel = null] = modelFiles.map((file) => new Model(wasm, file));
  return {
    target: targetModel,
    draft: draftModel,
    tokenizer: new Tokenizer(JSON.parse(new TextDecoder().decode(tokenizerFile))),
  };
}

/** @type {Record<string, (...given: any[]) => any>} */
const DRAFTERS = {
  draft_model: (/** @type {any} */ { draft }, /** @type {number} */ capacity) => new DraftModel(draft, capacity),
  /** @param {any} _ @param {any} __ @param {any} templateLengths */
  prompt_lookup: (_, __, templateLengths) => new PromptLookup(templateLengths),
  none: () => new NoDrafter(),
};

const describeModel = (/** @type {any} */ { head }) => ({
  parameters: head.parameters,
  layers: head.layers.length,
  hidden_size: head.width,
  weights: head.stored,
});

/** @param {string} prompt @param {string} family @param {any} models */
function createHeader(prompt, family, { target, draft }) {
  const runId = [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")),
    { hardwareConcurrency: cores } = navigator,
    models = {
      family,
      target: describeModel(target),
      ...(draft ? { draft_model: describeModel(draft) } : {}),
    },
    { chat } = target.head,
    chatDetails = chat ? { chat: [chat.before, chat.after] } : {};
  return {
    ...{ event: "header", run: runId.join(""), source: "live", prompt, schema: 2 },
    lanes: ["speculative", "plain"],
    models: {
      ...{ ...models, ...chatDetails, dtype: models.target.weights, device: "browser" },
      ...{ threads: target.wasm.threads, kernels: "wasm" },
    },
    machine: { cpu: navigator.userAgent.slice(0, 200), cores },
    created: new Date().toISOString().slice(0, 19) + "+00:00",
  };
}

const receiveMessages = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(0);
  });

/** Runs both lanes and posts their lines every `SLICE_MS`. After each post, the worker can receive Stop.
 * @param {number} runNumber @param {any} request @param {any} message */
async function run(runNumber, { prompt, family, drafter, k, params, acceptance }, { files, base, times: known = {} }) {
  const models = await (loading[family] ||= load(files, base)).catch((error) => {
    delete loading[family];
    throw { wrong: error instanceof WebAssembly.CompileError ? "simd" : "missing", error };
  });
  const { target, tokenizer } = models,
    { chat, ends = [END_TOKEN] } = target.head,
    tokens = tokenizer.prompt(prompt, chat, END_TOKEN),
    templateLengths = chat && [chat.before, chat.after].map((text) => tokenizer.encode(text).length);
  if (tokens.length >= target.context) throw { wrong: "long", n: tokens.length, limit: target.context - 1 };
  if (wantedRun !== runNumber) return;
  const createDrafter = (/** @type {number} */ capacity) => DRAFTERS[drafter](models, capacity, templateLengths),
    key = [family, drafter, target.wasm.threads, params.temperature ? "sampled" : "greedy"].join(" "),
    isOpen = drafter !== "none" && !k;
  let draftLength = drafter === "none" ? 0 : k;
  const rows = isOpen ? ROWS : Array.from({ length: draftLength + 1 }, (_, i) => i + 1),
    times = warmUp(target, createDrafter, rows, params, isOpen ? known[key] : undefined);
  if (isOpen) {
    const choice = chooseDepth(acceptance[params.temperature ? "overlap" : "agreement"], createCosts(times));
    post({ choice, times: { [key]: times } });
    draftLength = choice.k;
  }
  const shared = { target, prompt: tokens, params, ends },
    decoding = {
      bytes: (/** @type {number} */ token) => tokenizer.bytes(token),
      piece: (/** @type {number} */ token) => tokenizer.piece(token),
    };
  const capacity = Math.min(target.context, tokens.length + params.max_tokens) + draftLength,
    speculativeDrafter = createDrafter(capacity),
    lanes = {
      speculative: generate({
        ...shared,
        ...decoding,
        lane: "speculative",
        k: draftLength,
        drafter: speculativeDrafter,
      }),
      plain: generate({ ...shared, ...decoding, lane: "plain", k: 0, drafter: new NoDrafter() }),
    },
    events = interleave(lanes);
  let lines = JSON.stringify(createHeader(prompt, family, models)) + "\n",
    sliceStart = performance.now();
  for (const event of events) {
    lines += JSON.stringify(event) + "\n";
    if (performance.now() - sliceStart < SLICE_MS) continue;
    post({ lines });
    lines = "";
    await receiveMessages();
    if (wantedRun !== runNumber) break;
    sliceStart = performance.now();
  }
  for (const lane of Object.values(lanes)) lane.return(undefined);
  if (speculativeDrafter.release) speculativeDrafter.release();
  post({ lines });
}

self.onmessage = async ({ data }) => {
  if (data.help) return serveAsThread(data.help, () => post("ready"));
  if (data.stop) wantedRun = 0;
  if (!data.run) return;
  const runNumber = (wantedRun = data.number);
  try {
    await run(runNumber, data.run, data);
    post({ done: true });
  } catch (/** @type {any} */ error) {
    const { error: cause = error, ...details } = error.wrong ? error : { wrong: "broken" };
    if (cause !== error || !error.wrong) console.warn(cause);
    post(details);
  }
};
