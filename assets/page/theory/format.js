/* Formats numbers with their units, and looks up entries of lists. */

import { formatDuration, toFixed } from "#page/race/format.js";

export const formatTimes = (/** @type {number} */ x, digits = 2) => toFixed(x, digits) + "×";
export const formatSmall = (/** @type {number} */ x) => String(+x.toPrecision(3));
export const findById = (/** @type {any[]} */ list, /** @type {string} */ id) => list.find((entry) => entry.id === id);
/** @param {number} from @param {number} to */
export const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
export const formatSeconds = (/** @type {number} */ seconds) => formatDuration(seconds * 1000);
export const formatBytes = (/** @type {number} */ bytes) =>
  bytes >= 1e13
    ? toFixed(bytes / 1e12, 1) + " TB"
    : toFixed(bytes / 1e9, bytes >= 1e11 ? 0 : bytes >= 1e9 ? 1 : 2) + " GB";
