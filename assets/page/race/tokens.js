/* Draws tokens as chips, and the prompt that they follow. */

import { html } from "#page/race/html.js";
import { makeVisible } from "#page/race/text.js";

const UNNAMEABLE_STATES = ["rejected", "discarded", "cut", "pending"]; // a server can leave out the text of these
export const STATE_MARKS = /** @type {Record<string, string>} */ ({
  accepted: "✓",
  rejected: "✗",
  discarded: "·",
  resampled: "↻",
  bonus: "+1",
  pending: "",
  plain: "",
  cut: "·",
});

function createBody(/** @type {string} */ piece) {
  const leading = /^ +/.exec(piece),
    spaces = leading ? leading[0].length : 0,
    rest = makeVisible(piece.slice(spaces));
  const spaceSigns = Array.from({ length: Math.min(spaces, 3) }, () => html("i", { class: "sd-sp" }));
  return html(
    "span",
    { class: "sd-x" },
    spaceSigns,
    spaces > 3 ? "×" + spaces + (rest ? " " : "") : null,
    rest || (spaces ? null : "∅"),
  );
}

/* Splits a token at its last line break, because the text after the break belongs to the next line. */
export function splitAtBreak(/** @type {string} */ piece) {
  const breakAt = piece.lastIndexOf("\n") + 1;
  return breakAt && breakAt < piece.length ? [piece.slice(0, breakAt), piece.slice(breakAt)] : [piece];
}

/** @param {PlayerTexts} texts @param {string} piece @param {State} state @param {string} [tag]
 * @param {string} [status] */
export function createChip(texts, piece, state, tag = "button", status = texts.status[state]) {
  const unnamed = piece === "" && UNNAMEABLE_STATES.includes(state),
    name = unnamed
      ? texts.server.unnamed
      : (/^ /.test(piece) ? texts.space + " " : "") + (piece.trim() || (/\n/.test(piece) ? texts.line_break : ""));
  const more =
    tag === "button" ? { type: "button", tabindex: -1 } : { title: unnamed ? texts.server.unnamed_tip : null };
  const node = html(
    tag,
    {
      class: "sd-tok sd-" + state,
      "aria-label": name + ", " + status,
      "data-unnamed": unnamed ? "" : null,
      ...more,
    },
    unnamed ? html("span", { class: "sd-x" }) : createBody(piece),
  );
  if (STATE_MARKS[state]) node.append(html("span", { class: "sd-m", "aria-hidden": "true" }, STATE_MARKS[state]));
  return node;
}
/** Returns the words for a token's state. A discarded draft that has a coin (block verification) has its own words.
 * @param {PlayerTexts} texts @param {State} state @param {{ draft?: Draft }} options */
export const statusOf = (texts, state, { draft }) =>
  state === "discarded" && draft?.u != null ? texts.status.late : texts.status[state];

/* Creates the prompt of a run; the text of the chat template around it is grey. */
export function createPrompt(/** @type {Header} */ header, /** @type {(text: string) => string} */ format) {
  const chat = (header.models || {}).chat,
    prompt = format(header.prompt || "");
  if (!Array.isArray(chat) || chat.length !== 2 || chat.some((text) => typeof text !== "string"))
    return html("span", { class: "sd-prompt" }, prompt);
  const [before, after] = chat.map((text) => html("span", { class: "sd-template" }, format(text)));
  return html("span", { class: "sd-prompt sd-asked" }, before, prompt, after);
}
