// @ts-check
/* The engine of a page without a server, in a worker of its own. It is told `{ files, base }` once and then
 * `{ run, number }` or `{ stop }`; it answers with `{ fetched, of }`, `{ lines }`, `{ done }`, or `{ wrong, ... }`. */

const { DraftModel, NoDrafter, PromptLookup, SuffixDrafter } = require("./drafters.js");
const { generate, interleave } = require("./engine.js");
const { layersIn, Model } = require("./model.js");
const { Tokenizer } = require("./text.js");

const SLICE = 40, // ms of work before messages are read
  WARM = 900, // ms: a browser compiles what runs often, and only then is it fast
  END = 0, // the token that begins and ends a text
  PRECISION = "int7"; // of the weights: what relaxed SIMD multiplies

// The smallest module with a product of bytes: (func (result v128) (i32x4.relaxed_dot_i8x16_i7x16_add_s …)).
const RELAXED =
  "AGFzbQEAAAABBQFgAAF7AwIBAAo9ATsA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/QwAAAAAAAAAAAAAAAAAAAAA/ZMCCw==";
const isRelaxed = () =>
  WebAssembly.validate(Uint8Array.from(atob(RELAXED), (one) => one.charCodeAt(0)));

/** @type {any} */
let told;
/** @type {Promise<any> | null} */
let loading = null;
let wanted = 0; // the last run that was asked for; 0 after Stop
const post = (message) => self.postMessage(message);

/* All that a run needs; on the way it tells how many bytes have arrived. What is not whole is refused. */
async function load() {
  const { layers, relaxed, target, draft, tokenizer } = told.files,
    files = [isRelaxed() ? relaxed : layers, target, draft, tokenizer],
    of = files.reduce((sum, one) => sum + one.size, 0);
  let fetched = 0;
  const file = async ({ path, size }) => {
    const answer = await fetch(new URL(path, told.base)),
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
  const [binary, bytes, draftBytes, text] = await Promise.all(files.map(file)),
    compiled = await layersIn(binary);
  return {
    target: new Model(compiled, bytes),
    draft: new Model(compiled, draftBytes),
    tokenizer: new Tokenizer(JSON.parse(new TextDecoder().decode(text))),
  };
}

/* Every number of rows that a run will ask for, until they are compiled. */
function warm({ target, draft }, k, drafts) {
  const cache = target.newCache(64),
    other = draft.newCache(64),
    end = performance.now() + WARM;
  for (let rows = 1; performance.now() < end; rows = (rows % (k + 1)) + 1) {
    target.forward(Array(rows).fill(END), cache, rows);
    if (drafts) draft.forward([END], other);
    cache.keep(0);
    other.keep(0);
  }
  cache.release();
  other.release();
}

const DRAFTERS = {
  draft_model: ({ draft }, capacity) => new DraftModel(draft, capacity),
  prompt_lookup: () => new PromptLookup(),
  suffix: () => new SuffixDrafter(),
  none: () => new NoDrafter(),
};

const facts = ({ head }) => ({
  parameters: head.parameters,
  layers: head.layers.length,
  hidden_size: head.width,
  weights: PRECISION,
});

function header(prompt, models) {
  const run = [...crypto.getRandomValues(new Uint8Array(6))].map((one) =>
      one.toString(16).padStart(2, "0"),
    ),
    { hardwareConcurrency: cores } = navigator,
    about = { family: "embedded", target: facts(models.target), draft_model: facts(models.draft) };
  return {
    ...{ event: "header", run: run.join(""), source: "live", prompt, schema: 1 },
    lanes: ["speculative", "plain"],
    models: { ...about, dtype: PRECISION, device: "browser", threads: 1, kernels: "wasm" },
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
async function run(mine, { prompt, drafter, k, params }) {
  loading ||= load();
  const models = await loading.catch((error) => {
    loading = null;
    throw { wrong: error instanceof WebAssembly.CompileError ? "simd" : "missing", error };
  });
  const { target, tokenizer } = models,
    tokens = [END, ...tokenizer.encode(prompt)];
  if (tokens.length >= target.context)
    throw { wrong: "long", n: tokens.length, limit: target.context - 1 };
  if (wanted !== mine) return;
  const most = drafter === "none" ? 0 : k,
    shared = { target, prompt: tokens, params, ends: [END] },
    read = { bytes: (one) => tokenizer.bytes(one), piece: (one) => tokenizer.piece(one) };
  warm(models, most, drafter === "draft_model");
  const own = DRAFTERS[drafter](
      models,
      Math.min(target.context, tokens.length + params.max_tokens) + k,
    ),
    lanes = {
      speculative: generate({ ...shared, ...read, lane: "speculative", k: most, drafter: own }),
      plain: generate({ ...shared, ...read, lane: "plain", k: 0, drafter: new NoDrafter() }),
    },
    events = interleave(lanes);
  let lines = JSON.stringify(header(prompt, models)) + "\n",
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
  if (data.files) told = data;
  if (data.stop) wanted = 0;
  if (!data.run) return;
  const mine = (wanted = data.number);
  try {
    await run(mine, data.run);
    post({ done: true });
  } catch (/** @type {any} */ error) {
    const { error: cause = error, ...told } = error.wrong ? error : { wrong: "broken" };
    if (cause !== error || !error.wrong) console.warn(cause);
    post(told);
  }
};
