/* The engine of a page without a server, in a worker of its own. It is told `{ run, number, files, base }` or
 * `{ stop }`, a worker that shares its memory `{ help }`. It answers with `{ fetched, of }`, of so many bytes,
 * `{ lines }`, `{ done }`, or `{ wrong }`, the key of a sentence, with its values. */

import { DraftModel, NoDrafter, PromptLookup } from "./drafters.js";
import { generate, interleave } from "./engine.js";
import { serveAsThread, loadLayers, Model } from "./model.js";
import { Tokenizer } from "./text.js";

const SLICE = 40, // ms of work before messages are read
  WARM = 900, // ms: a browser compiles what runs often, and only then is it fast
  MOST = 4, // threads
  END = 0; // the token that begins and ends a text of the built-in models

// The smallest module with a product of bytes: (func (result v128) (i32x4.relaxed_dot_i8x16_i7x16_add_s …)).
const RELAXED =
  "AGFzbQEAAAABBQFgAAF7AwIBAAo9ATsA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/ZMCCw==";
const isRelaxed = () =>
  WebAssembly.validate(Uint8Array.from(atob(RELAXED), (one) => one.charCodeAt(0)));

/** @type {Record<string, Promise<any> | undefined>} what has been fetched, by family */
const loading = {};
let wanted = 0; // the last run that was asked for; 0 after Stop
const post = (message) => self.postMessage(message);

const threads = () =>
  self.crossOriginIsolated ? Math.min(MOST, navigator.hardwareConcurrency || 1) : 1;

/* A worker of this script that shares the layers' memory. */
const help = (told) =>
  new Promise((ready, failed) => {
    const worker = new Worker(self.location.href, { type: "module" });
    worker.onmessage = ready;
    worker.onerror = failed;
    worker.postMessage({ help: told });
  });

/* All that a run needs; on the way it tells how many bytes have arrived. A file of the wrong size is refused. */
async function load(parts, base) {
  const { tokenizer, target, draft } = parts,
    kind = parts.relaxed && isRelaxed() ? "relaxed" : "layers",
    count = threads(),
    binary = parts[count > 1 ? kind + "_threads" : kind],
    files = [binary, tokenizer, target, draft].filter(Boolean),
    of = files.reduce((sum, one) => sum + one.size, 0);
  let fetched = 0;
  const file = async ({ path, size }) => {
    const answer = await fetch(new URL(path, base)),
      whole = new Uint8Array(size),
      reader = answer.ok && answer.body ? answer.body.getReader() : null;
    let at = 0;
    for (;;) {
      const { value, done } = reader ? await reader.read() : { value: null, done: true };
      if (done || !value) break;
      if (at + value.length > size) throw new RangeError(path + " is another file");
      whole.set(value, at);
      at += value.length;
      fetched += value.length;
      post({ fetched, of });
    }
    if (at !== size) throw new RangeError(path + " did not arrive");
    return whole.buffer;
  };
  const [module, text, ...models] = await Promise.all(files.map(file)),
    compiled = await loadLayers(module, count, help),
    [own, other = null] = models.map((one) => new Model(compiled, one));
  return {
    target: own,
    draft: other,
    tokenizer: new Tokenizer(JSON.parse(new TextDecoder().decode(text))),
  };
}

/* Run passes of 1 to K + 1 rows for WARM ms, so that the browser compiles them. */
function warm({ target, draft }, k, drafts) {
  const cache = target.newCache(64),
    other = drafts && draft.newCache(64),
    end = performance.now() + WARM;
  for (let rows = 1; performance.now() < end; rows = (rows % (k + 1)) + 1) {
    target.forward(Array(rows).fill(END), cache, rows);
    if (other) draft.forward([END], other);
    cache.keep(0);
    if (other) other.keep(0);
  }
  cache.release();
  if (other) other.release();
}

const DRAFTERS = {
  draft_model: ({ draft }, capacity) => new DraftModel(draft, capacity),
  prompt_lookup: (_, __, around) => new PromptLookup(around),
  none: () => new NoDrafter(),
};

const facts = ({ head }) => ({
  parameters: head.parameters,
  layers: head.layers.length,
  hidden_size: head.width,
  weights: head.stored,
});

function header(prompt, family, { target, draft }) {
  const run = [...crypto.getRandomValues(new Uint8Array(6))].map((one) =>
      one.toString(16).padStart(2, "0"),
    ),
    { hardwareConcurrency: cores } = navigator,
    about = { family, target: facts(target), ...(draft ? { draft_model: facts(draft) } : {}) },
    { chat } = target.head,
    told = chat ? { chat: [chat.before, chat.after] } : {};
  return {
    ...{ event: "header", run: run.join(""), source: "live", prompt, schema: 1 },
    lanes: ["speculative", "plain"],
    models: {
      ...{ ...about, ...told, dtype: about.target.weights, device: "browser" },
      ...{ threads: target.layers.threads, kernels: "wasm" },
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

/** Both lanes, their lines in slices; between two of them Stop is heard.
 * @param {number} mine @param {any} asked */
async function run(mine, { prompt, family, drafter, k, params }, { files, base }) {
  const models = await (loading[family] ||= load(files, base)).catch((error) => {
    delete loading[family];
    throw { wrong: error instanceof WebAssembly.CompileError ? "simd" : "missing", error };
  });
  const { target, tokenizer } = models,
    { chat, ends = [END] } = target.head,
    tokens = tokenizer.prompt(prompt, chat, END),
    around = chat && [chat.before, chat.after].map((text) => tokenizer.encode(text).length);
  if (tokens.length >= target.context)
    throw { wrong: "long", n: tokens.length, limit: target.context - 1 };
  if (wanted !== mine) return;
  const most = drafter === "none" ? 0 : k,
    shared = { target, prompt: tokens, params, ends },
    read = { bytes: (one) => tokenizer.bytes(one), piece: (one) => tokenizer.piece(one) };
  warm(models, most, drafter === "draft_model");
  const own = DRAFTERS[drafter](
      models,
      Math.min(target.context, tokens.length + params.max_tokens) + k,
      around,
    ),
    lanes = {
      speculative: generate({ ...shared, ...read, lane: "speculative", k: most, drafter: own }),
      plain: generate({ ...shared, ...read, lane: "plain", k: 0, drafter: new NoDrafter() }),
    },
    events = interleave(lanes);
  let lines = JSON.stringify(header(prompt, family, models)) + "\n",
    last = performance.now();
  for (const event of events) {
    lines += JSON.stringify(event) + "\n";
    if (performance.now() - last < SLICE) continue;
    post({ lines });
    lines = "";
    await nextTurn();
    if (wanted !== mine) break;
    last = performance.now();
  }
  for (const lane of Object.values(lanes)) lane.return(undefined);
  if (own.release) own.release();
  post({ lines });
}

self.onmessage = async ({ data }) => {
  if (data.help) return serveAsThread(data.help, () => post("ready"));
  if (data.stop) wanted = 0;
  if (!data.run) return;
  const mine = (wanted = data.number);
  try {
    await run(mine, data.run, data);
    post({ done: true });
  } catch (/** @type {any} */ error) {
    const { error: cause = error, ...told } = error.wrong ? error : { wrong: "broken" };
    if (cause !== error || !error.wrong) console.warn(cause);
    post(told);
  }
};
