/* Runs a model of the Llama architecture in WebAssembly, compiled from `specdec/models/native.cpp`.
 * `specdec/models/browser.py` writes the model's file. The logits equal, bit for bit, those of `native.cpp`. */

const MAGIC = 0x31445053, // "SPD1"
  ALIGNED = 64,
  BLOCK = 32, // in a matrix, the codes of 32 outputs are interleaved, and 32 inputs share a scale
  MATRIX_BYTES = 56, // bytes of `Matrix` in `native.cpp`
  LAYER_BYTES = 4 * MATRIX_BYTES + 8, // four matrices and the address of a bias
  PARTS = ["qkv", "out", "gate_up", "down"];

const PAGES = { initial: 64, maximum: 16384 }, // pages of 64 KiB
  STACK_BYTES = 2 ** 20;

const wasiStub = new Proxy({}, { get: () => () => 0 }),
  instantiate = (/** @type {WebAssembly.Module} */ module, /** @type {WebAssembly.Memory | undefined} */ memory) =>
    WebAssembly.instantiate(module, /** @type {any} */ ({ wasi_snapshot_preview1: wasiStub, env: { memory } }));

/** Loads the compiled code, which all models of a page share. For a build with threads, calls `startThread` for each
 * thread after the first. `startThread` must pass its argument to `serveAsThread` in a worker, and wait for `ready()`.
 * @param {BufferSource} binary @param {number} [threads] @param {(message: any) => Promise<any>} [startThread] */
export async function loadLayers(binary, threads = 1, startThread) {
  const module = await WebAssembly.compile(binary),
    isShared = startThread && WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory"),
    memory = isShared ? new WebAssembly.Memory({ ...PAGES, shared: true }) : undefined,
    { exports } = /** @type {any} */ (await instantiate(module, memory));
  if (exports._initialize) exports._initialize();
  if (!startThread || !memory) return { ...exports, threads: 1 };
  for (let number = 1; number < threads; number++) {
    const stack = exports.malloc(STACK_BYTES) + STACK_BYTES - 16,
      tlsAt = exports.malloc(exports.__tls_size.value + 64);
    await startThread({ module, memory, number, stack, tlsAt });
  }
  return { ...exports, memory, threads };
}

/** Runs one of several threads: computes its share of every call until its worker ends.
 * @param {any} message what `loadLayers` passes to `startThread` @param {() => void} ready */
export async function serveAsThread({ module, memory, number, stack, tlsAt }, ready) {
  const { exports } = /** @type {any} */ (await instantiate(module, memory));
  exports.__stack_pointer.value = Math.floor(stack / 16) * 16;
  exports.__wasm_init_tls(Math.ceil(tlsAt / 16) * 16);
  ready();
  exports.specdec_help(number);
}

