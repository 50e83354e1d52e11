/* Reads a certificate of a pair: which checks pass, and what that means; uses no DOM. */

export const EXACT = 1e-9,
  FALSE_ALARM = 1e-9,
  NEAR_TIE = 0.05; // as in the engine; logits this close are a near tie
export const FIRST_MISTAKES = 8; // mistakes that show at once

/* Returns the sample after so many draws, else the latest one: [draws, [one distance per length]]. */
export const sampleAt = (certificate, draws) =>
  certificate.sampled.find(([count]) => count === draws) || certificate.sampled[certificate.sampled.length - 1] || null;
export const isImplausible = (distance) => distance[4] !== null && distance[4] < FALSE_ALARM;
export const isExact = (certificate) => certificate.closed.error !== null && certificate.closed.error <= EXACT;

/* Returns which checks pass; null for the sample if none was drawn. */
export function checksOf(certificate, draws) {
  const sample = sampleAt(certificate, draws);
  return {
    closed: isExact(certificate),
    sampled: sample ? !sample[1].some(isImplausible) : null,
    greedy: certificate.greedy.equal === certificate.greedy.of,
  };
}

/* Returns the verdict; "missed" means that a mistake is planted and no check shows it. */
export function verdictOf(certificate, draws) {
  const checks = checksOf(certificate, draws),
    failed = Object.values(checks).filter((passed) => passed === false).length;
  return {
    checks,
    failed,
    kind: failed ? "bad" : certificate.mistake ? "missed" : "good",
  };
}

/* Estimates how many draws would show the mistake: from the three enumerated tokens, else from one. If that hides the
 * mistake, returns how many draws did show it. */
export function drawsNeeded(certificate) {
  if (certificate.exact) return certificate.exact.needed;
  return (
    certificate.closed.needed ||
    (certificate.sampled.find(([, distances]) => distances.some(isImplausible)) || [null])[0]
  );
}
