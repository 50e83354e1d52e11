/* Runs a Llama in WebAssembly: its layers are those of `specdec/models/native.cpp`, and `specdec/models/browser.py`
 * writes its file. It takes one sequence and returns rows of logits, bit for bit those of Python with int7 weights. A
 * token's row is the same whether it is computed with others or alone. */

const MAGIC = 0x31445053, // "SPD1"
  ALIGNED = 64,
  BLOCK = 32, // the codes of 32 outputs lie side by side, and 32 inputs share a scale
  MATRIX_BYTES = 56, // bytes of `Matrix` in `native.cpp`
  LAYER_BYTES = 4 * MATRIX_BYTES + 8,
  PARTS = ["qkv", "out", "gate_up", "down"];

const PAGES = { initial: 64, maximum: 16384 }, // of 64 kB
  STACK_BYTES = 2 ** 20;

const wasiStub = new Proxy({}, { get: () => () => 0 }),
  instantiate = (module, memory) =>
    WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasiStub, env: { memory } });

/** Loads the compiled code of the layers, which all models of a page share. For each further thread, `startThread`
 * passes its argument to `serveAsThread` in another worker, and resolves when the thread is ready.
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

/** Serves as one of several threads as long as its worker lives: it does its share of every call.
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
    if (file.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new Error("these are no weights");
    const length = view.getUint32(4, true),
      head = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length))),
      begin = Math.ceil((8 + length) / ALIGNED) * ALIGNED;
    this.wasm = wasm;
    this.head = head;
    this.vocabulary = head.vocabulary;
    this.context = head.context;
    this.weightsAt = this.allocate(file.byteLength - begin);
    new Uint8Array(wasm.memory.buffer, this.weightsAt).set(new Uint8Array(file, begin));
    this.cachedHeads = 2 * head.kv_heads;
    this.layerStructs = this.allocate(head.layers.length * LAYER_BYTES);
    head.layers.forEach((layer, i) => {
      PARTS.forEach((part, j) => this.writeMatrix(this.layerStructs + i * LAYER_BYTES + j * MATRIX_BYTES, layer[part]));
      const bias = layer.bias === undefined ? 0 : this.weightsAt + layer.bias;
      this.view().setUint32(this.layerStructs + i * LAYER_BYTES + 4 * MATRIX_BYTES, bias, true);
    });
    this.output = this.allocate(MATRIX_BYTES);
    this.writeMatrix(this.output, head.output);
    /** @type {Record<string, [at: number, bytes: number]>} */
    this.scratchRooms = {};
    /** @type {{ at: number, bytes: number }[]} memory of caches whose runs are over */
    this.freeRooms = [];
  }

  view() {
    return new DataView(this.wasm.memory.buffer);
  }

  /** @param {number} at @param {number} count */
  floats(at, count) {
    return new Float32Array(this.wasm.memory.buffer, at, count);
  }

  /* Allocates aligned bytes of the shared memory, which are never freed. */
  allocate(bytes) {
    const at = this.wasm.malloc(bytes + ALIGNED);
    if (!at) throw new RangeError("there is not enough memory for the model");
    return Math.ceil(at / ALIGNED) * ALIGNED;
  }

  /* Writes a matrix as `native.cpp` reads it: pointers, sizes, kinds. */
  writeMatrix(at, matrix) {
    const view = this.view();
    ["weights", "before", "after", "scales", "minima"].forEach((name, i) =>
      view.setUint32(at + 4 * i, matrix[name] === undefined ? 0 : this.weightsAt + matrix[name], true),
    );
    view.setBigInt64(at + 24, BigInt(matrix.outputs), true);
    view.setBigInt64(at + 32, BigInt(matrix.inputs), true);
    [matrix.bits, matrix.scale_bits, matrix.zero].forEach((one, i) => view.setInt32(at + 40 + 4 * i, one, true));
  }

  /* Returns the same memory at every call, or a larger one when more is needed. */
  scratch(name, bytes) {
    const [at, size] = this.scratchRooms[name] || [0, 0];
    if (size >= bytes) return at;
    const fresh = this.allocate(2 * bytes);
    this.scratchRooms[name] = [fresh, 2 * bytes];
    return fresh;
  }

  newCache(capacity) {
    const { layers, size: headSize } = this.head;
    const bytes = 4 * layers.length * this.cachedHeads * capacity * headSize,
      free = this.freeRooms.find((one) => one.bytes >= bytes);
    if (free) this.freeRooms.splice(this.freeRooms.indexOf(free), 1);
    return new Cache(free || { at: this.allocate(bytes), bytes }, capacity, this.freeRooms);
  }

  /** Appends `tokens` to the cache and returns the logits of the last `rows` of them.
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

  /* Writes the tokens' embeddings: rows of a bfloat16 table or, without one, of the output matrix. */
  embed(tokens, states) {
    const { width, embedding } = this.head;
    if (embedding === undefined)
      return tokens.forEach((token, r) => this.unpack(token, this.floats(states + 4 * r * width, width)));
    const bits = new Uint32Array(this.wasm.memory.buffer, states, tokens.length * width);
    tokens.forEach((token, r) => {
      const row = new Uint16Array(this.wasm.memory.buffer, this.weightsAt + embedding + 2 * token * width, width);
      for (let i = 0; i < width; i++) bits[r * width + i] = row[i] << 16;
    });
  }

  /* Unpacks a row of the output matrix. Its 8-bit codes have the layout [outputs / 32, inputs / 4, 32, 4], its 16-bit
   * scales [outputs / 32, inputs / 32, 32].
   * @param {number} token @param {Float32Array} into */
  unpack(token, into) {
    const { weights, scales, zero } = this.head.output,
      { buffer } = this.wasm.memory,
      [block, lane] = [Math.floor(token / BLOCK) * BLOCK, token % BLOCK],
      codes = new Uint8Array(buffer, this.weightsAt + weights + block * into.length),
      scaleBits = new Uint16Array(buffer, this.weightsAt + scales + (2 * block * into.length) / BLOCK);
    for (let i = 0; i < into.length; i++) {
      const code = codes[((i >> 2) * BLOCK + lane) * 4 + (i & 3)];
      into[i] = fromHalf(scaleBits[Math.floor(i / BLOCK) * BLOCK + lane]) * (code - zero);
    }
  }
}

/* Converts a float16 to a number. @param {number} bits */
function fromHalf(bits) {
  const exponent = (bits >> 10) & 31,
    significand = exponent ? 1 + (bits & 1023) / 1024 : (bits & 1023) / 512;
  return (bits >> 15 ? -1 : 1) * significand * 2 ** (exponent - 15);
}

/* Holds keys and values; a rollback only sets the length. */
class Cache {
  constructor(room, capacity, free) {
    this.at = room.at;
    this.capacity = capacity;
    this.length = 0;
    this.release = () => free.push(room);
  }

  keep(length) {
    this.length = length;
  }
}
