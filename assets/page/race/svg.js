/* Builds the SVG elements of the charts. */

import { createId, setUp } from "#page/race/html.js";

/** @param {string} tag @param {Attributes} attributes @param {...Child} children */
export const svg = (tag, attributes, ...children) =>
  setUp(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
/** @param {number} x @param {number} y @param {Child} words @param {string} [cls] @param {string} [anchor] */
export const svgText = (x, y, words, cls, anchor) => svg("text", { x, y, class: cls, "text-anchor": anchor }, words);
/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} [cls]
 * @param {Attributes} [more] */
export const svgLine = (x1, y1, x2, y2, cls, more) => svg("line", { x1, y1, x2, y2, class: cls, ...more });
/** @param {number} x @param {number} y @param {number} width @param {number} height @param {Attributes} [more] */
export const svgRect = (x, y, width, height, more) =>
  svg("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...more });
/** @param {number} width @param {number} height @param {string} label @param {...Child} children */
export const svgRoot = (width, height, label, ...children) =>
  svg("svg", { width, height, role: "img", "aria-label": label }, children);

/* Joins all bars that look the same into one path, because a long run has thousands of bars. */
export function createBarPaths() {
  const looks = new Map(),
    at = (/** @type {number} */ v) => v.toFixed(2);
  /** @param {string} look @param {number} x @param {number} y @param {number} width @param {number} height
   * @param {number} [round] */
  function add(look, x, y, width, height, round = 0) {
    if (!(width > 0 && height > 0)) return;
    const r = width < 6 ? 0 : round,
      corner = (/** @type {number[]} */ ...at) => (r ? `q${at.join(" ")}` : "");
    const bar = [
      `M${at(x + r)} ${at(y)}h${at(width - 2 * r)}${corner(r, 0, r, r)}v${at(height - 2 * r)}`,
      `${corner(0, r, -r, r)}h${at(2 * r - width)}${corner(-r, 0, -r, -r)}v${at(2 * r - height)}`,
      `${corner(0, -r, r, -r)}z`,
    ].join("");
    looks.set(look, (looks.get(look) || "") + bar);
  }
  return {
    add,
    /** @param {(look: string) => Attributes} attributesOf */
    paths: (attributesOf) => [...looks].map(([look, d]) => svg("path", { d, ...attributesOf(look) })),
  };
}
export function createHatch() {
  const id = createId("hatch");
  const pattern = svg(
    "pattern",
    { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svgRect(0, 0, 5, 5, { class: "sd-f-rejected" }),
    svgLine(0, 0, 0, 5, "sd-s-rejected", { "stroke-width": 1.6 }),
  );
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}
