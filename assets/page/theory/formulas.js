/* The formulas: the same as in specdec/figures/theory.py, under the same names; see there for the equations and their
 * papers. A test holds the two equal. */

export const expectedTokens = (alpha, k) =>
  alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha);

export function expectedAccepted(alpha, k, kept = 0) {
  let further = 0;
  for (let j = k; j > kept; j--) further = alpha * (1 + further);
  return further;
}

export const acceptedDistribution = (alpha, k) =>
  Array.from({ length: k + 1 }, (_, n) => (n < k ? alpha ** n * (1 - alpha) : alpha ** k));
export const throughput = (probability, n, draftSeconds, verifySeconds) =>
  (expectedAccepted(probability, n) + 1) / (n * draftSeconds + verifySeconds);

export const speedup = (alpha, k, c, v = 1, o = 0) => expectedTokens(alpha, k) / (k * c + v + o);

export const accountedSpeedup = (tau, drafted, c, v, o, share = 1, step = 1) =>
  tau / (share * (drafted * c + v) + (1 - share) * step + o);

export const growing = (v, at) => (k) => 1 + ((v - 1) * k) / at;

/** @param {number | ((k: number) => number)} v */
export function bestK(alpha, c, v = 1, o = 0, largest = 32) {
  /** @type {(k: number) => number} */
  const cost = typeof v === "function" ? v : () => v,
    gain = (k) => speedup(alpha, k, c, cost(k), o);
  let best = 1;
  for (let k = 2; k <= largest; k++) if (gain(k) > gain(best)) best = k;
  return gain(best) > 1 ? best : 0;
}

export const breakEven = (c, v = 1, o = 0) => Math.max(0, c + v + o - 1);

export function wilson(accepted, judged, z = 1.96) {
  if (!judged) return [0, 1];
  const rate = accepted / judged,
    square = (z * z) / judged,
    middle = (rate + square / 2) / (1 + square);
  const reach =
    (z / (1 + square)) * Math.sqrt((rate * (1 - rate)) / judged + square / (4 * judged));
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}

const CACHE_BYTES = 2;
export const machineOf = ({ tflops, gbps, mib }) => ({
  flops: tflops * 1e12,
  bandwidth: gbps * 1e9,
  memory: mib * 2 ** 20,
});
export const modelOf = (one) => ({
  experts: 1,
  chosen: 1,
  ...one,
  parameters: one.parameters * 1e9,
  active: (one.active ?? one.parameters) * 1e9,
  embedding: (one.embedding ?? 0) * 1e9,
});

export function weightsRead(model, rows) {
  const read = model.parameters - model.embedding;
  if (model.experts === model.chosen) return read;
  const share = model.chosen / model.experts,
    inExperts = (model.parameters - model.active) / (1 - share);
  return read - inExperts * (1 - share) ** rows;
}

export const cacheBytes = (model, tokens) =>
  2 * model.layers * model.kv_heads * model.head_dim * CACHE_BYTES * tokens;

export function readingSeconds(machine, model, bits, batch, rows, context) {
  return (
    ((weightsRead(model, batch * rows) * bits) / 8 + cacheBytes(model, batch * context)) /
    machine.bandwidth
  );
}

export function computingSeconds(machine, model, batch, rows, context) {
  return (
    (batch *
      rows *
      (2 * (model.active - model.embedding) +
        4 * model.layers * model.heads * model.head_dim * context)) /
    machine.flops
  );
}

export function passSeconds(machine, model, bits, batch, rows, context) {
  return Math.max(
    readingSeconds(machine, model, bits, batch, rows, context),
    computingSeconds(machine, model, batch, rows, context),
  );
}

export function freeRows(machine, model, bits, batch, context) {
  let low = 0,
    high = 2 ** 24;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2,
      free =
        computingSeconds(machine, model, batch, middle, context) <=
        readingSeconds(machine, model, bits, batch, middle, context);
    [low, high] = free ? [middle, high] : [low, middle];
  }
  return low;
}

/* What a pair costs at a batch size, in plain steps. */
export function batchCosts(machine, target, draft, bits, k, batch, context) {
  const plain = passSeconds(machine, target, bits, batch, 1, context);
  return {
    plain,
    c: passSeconds(machine, draft, bits, batch, 1, context) / plain,
    v: passSeconds(machine, target, bits, batch, k + 1, context) / plain,
  };
}

export function memoryBytes(target, draft, bits, batch, context) {
  return [
    ...[target, draft].map((model) => (model.parameters * bits) / 8),
    ...[target, draft].map((model) => cacheBytes(model, batch * context)),
  ];
}

/* Probabilities at a temperature, from those at temperature 1: p^(1/T), scaled to 1; at 0 all on the first choice. */
export function tempered(distribution, temperature) {
  const most = Math.max(...distribution),
    raised = distribution.map((p) =>
      temperature ? (p / most) ** (1 / temperature) : Number(p === most),
    ),
    sum = raised.reduce((a, b) => a + b);
  return raised.map((p) => p / sum);
}

/* β = Σ min(p, q): the chance that a draft drawn from q is accepted. */
export const overlap = (p, q) => p.reduce((sum, one, i) => sum + Math.min(one, q[i]), 0);
