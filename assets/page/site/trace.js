/* Checks whether a text is a run that the player can read, because a file or a link can hold anything. */

import { foldEvents } from "#page/race/log.js";

const hasTextPieces = (/** @type {any} */ { event, pieces }) =>
  event !== "committed" || (Array.isArray(pieces) && pieces.every((piece) => typeof piece === "string"));

/* Returns the text as the log of a recorded run; "" if it is not a run, or longer than `maxLength` characters. */
export function readTrace(/** @type {string} */ text, /** @type {number} */ maxLength) {
  if (typeof text !== "string" || text.length > maxLength) return "";
  try {
    const lines = text
        .replace(/^\uFEFF/, "")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
      [{ event, prompt }] = lines,
      run = /** @type {any} */ (foldEvents(lines));
    if (event !== "header" || typeof prompt !== "string" || !lines.every(hasTextPieces)) return "";
    if (!Object.values(run.lanes).some((lane) => lane.cycles.length)) return "";
    lines[0].source = "recorded";
    return lines.map((line) => JSON.stringify(line) + "\n").join("");
  } catch {
    return ""; // not JSON, or not a run
  }
}
