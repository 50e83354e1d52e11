/* Words and figures as the page writes them: no document here. */

import { EPS } from "#page/race/run.js";

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const fixed = (x, digits = 2) => x.toFixed(digits);

/* A probability: two significant digits, so that a ratio of two agrees with both; never a false 0 or 1. */
export function chance(x) {
  if (x == null || Number.isNaN(x)) return "–";
  if (x > 0 && x < 0.0001) return "<0.0001";
  if (x < 1 && x > 0.995) return ">0.99";
  return x >= 0.0995 || x === 0 ? fixed(x) : x.toPrecision(2);
}

/* Enough digits to tell two numbers apart. */
export function apart(a, b) {
  let digits = 2;
  while (digits < 6 && a !== b && fixed(a, digits) === fixed(b, digits)) digits++;
  return [a, b].map((x) => fixed(x, digits));
}

export function duration(ms) {
  if (ms >= 1000) return fixed(ms / 1000, ms < 10000 ? 2 : 1) + " s";
  return fixed(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0) + " ms";
}

export function size(n) {
  if (!(n > 0)) return "";
  if (n >= 1e9) return fixed(n / 1e9, 1) + " B";
  return n >= 1e6 ? fixed(n / 1e6, n >= 1e7 ? 0 : 1) + " M" : Math.round(n / 1e3) + " k";
}

/* Characters that would be invisible or would turn the line round are shown by their number. */
const ODD =
  // eslint-disable-next-line no-control-regex -- these are the ones to be shown
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
// what a chat model ends its answer with
const END = /^(<\|(im_end|endoftext|end_of_text|eot_id|end|return)\|>|<end_of_turn>|<\/s>)$/;
export const visible = (piece) =>
  piece
    .replace(END, "⟨end⟩")
    .replace(/\n/g, "↵")
    .replace(/\t/g, "⇥")
    .replace(ODD, (c) => "⟨" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
const blank = (piece) => (/^ {4,}$/.test(piece) ? "␣×" + piece.length : piece.replace(/ /g, "␣"));
export const shown = (piece) =>
  visible(piece.trim() ? piece.replace(/^ /, "") : blank(piece)) || "∅";
/* The same in so many pixels of a chart. */
export function short(piece, room) {
  const label = shown(piece),
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
export const pick = (map, name) => (Object.hasOwn(map, name) ? map[name] : map.other);

/* "a {name} b" with values that may be nodes. */
export function fill(template, values) {
  return template
    .split(/\{(\w+)\}/)
    .map((part, i) => (i % 2 ? (values && values[part] != null ? values[part] : "") : part))
    .filter((part) => part !== "");
}
export const words = (template, values) => fill(template, values).join("");

/* Side by side; a Chinese full stop is as wide as a character, so no space follows it. */
export const sentences = (...parts) =>
  parts
    .flat()
    .filter(Boolean)
    .join(" ")
    .replace(/([。：？！]) /g, "$1");

export function niceStep(span, count) {
  const rough = Math.max(span, EPS) / count,
    power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
}
const tick = (v, step) =>
  step >= 1 ? String(Math.round(v)) : v.toFixed(Math.min(3, Math.ceil(-Math.log10(step))));

/* Where an axis from `from` on over `span` has its marks; `count` of them fit into `window`. Of no time there are
 * none. */
export function marksOf(from, span, window, count) {
  if (!(window > EPS)) return [];
  const step = niceStep(window, count),
    first = Math.ceil(from / step - EPS),
    last = Math.floor((from + span) / step + EPS);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => ({
    at: (first + i) * step,
    label: tick((first + i) * step, step),
  }));
}

/* About how wide a label is at 12 px, before it is drawn: a Chinese character is square. */
export const widthOf = (label) =>
  [...label].reduce((width, one) => width + (one > "\u2e80" ? 12 : 5.8), 0);
