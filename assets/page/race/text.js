/* Formats tokens as text and fills the templates of the page's sentences; uses no DOM. */

/* Matches characters that are invisible or change the direction of the line; the page shows their code points. */
const INVISIBLE =
  // eslint-disable-next-line no-control-regex -- the expression must match control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
// with which a chat model ends its answer
const END_TOKEN = /^(<\|(im_end|endoftext|end_of_text|eot_id|end|return)\|>|<end_of_turn>|<\/s>)$/;
export const makeVisible = (/** @type {string} */ piece) =>
  piece
    .replace(END_TOKEN, "⟨end⟩")
    .replace(/\n/g, "↵")
    .replace(/\t/g, "⇥")
    .replace(
      INVISIBLE,
      (character) => "⟨" + Number(character.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0") + "⟩",
    );
/** Returns the lines of the field for stop strings, as `stop_lines` of `settings.py` does.
 * @param {string[]} [stops] */
export const stopLines = (stops = []) =>
  stops.map((stop) => stop.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")).join("\n");
export const BYTES = /^(<0x[0-9A-F]{2}>)+$/; // a token that is only a part of a character
/** Returns a token's piece, or for a byte the character that it is a part of.
 * @param {PlayerTexts} texts @param {{ piece: string, character?: string }} token */
export const nameOf = (texts, { piece, character }) =>
  !BYTES.test(piece) ? piece : character ? fillText(texts.byte.of, { character }) : texts.byte.unknown;
const formatSpaces = (/** @type {string} */ piece) =>
  /^ {4,}$/.test(piece) ? "␣×" + piece.length : piece.replace(/ /g, "␣");
/** @param {string} piece */
export const formatPiece = (piece) => makeVisible(piece.trim() ? piece.replace(/^ /, "") : formatSpaces(piece)) || "∅";
export function shortenPiece(/** @type {string} */ piece, /** @type {number} */ widthPx) {
  const label = formatPiece(piece),
    maxLength = Math.max(2, Math.floor(widthPx / 7.4));
  return label.length > maxLength ? label.slice(0, maxLength - 1) + "…" : label;
}

/* Returns a drafter's entry in `methods`, or that of the longest part of its name before a colon (`eagle3:FOLDER`).
 * For a wrapper (`adaptive:NAME`), NAME is looked up instead. */
export function methodOf(/** @type {Record<string, MethodEntry>} */ methods, /** @type {string} */ name) {
  const [prefix, ...rest] = name.split(":"),
    wraps = Object.hasOwn(methods, prefix) && methods[prefix].kind === "wrapper";
  let key = (wraps && rest.join(":")) || name;
  while (key && !Object.hasOwn(methods, key)) key = key.slice(0, Math.max(0, key.lastIndexOf(":")));
  return methods[key] || {};
}

/** Returns the text for a name, or else `other`. @param {Record<string, string>} map
 * @param {string} name */
export const pickText = (map, name) => (Object.hasOwn(map, name) ? map[name] : map.other);

/* Fills a template such as "a {name} b" and returns its parts; values can be DOM nodes. */
export function fillTemplate(/** @type {string} */ template, /** @type {Values} */ values) {
  return template
    .split(/\{(\w+)\}/)
    .map((part, i) => (i % 2 ? (values && values[part] != null ? values[part] : "") : part))
    .filter((part) => part !== "");
}
/** @param {string} template @param {Values} values */
export const fillText = (template, values) => fillTemplate(template, values).join("");

export const countOfTokens = (/** @type {PlayerTexts} */ { lane }, /** @type {number} */ tokens) =>
  tokens === 1 ? lane.one_token : fillText(lane.clock, { tokens });

/* Joins sentences with spaces, but without a space after Chinese punctuation, which is wide enough. */
export const joinSentences = (/** @type {Sentence[]} */ ...parts) =>
  parts
    .flat()
    .filter(Boolean)
    .join(" ")
    .replace(/([。：？！]) /g, "$1");
