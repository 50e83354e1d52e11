/* Runs the engine in a worker, without a server. It takes the messages `{ run, number, files, base }` and `{ stop }`; a
 * worker that shares its memory takes `{ help }`. It posts `{ fetched, of }`, both in bytes, `{ lines }`, `{ done }`,
 * or `{ wrong }`, which is the key of a sentence, with the sentence's values. */

import { DraftModel, NoDrafter, PromptLookup } from "./drafters.js";
import { generate, interleave } from "./engine.js";
import { serveAsThread, loadLayers, Model } from "./model.js";
import { Tokenizer } from "./text.js";

const SLICE_MS = 40, // ms of work before messages are read
  WARM_MS = 900, // ms of warming up, because a browser compiles only code that has run often
  MAX_THREADS = 4, // threads
  END_TOKEN = 0; // the token that begins and ends a text of the built-in models

// This is the smallest module with a product of bytes: (func (result v128) (i32x4.relaxed_dot_i8x16_i7x16_add_s …)).
const RELAXED =
  "AGFzbQEAAAABBQFgAAF7AwIBAAo9ATsA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/ZMCCw==";
const hasRelaxed = () => WebAssembly.validate(Uint8Array.from(atob(RELAXED), (one) => one.charCodeAt(0)));

/** @type {Record<string, Promise<any> | undefined>} loaded models, by family */
const loading = {};
let wantedRun = 0; // the number of the last requested run; 0 after Stop
const post = (message) => self.postMessage(message);

const threads = () => (self.crossOriginIsolated ? Math.min(MAX_THREADS, navigator.hardwareConcurrency || 1) : 1);

/* Starts a worker with this script that shares the layers' memory. */
const startThread = (details) =>
  new Promise((ready, failed) => {
    const worker = new Worker(self.location.href, { type: "module" });
    worker.onmessage = ready;
    worker.onerror = failed;
    worker.postMessage({ help: details });
  });

/* Loads what a run needs and posts how many bytes have arrived. It refuses a file of the wrong size. */
async function load(parts, base) {
  const { tokenizer, target, draft } = parts,
    kind = parts.relaxed && hasRelaxed() ? "relaxed" : "layers",
    count = threads(),
    binary = parts[count > 1 ? kind + "_threads" : kind],
    files = [binary, tokenizer, target, draft].filter(Boolean),
    totalBytes = files.reduce((sum, model) => sum + model.size, 0);
  let fetched = 0;
  const file = async ({ path, size }) => {
    const answer = await fetch(new URL(path, base)),
      whole = new Uint8Array(size),
      reader = answer.ok && answer.body ? answer.body.getReader() : null;
    let received = 0;
    for (;;) {
      const { value, done } = reader ? await reader.read() : { value: null, done: true };
      if (done || !value) break;
      if (received + value.length > size) throw new RangeError(path + " is another file");
      whole.set(value, received);
      received += value.length;
      fetched += value.length;
      post({ fetched, of: totalBytes });
    }
    if (received !== size) throw new RangeError(path + " did not arrive");
    return whole.buffer;
  };
  const [module, tokenizerFile, ...models] = await Promise.all(files.map(file)),
    compiled = await loadLayers(module, count, startThread),
    [speculativeDrafter, draftModel = null] = models.map((model) => new Model(compiled, model));
  return {
    target: speculativeDrafter,
    draft: draftModel,
    tokenizer: new Tokenizer(JSON.parse(new TextDecoder().decode(tokenizerFile))),
  };
}

/* Runs passes of 1 to K + 1 rows for `WARM_MS`, so that the browser compiles them. */
function warmUp({ target, draft }, k, drafts) {
  const cache = target.newCache(64),
    draftModel = drafts && draft.newCache(64),
    end = performance.now() + WARM_MS;
  for (let rows = 1; performance.now() < end; rows = (rows % (k + 1)) + 1) {
    target.forward(Array(rows).fill(END_TOKEN), cache, rows);
    if (draftModel) draft.forward([END_TOKEN], draftModel);
    cache.keep(0);
    if (draftModel) draftModel.keep(0);
  }
  cache.release();
  if (draftModel) draftModel.release();
}

