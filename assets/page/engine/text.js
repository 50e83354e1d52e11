/* Converts between tokens and text with a byte-level BPE's `tokenizer.json`, and streams text that is always complete
 * UTF-8 and respects stop strings across tokens, as `specdec/text.py` does. */

const encoder = new TextEncoder();
// GPT-2 splits words like this. Spaces are Unicode's, as in Rust; JavaScript's \s has U+FEFF and lacks U+0085.
const WORDS = new RegExp(
  [
    String.raw`'(?:s|t|re|ve|m|ll|d)`,
    String.raw` ?\p{L}+`,
    String.raw` ?\p{N}+`,
    String.raw` ?[^\p{White_Space}\p{L}\p{N}]+`,
    String.raw`\p{White_Space}+(?!\P{White_Space})`,
    String.raw`\p{White_Space}+`,
  ].join("|"),
  "gu",
);
// Python's strip() removes these: white space, and the separators U+001C to U+001F.
const SPACES = String.raw`[\p{White_Space}\u001c-\u001f]+`,
  EDGES = new RegExp(`^${SPACES}|${SPACES}$`, "gu");

/* Builds GPT-2's table, which shows every byte as a printable character. */
function characters() {
  const printable = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0xad) || byte > 0xad;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : 256 + others++));
}
const CHARACTERS = characters(),
  BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

export class Tokenizer {
  /** @param {any} file a parsed tokenizer.json */
  constructor({ model, added_tokens, pre_tokenizer }) {
    this.digits = (pre_tokenizer.pretokenizers || []).some((step) => step.type === "Digits");
    /** @type {Map<string, number>} */
    this.ids = new Map(Object.entries(model.vocab));
    /** @type {string[]} */
    this.names = [];
    for (const [name, id] of this.ids) this.names[id] = name;
    this.special = new Map(added_tokens.map(({ id, content }) => [id, content]));
    const merges = model.merges.map((pair) => (typeof pair === "string" ? pair : pair.join(" ")));
    /** @type {Map<string, number>} */
    this.ranks = new Map(merges.map((pair, rank) => [pair, rank]));
    /** @type {Map<string, number[]>} */
    this.cachedIds = new Map();
  }

  /** @param {number} token @returns {Uint8Array} empty for a special token */
  bytes(token) {
    const name = this.special.has(token) ? "" : this.names[token] || "";
    return Uint8Array.from(name, (character) => BYTES.get(character) ?? 63);
  }

  /* Returns a token as the page shows it: its text, or bytes like <0xF0> where they are not text by themselves. */
  piece(token) {
    const special = this.special.get(token);
    if (special) return special;
    const bytes = this.bytes(token);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return [...bytes].map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`).join("");
    }
  }

  /** Returns the tokens of a run's prompt: within the model's chat template, or after the token that begins a text.
   * @param {string} prompt @param {any} chat @param {number} begin @returns {number[]} */
  prompt(prompt, chat, begin) {
    return chat ? this.within(prompt, chat) : [begin, ...this.plain(prompt)];
  }

  /** Puts a prompt into a model's chat template, as in `specdec/families/chat.py`: control tokens that a
   * visitor typed are read as text.
   * @param {string} prompt @param {{ before: string, after: string, trims: boolean }} chat @returns {number[]} */
  within(prompt, { before, after, trims }) {
    if (trims) prompt = prompt.replace(EDGES, "");
    const [whole, ...around] = [before + prompt + after, before, after].map((text) => this.encode(text)),
      controls = (tokens) => tokens.filter((token) => this.special.has(token)).length;
    if (controls(whole) === controls(around.flat())) return whole;
    return [...around[0], ...this.plain(prompt), ...around[1]];
  }

  /** @param {string} text of a template: special tokens are read, too @returns {number[]} */
  encode(text) {
    const marks = [...this.special.values()].map((token) => token.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&"));
    if (!marks.length) return this.plain(text);
    const ids = new Map([...this.special].map(([id, content]) => [content, id]));
    return text
      .split(new RegExp(`(${marks.join("|")})`))
      .flatMap((part) => (ids.has(part) ? [/** @type {number} */ (ids.get(part))] : this.plain(part)));
  }

  plain(text) {
    const parts = this.digits ? text.split(/(\p{N})/u).filter(Boolean) : [text];
    return parts.flatMap((part) => (part.match(WORDS) || []).flatMap((word) => this.word(word)));
  }

  /* Returns the ids of a word's tokens; merges apply in the order in which they were learned. */
  word(word) {
    const cachedIds = this.cachedIds.get(word);
    if (cachedIds) return cachedIds;
    let parts = [...encoder.encode(word)].map((byte) => CHARACTERS[byte]);
    for (;;) {
      const ranks = parts.slice(1).map((part, i) => this.ranks.get(`${parts[i]} ${part}`) ?? Infinity),
        best = Math.min(...ranks);
      if (best === Infinity) break;
      const merged = [];
      for (let i = 0; i < parts.length; i++) merged.push(ranks[i] === best ? parts[i] + parts[++i] : parts[i]);
      parts = merged;
    }
    const ids = parts.map((part) => /** @type {number} */ (this.ids.get(part)));
    if (this.cachedIds.size < 10000) this.cachedIds.set(word, ids);
    return ids;
  }
}

/* Turns tokens into text that can be shown at once: never half a character, never a part of a stop string. */
export class TextStream {
  /** @param {(token: number) => Uint8Array} bytes @param {string[]} stop */
  constructor(bytes, stop) {
    this.bytes = bytes;
    this.stop = stop;
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    this.held = ""; // it may be the beginning of a stop string
    this.stopped = false;
  }

  push(token) {
    return this.release(this.decoder.decode(this.bytes(token), { stream: true }));
  }

  flush() {
    const rest = this.release(this.decoder.decode()),
      held = this.held;
    this.held = "";
    return this.stopped ? rest : rest + held;
  }

  release(fresh) {
    if (this.stopped) return "";
    const text = this.held + fresh,
      positions = this.stop.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (positions.length) {
      this.stopped = true;
      this.held = "";
      return text.slice(0, Math.min(...positions));
    }
    let keep = 0;
    for (const stop of this.stop)
      for (let n = 1; n < stop.length; n++) if (n > keep && text.endsWith(stop.slice(0, n))) keep = n;
    this.held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }
}
