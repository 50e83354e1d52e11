/* Converts between text and tokens by the `tokenizer.json` of a byte-level BPE, and streams text. */

const encoder = new TextEncoder();
// GPT-2's pattern of words. White space is Unicode's, as in Rust; JavaScript's \s adds U+FEFF and lacks U+0085.
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

/* Builds GPT-2's table, which maps every byte to a printable character. */
function printableCharacters() {
  /** @param {number} byte */
  const printable = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0xad) || byte > 0xad;
  let otherCount = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : 256 + otherCount++));
}
const CHARACTERS = printableCharacters(),
  BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

export class Tokenizer {
  /** @param {any} file a parsed tokenizer.json */
  constructor({ model, added_tokens, pre_tokenizer }) {
    this.splitsDigits = (pre_tokenizer.pretokenizers || []).some((/** @type {any} */ step) => step.type === "Digits");
    /** @type {Map<string, number>} */
    this.ids = new Map(Object.entries(model.vocab));
    /** @type {string[]} */
    this.names = [];
    for (const [name, id] of this.ids) this.names[id] = name;
    this.special = new Map(added_tokens.map((/** @type {any} */ { id, content }) => [id, content]));
    const merges = model.merges.map((/** @type {string | string[]} */ pair) =>
      typeof pair === "string" ? pair : pair.join(" "),
    );
    /** @type {Map<string, number>} */
    this.ranks = new Map(merges.map((/** @type {string} */ pair, /** @type {number} */ rank) => [pair, rank]));
    /** @type {Map<string, number[]>} */
    this.cachedIds = new Map();
  }

  /** @param {number} token @returns {Uint8Array} empty for a special token */
  bytes(token) {
    const name = this.special.has(token) ? "" : this.names[token] || "";
    return Uint8Array.from(name, (character) => BYTES.get(character) ?? 63); // 63: "?"
  }

  /* Returns a token as the page shows it: as text, or as bytes like <0xF0> if they are not valid UTF-8. */
  piece(/** @type {number} */ token) {
    const special = this.special.get(token);
    if (special) return special;
    const bytes = this.bytes(token);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return [...bytes].map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`).join("");
    }
  }

  /** Encodes a prompt within the chat template or, without a template, after the token `begin`.
   * @param {string} prompt @param {any} chat @param {number} begin @returns {number[]} */
  prompt(prompt, chat, begin) {
    return chat ? this.within(prompt, chat) : [begin, ...this.plain(prompt)];
  }

  /** Encodes a prompt within a chat template, as `specdec/families/chat.py` does. Special tokens that a visitor typed
   * into the prompt are encoded as plain text.
   * @param {string} prompt @param {{ before: string, after: string, trims: boolean }} chat @returns {number[]} */
  within(prompt, { before, after, trims }) {
    if (trims) prompt = prompt.replace(EDGES, "");
    const [whole, ...around] = [before + prompt + after, before, after].map((text) => this.encode(text)),
      countSpecial = (/** @type {number[]} */ tokens) => tokens.filter((token) => this.special.has(token)).length;
    if (countSpecial(whole) === countSpecial(around.flat())) return whole;
    return [...around[0], ...this.plain(prompt), ...around[1]];
  }

  /** @param {string} text of a template, with special tokens in it @returns {number[]} */
  encode(text) {
    const marks = [...this.special.values()].map((token) => token.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&"));
    if (!marks.length) return this.plain(text);
    const ids = new Map([...this.special].map(([id, content]) => [content, id]));
    return text
      .split(new RegExp(`(${marks.join("|")})`))
      .flatMap((part) => (ids.has(part) ? [/** @type {number} */ (ids.get(part))] : this.plain(part)));
  }

  plain(/** @type {string} */ text) {
    const parts = this.splitsDigits ? text.split(/(\p{N})/u).filter(Boolean) : [text];
    return parts.flatMap((part) => (part.match(WORDS) || []).flatMap((word) => this.word(word)));
  }

  /* Returns the ids of a word's tokens; merges apply in the order in which they were learned. */
  word(/** @type {string} */ word) {
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

/* Turns tokens into text that can be shown at once. Holds back half characters and what may begin a stop string. */
export class TextStream {
  /** @param {(token: number) => Uint8Array} bytes @param {string[]} stop */
  constructor(bytes, stop) {
    this.bytes = bytes;
    this.stop = stop;
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    this.held = ""; // text that can be the beginning of a stop string
    this.stopped = false;
  }

  push(/** @type {number} */ token) {
    return this.release(this.decoder.decode(this.bytes(token), { stream: true }));
  }

  flush() {
    const text = this.release(this.decoder.decode()),
      held = this.held;
    this.held = "";
    return this.stopped ? text : text + held;
  }

  release(/** @type {any} */ newText) {
    if (this.stopped) return "";
    const text = this.held + newText,
      positions = this.stop.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (positions.length) {
      this.stopped = true;
      this.held = "";
      return text.slice(0, Math.min(...positions));
    }
    let heldLength = 0;
    for (const stop of this.stop)
      for (let n = 1; n < stop.length; n++) if (n > heldLength && text.endsWith(stop.slice(0, n))) heldLength = n;
    this.held = text.slice(text.length - heldLength);
    return text.slice(0, text.length - heldLength);
  }
}
