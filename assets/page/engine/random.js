/* Generates random numbers. A seed gives the same numbers as Python's `random.Random(seed)`: Mersenne Twister
 * (Matsumoto, Nishimura 1998). */

const SIZE = 624,
  MIDDLE = 397;

export class Random {
  /** @param {number[]} key 32-bit words */
  constructor(key) {
    const state = (this.state = new Uint32Array(SIZE));
    this.next = SIZE;
    state[0] = 19650218;
    for (let i = 1; i < SIZE; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
    const mixedBefore = (/** @type {number} */ i) => state[i - 1] ^ (state[i - 1] >>> 30);
    let i = 1;
    const advance = () => {
      if (++i < SIZE) return;
      state[0] = state[SIZE - 1];
      i = 1;
    };
    for (let k = 0; k < Math.max(SIZE, key.length); k++, advance())
      state[i] = (state[i] ^ Math.imul(mixedBefore(i), 1664525)) + key[k % key.length] + (k % key.length);
    for (let k = 1; k < SIZE; k++, advance()) state[i] = (state[i] ^ Math.imul(mixedBefore(i), 1566083941)) - i;
    state[0] = 0x80000000;
  }

  /** @param {number} seed a whole number below 2^53. A negative one counts as seed + 2^65, as in `sampling.py`. */
  static of(seed) {
    const low = seed >>> 0,
      high = Math.floor(seed / 2 ** 32) >>> 0;
    return new Random(seed < 0 ? [low, high, 1] : high ? [low, high] : [low]);
  }

  next32Bits() {
    if (this.next === SIZE) this.twist();
    let y = this.state[this.next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  twist() {
    const state = this.state;
    for (let i = 0; i < SIZE; i++) {
      const y = (state[i] & 0x80000000) | (state[(i + 1) % SIZE] & 0x7fffffff);
      state[i] = state[(i + MIDDLE) % SIZE] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  /** Returns a number in [0, 1) with 53 random bits. */
  random() {
    return ((this.next32Bits() >>> 5) * 2 ** 26 + (this.next32Bits() >>> 6)) / 2 ** 53;
  }
}

/* Draws tokens, and accepts or rejects drafts, at random. Callers pass a name for each draw, too, which is ignored. */
export class RandomSampler {
  /** @param {number} seed */
  constructor(seed) {
    this.source = Random.of(seed);
  }

  /** Draws an index from `probs`. @param {ArrayLike<number>} probs */
  categorical(probs) {
    let total = 0,
      lastPossible = 0;
    for (let i = 0; i < probs.length; i++) total += probs[i];
    const threshold = this.source.random() * total;
    for (let i = 0, sum = 0; i < probs.length; i++) {
      sum += probs[i];
      if (sum > threshold) return i;
      if (probs[i] > 0) lastPossible = i;
    }
    return lastPossible;
  }

  /** Returns true with probability min(1, p/q), and the random u that decided. @param {number} p @param {number} q */
  accept(p, q) {
    const u = this.source.random();
    return /** @type {[boolean, number]} */ ([u * q < p, u]);
  }
}