export class Model {
  /** @param {any} wasm from `loadLayers` @param {ArrayBuffer} file */
  constructor(wasm, file) {
    const view = new DataView(file);
    if (file.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new Error("the file holds no model weights");
    const headerLength = view.getUint32(4, true),
      head = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, headerLength))),
      weightsBegin = Math.ceil((8 + headerLength) / ALIGNED) * ALIGNED;
    this.wasm = wasm;
    this.head = head;
    this.vocabulary = head.vocabulary;
    this.context = head.context;
    this.weightsAt = this.allocate(file.byteLength - weightsBegin);
    new Uint8Array(wasm.memory.buffer, this.weightsAt).set(new Uint8Array(file, weightsBegin));
    this.cachedHeads = 2 * head.kv_heads;
    this.layerStructs = this.allocate(head.layers.length * LAYER_BYTES);
    head.layers.forEach((/** @type {any} */ layer, /** @type {number} */ i) => {
      PARTS.forEach((part, j) => this.writeMatrix(this.layerStructs + i * LAYER_BYTES + j * MATRIX_BYTES, layer[part]));
      const bias = layer.bias === undefined ? 0 : this.weightsAt + layer.bias;
      this.view().setUint32(this.layerStructs + i * LAYER_BYTES + 4 * MATRIX_BYTES, bias, true);
    });
    this.output = this.allocate(MATRIX_BYTES);
    this.writeMatrix(this.output, head.output);
    /** @type {Record<string, [at: number, bytes: number]>} */
    this.scratchBuffers = {};
    /** @type {{ at: number, bytes: number }[]} memory of released caches */
    this.freeBuffers = [];
  }

  view() {
    return new DataView(this.wasm.memory.buffer);
  }

  /** @param {number} at @param {number} count */
  floats(at, count) {
    return new Float32Array(this.wasm.memory.buffer, at, count);
  }

  /* Allocates aligned bytes in the memory of the WebAssembly module. They are never freed. */
  allocate(/** @type {number} */ bytes) {
    const at = this.wasm.malloc(bytes + ALIGNED);
    if (!at) throw new RangeError("there is not enough memory for the model");
    return Math.ceil(at / ALIGNED) * ALIGNED;
  }

  /* Writes a matrix in the layout of `Matrix` in `native.cpp`. */
  writeMatrix(/** @type {number} */ at, /** @type {Record<string, number>} */ matrix) {
    const view = this.view();
    ["weights", "before", "after", "scales", "minima"].forEach((name, i) =>
      view.setUint32(at + 4 * i, matrix[name] === undefined ? 0 : this.weightsAt + matrix[name], true),
    );
    view.setBigInt64(at + 24, BigInt(matrix.outputs), true);
    view.setBigInt64(at + 32, BigInt(matrix.inputs), true);
    [matrix.bits, matrix.scale_bits, matrix.zero].forEach((value, i) => view.setInt32(at + 40 + 4 * i, value, true));
  }

  /* Returns the address of the buffer `name`, which has at least `bytes` bytes. */
  scratch(/** @type {string} */ name, /** @type {number} */ bytes) {
    const [at, size] = this.scratchBuffers[name] || [0, 0];
    if (size >= bytes) return at;
    const fresh = this.allocate(2 * bytes);
    this.scratchBuffers[name] = [fresh, 2 * bytes];
    return fresh;
  }

  newCache(/** @type {number} */ capacity) {
    const { layers, size: headSize } = this.head;
    const bytes = 4 * layers.length * this.cachedHeads * capacity * headSize,
      free = this.freeBuffers.find((buffer) => buffer.bytes >= bytes);
    if (free) this.freeBuffers.splice(this.freeBuffers.indexOf(free), 1);
    return new Cache(free || { at: this.allocate(bytes), bytes }, capacity, this.freeBuffers);
  }

  /** Appends `tokens` to the cache and returns the logits after each of the last `rows` tokens.
   * @param {number[]} tokens @param {Cache} cache @param {number} [rows] @returns {Float32Array[]} */
  forward(tokens, cache, rows = 1) {
    const { layers, width, size: headSize, floor, heads, kv_heads, output, angles } = this.head,
      count = tokens.length,
      start = cache.length;
    if (start + count > cache.capacity) throw new RangeError("the text is longer than its cache");
    const states = this.scratch("states", 4 * count * width),
      logits = this.scratch("logits", 4 * rows * output.outputs),
      toLong = BigInt;
    this.embed(tokens, states);
    this.wasm.specdec_layers(
      this.layerStructs, toLong(layers.length), states, toLong(count), toLong(width), 0, cache.at,
      toLong(this.cachedHeads * cache.capacity * headSize), toLong(cache.capacity), toLong(start), toLong(heads),
      toLong(kv_heads), toLong(headSize), this.weightsAt + angles + 4 * start * headSize, 0, 1, floor,
      this.wasm.threads,
    ); // prettier-ignore
    cache.keep(start + count);
    const last = states + 4 * (count - rows) * width;
    this.wasm.specdec_normalise(last, toLong(rows), toLong(width), floor, last);
    this.wasm.specdec_product(this.output, last, toLong(rows), logits, this.wasm.threads);
    return Array.from({ length: rows }, (_, i) =>
      this.floats(logits + 4 * i * output.outputs, this.vocabulary).slice(),
    );
  }

  /* Writes the tokens' embeddings to `states`, from a bfloat16 table or, if there is none, from the output matrix. */
  embed(/** @type {number[]} */ tokens, /** @type {number} */ states) {
    const { width, embedding } = this.head;
    if (embedding === undefined)
      return tokens.forEach((token, r) => this.unpack(token, this.floats(states + 4 * r * width, width)));
    const bits = new Uint32Array(this.wasm.memory.buffer, states, tokens.length * width);
    tokens.forEach((token, r) => {
      const row = new Uint16Array(this.wasm.memory.buffer, this.weightsAt + embedding + 2 * token * width, width);
      for (let i = 0; i < width; i++) bits[r * width + i] = row[i] << 16;
    });
  }

  /* Dequantizes the row of `token` in the output matrix. The matrix has 8-bit codes of shape [outputs / 32, inputs / 4,
   * 32, 4] and float16 scales of shape [outputs / 32, inputs / 32, 32].
   * @param {number} token @param {Float32Array} into */
  unpack(/** @type {number} */ token, /** @type {Float32Array} */ into) {
    const { weights, scales, zero } = this.head.output,
      { buffer } = this.wasm.memory,
      [blockStart, inBlock] = [Math.floor(token / BLOCK) * BLOCK, token % BLOCK],
      codes = new Uint8Array(buffer, this.weightsAt + weights + blockStart * into.length),
      scaleBits = new Uint16Array(buffer, this.weightsAt + scales + (2 * blockStart * into.length) / BLOCK);
    for (let i = 0; i < into.length; i++) {
      const code = codes[((i >> 2) * BLOCK + inBlock) * 4 + (i & 3)];
      into[i] = fromHalf(scaleBits[Math.floor(i / BLOCK) * BLOCK + inBlock]) * (code - zero);
    }
  }
}

/* Converts the bits of a float16 to a number. @param {number} bits */
function fromHalf(/** @type {number} */ bits) {
  const exponent = (bits >> 10) & 31,
    significand = exponent ? 1 + (bits & 1023) / 1024 : (bits & 1023) / 512;
  return (bits >> 15 ? -1 : 1) * significand * 2 ** (exponent - 15);
}

/* Holds the keys and values of a sequence. A rollback only sets the length; new tokens overwrite the removed ones. */
class Cache {
  /** @param {{ at: number, bytes: number }} cacheMemory @param {number} capacity
   * @param {{ at: number, bytes: number }[]} freeBuffers */
  constructor(cacheMemory, capacity, freeBuffers) {
    this.at = cacheMemory.at;
    this.capacity = capacity;
    this.length = 0;
    this.release = () => freeBuffers.push(cacheMemory);
  }

  keep(/** @type {number} */ length) {
    this.length = length;
  }
}
