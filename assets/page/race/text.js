/* Writes pieces of text and fills the page's sentences; without a document. */

/* Characters that would be invisible or would turn the line round are shown by their number. */
const ODD =
  // eslint-disable-next-line no-control-regex -- these are the ones to be shown
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
// what a chat model ends its answer with
const END = /^(<\|(im_end|endoftext|end_of_text|eot_id|end|return)\|>|<end_of_turn>|<\/s>)$/;
export const makeVisible = (piece) =>
  piece
    .replace(END, "⟨end⟩")
    .replace(/\n/g, "↵")
    .replace(/\t/g, "⇥")
    .replace(ODD, (c) => "⟨" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
const blank = (piece) => (/^ {4,}$/.test(piece) ? "␣×" + piece.length : piece.replace(/ /g, "␣"));
export const formatPiece = (piece) =>
  makeVisible(piece.trim() ? piece.replace(/^ /, "") : blank(piece)) || "∅";
/* The same in so many pixels of a chart. */
export function shortenPiece(piece, room) {
  const label = formatPiece(piece),
    most = Math.max(2, Math.floor(room / 7.4));
  return label.length > most ? label.slice(0, most - 1) + "…" : label;
}

/* What the registry says of a drafter, also of one with a name of its own (`eagle3:FOLDER`); of `adaptive:NAME`, what
   it says of that one. */
export function methodOf(methods, name) {
  const [first, ...rest] = name.split(":"),
    wraps = Object.hasOwn(methods, first) && methods[first].kind === "wrapper";
  let known = (wraps && rest.join(":")) || name;
  while (known && !Object.hasOwn(methods, known))
    known = known.slice(0, Math.max(0, known.lastIndexOf(":")));
  return methods[known] || {};
}

/* The words for a name, or those for any other. */
export const pickText = (map, name) => (Object.hasOwn(map, name) ? map[name] : map.other);

/* "a {name} b" with values that may be nodes. */
export function fillTemplate(template, values) {
  return template
    .split(/\{(\w+)\}/)
    .map((part, i) => (i % 2 ? (values && values[part] != null ? values[part] : "") : part))
    .filter((part) => part !== "");
}
export const fillText = (template, values) => fillTemplate(template, values).join("");

/* Side by side; a Chinese full stop is as wide as a character, so no space follows it. */
export const joinSentences = (...parts) =>
  parts
    .flat()
    .filter(Boolean)
    .join(" ")
    .replace(/([。：？！]) /g, "$1");
