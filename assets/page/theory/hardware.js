/* Computes the time and memory of a pass on a machine. */

const CACHE_BYTES = 2; // bytes of a number in the KV cache
export const toMachine = (/** @type {Record<string, number>} */ { tflops, gbps, mib }) => ({
  flops: tflops * 1e12,
  bandwidth: gbps * 1e9,
  memory: mib * 2 ** 20,
});
export const toModel = (/** @type {any} */ model) => ({
  experts: 1,
  chosen: 1,
  ...model,
  parameters: model.parameters * 1e9,
  active: (model.active ?? model.parameters) * 1e9,
  embedding: (model.embedding ?? 0) * 1e9,
});

export function weightsRead(/** @type {Model} */ model, /** @type {number} */ rows) {
  const allWeights = model.parameters - model.embedding;
  if (model.experts === model.chosen) return allWeights;
  const share = model.chosen / model.experts,
    expertWeights = (model.parameters - model.active) / (1 - share);
  return allWeights - expertWeights * (1 - share) ** rows;
}

/** @param {Model} model @param {number} tokens */
export const cacheBytes = (model, tokens) => 2 * model.layers * model.kv_heads * model.head_dim * CACHE_BYTES * tokens;

/** @param {Machine} machine @param {Model} model @param {number} bits @param {number} batch @param {number} rows
 * @param {number} context */
export function readingSeconds(machine, model, bits, batch, rows, context) {
  return ((weightsRead(model, batch * rows) * bits) / 8 + cacheBytes(model, batch * context)) / machine.bandwidth;
}

/** @param {Machine} machine @param {Model} model @param {number} batch @param {number} rows @param {number} context */
export function computingSeconds(machine, model, batch, rows, context) {
  return (
    (batch *
      rows *
      (2 * (model.active - model.embedding) + 4 * model.layers * model.heads * model.head_dim * context)) /
    machine.flops
  );
}

/** @param {Machine} machine @param {Model} model @param {number} bits @param {number} batch @param {number} rows
 * @param {number} context */
export function passSeconds(machine, model, bits, batch, rows, context) {
  return Math.max(
    readingSeconds(machine, model, bits, batch, rows, context),
    computingSeconds(machine, model, batch, rows, context),
  );
}

/** @param {Machine} machine @param {Model} model @param {number} bits @param {number} batch @param {number} context */
export function freeRows(machine, model, bits, batch, context) {
  let low = 0,
    high = 2 ** 24;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2,
      isFree =
        computingSeconds(machine, model, batch, middle, context) <=
        readingSeconds(machine, model, bits, batch, middle, context);
    [low, high] = isFree ? [middle, high] : [low, middle];
  }
  return low; // rows per sequence that a pass can compute while it reads memory
}

/** Returns `plain`, the seconds of a plain step. `c` (a draft model's step) and `v` (a check) are multiples of it.
 * @param {Machine} machine @param {Model} target @param {Model} draft @param {number} bits @param {number} k
 * @param {number} batch @param {number} context */
export function batchCosts(machine, target, draft, bits, k, batch, context) {
  const plain = passSeconds(machine, target, bits, batch, 1, context);
  return {
    plain,
    c: passSeconds(machine, draft, bits, batch, 1, context) / plain,
    v: passSeconds(machine, target, bits, batch, k + 1, context) / plain,
  };
}

/** @param {Model} target @param {Model} draft @param {number} bits @param {number} batch @param {number} context */
export function memoryBytes(target, draft, bits, batch, context) {
  return [
    ...[target, draft].map((model) => (model.parameters * bits) / 8),
    ...[target, draft].map((model) => cacheBytes(model, batch * context)),
  ];
}
