/* Formats the numbers of a certificate. */

export const formatCount = (/** @type {number} */ n) => Math.round(n).toLocaleString("en");
const pageLanguage = () => (typeof document === "undefined" ? "" : document.documentElement.lang) || "en";
export function formatRoughly(/** @type {number} */ n) {
  if (n < 1e6) return formatCount(Number(n.toPrecision(2)));
  const digits = { minimumSignificantDigits: 2, maximumSignificantDigits: 2 };
  return new Intl.NumberFormat(pageLanguage(), {
    notation: "compact",
    compactDisplay: "long",
    ...digits,
  }).format(n);
}
export function formatFigure(/** @type {number} */ x) {
  if (x === 0) return "0";
  if (x >= 0.001) return x.toFixed(3);
  const [digit, exponent] = x.toExponential(0).split("e-");
  return `${digit} × 10⁻${[...exponent].map((char) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[+char]).join("")}`;
}
