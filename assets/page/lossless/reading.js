/* Interprets a certificate: which checks pass, and what that means. Uses no DOM. */

export const EXACT = 1e-9, // probabilities that differ by at most this much count as equal
  FALSE_ALARM = 1e-9, // the check fails if the bound on a sample's p-value is below this
  NEAR_TIE = 0.05; // logits that differ by at most this much are a near tie
export const FIRST_MISTAKES = 5, // so many mistakes are always shown; the others are in a fold
  LOSSY_RULES = ["typical"]; // choices, not mistakes

/* Returns the sample of `draws` draws, or else the latest. A sample is [draws, figures by text length]. */
export const sampleAt = (/** @type {Certificate} */ certificate, /** @type {number} */ draws) =>
  certificate.sampled.find(([count]) => count === draws) || certificate.sampled[certificate.sampled.length - 1] || null;
export const isImplausible = (/** @type {any[]} */ [, , , , pBound]) => pBound !== null && pBound < FALSE_ALARM;
/** @param {Certificate} certificate */
export const isExact = (certificate) => certificate.closed.error !== null && certificate.closed.error <= EXACT;

/* Returns which checks pass. `sampled` is null if no sample was drawn. */
export function checksOf(/** @type {Certificate} */ certificate, /** @type {number} */ draws) {
  const sample = sampleAt(certificate, draws);
  return {
    closed: isExact(certificate),
    sampled: sample ? !sample[1].some(isImplausible) : null,
    greedy: certificate.greedy.equal === certificate.greedy.of,
  };
}

/* Returns the verdict. "missed" means that a mistake is planted, but no check fails. */
export function verdictOf(/** @type {Certificate} */ certificate, /** @type {number} */ draws) {
  const checks = checksOf(certificate, draws),
    failed = Object.values(checks).filter((passed) => passed === false).length;
  return {
    checks,
    failed,
    kind: /** @type {Kind} */ (failed ? "bad" : certificate.mistake ? "missed" : "good"),
  };
}

/* Returns how many draws would show the mistake: an estimate, or the first sample that did. */
export function drawsNeeded(/** @type {Certificate} */ certificate) {
  if (certificate.exact) return certificate.exact.needed;
  return (
    certificate.closed.needed ||
    (certificate.sampled.find(([, distances]) => distances.some(isImplausible)) || [null])[0]
  );
}