const DRAFTERS = {
  draft_model: ({ draft }, capacity) => new DraftModel(draft, capacity),
  prompt_lookup: (_, __, around) => new PromptLookup(around),
  none: () => new NoDrafter(),
};

const describeModel = ({ head }) => ({
  parameters: head.parameters,
  layers: head.layers.length,
  hidden_size: head.width,
  weights: head.stored,
});

function createHeader(prompt, family, { target, draft }) {
  const run = [...crypto.getRandomValues(new Uint8Array(6))].map((one) => one.toString(16).padStart(2, "0")),
    { hardwareConcurrency: cores } = navigator,
    about = {
      family,
      target: describeModel(target),
      ...(draft ? { draft_model: describeModel(draft) } : {}),
    },
    { chat } = target.head,
    details = chat ? { chat: [chat.before, chat.after] } : {};
  return {
    ...{ event: "header", run: run.join(""), source: "live", prompt, schema: 1 },
    lanes: ["speculative", "plain"],
    models: {
      ...{ ...about, ...details, dtype: about.target.weights, device: "browser" },
      ...{ threads: target.wasm.threads, kernels: "wasm" },
    },
    machine: { cpu: navigator.userAgent.slice(0, 200), cores },
    created: new Date().toISOString().slice(0, 19) + "+00:00",
  };
}

const nextTurn = () =>
  new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = go;
    port2.postMessage(0);
  });

/** Runs both lanes and posts their lines in slices; between two slices it can receive Stop.
 * @param {number} myNumber @param {any} request */
async function run(myNumber, { prompt, family, drafter, k, params }, { files, base }) {
  const models = await (loading[family] ||= load(files, base)).catch((error) => {
    delete loading[family];
    throw { wrong: error instanceof WebAssembly.CompileError ? "simd" : "missing", error };
  });
  const { target, tokenizer } = models,
    { chat, ends = [END_TOKEN] } = target.head,
    tokens = tokenizer.prompt(prompt, chat, END_TOKEN),
    around = chat && [chat.before, chat.after].map((text) => tokenizer.encode(text).length);
  if (tokens.length >= target.context) throw { wrong: "long", n: tokens.length, limit: target.context - 1 };
  if (wantedRun !== myNumber) return;
  const depth = drafter === "none" ? 0 : k,
    shared = { target, prompt: tokens, params, ends },
    read = { bytes: (token) => tokenizer.bytes(token), piece: (token) => tokenizer.piece(token) };
  warmUp(models, depth, drafter === "draft_model");
  const speculativeDrafter = DRAFTERS[drafter](
      models,
      Math.min(target.context, tokens.length + params.max_tokens) + k,
      around,
    ),
    lanes = {
      speculative: generate({
        ...shared,
        ...read,
        lane: "speculative",
        k: depth,
        drafter: speculativeDrafter,
      }),
      plain: generate({ ...shared, ...read, lane: "plain", k: 0, drafter: new NoDrafter() }),
    },
    events = interleave(lanes);
  let lines = JSON.stringify(createHeader(prompt, family, models)) + "\n",
    last = performance.now();
  for (const event of events) {
    lines += JSON.stringify(event) + "\n";
    if (performance.now() - last < SLICE_MS) continue;
    post({ lines });
    lines = "";
    await nextTurn();
    if (wantedRun !== myNumber) break;
    last = performance.now();
  }
  for (const lane of Object.values(lanes)) lane.return(undefined);
  if (speculativeDrafter.release) speculativeDrafter.release();
  post({ lines });
}

self.onmessage = async ({ data }) => {
  if (data.help) return serveAsThread(data.help, () => post("ready"));
  if (data.stop) wantedRun = 0;
  if (!data.run) return;
  const myNumber = (wantedRun = data.number);
  try {
    await run(myNumber, data.run, data);
    post({ done: true });
  } catch (/** @type {any} */ error) {
    const { error: cause = error, ...details } = error.wrong ? error : { wrong: "broken" };
    if (cause !== error || !error.wrong) console.warn(cause);
    post(details);
  }
};
