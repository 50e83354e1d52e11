/* Reads a certificate of a pair: which checks pass, and what that means; without a document. */

export const EXACT = 1e-9,
  FALSE_ALARM = 1e-9,
  NEAR_TIE = 0.05; // as in the engine; NEAR: logits this close are a near tie
export const FIRST_MISTAKES = 8; // mistakes that are on show at once

/* The sample as it stood after so many draws, else as it stands: [draws, [one distance per length]]. */
export const sampleAt = (certificate, draws) =>
  certificate.sampled.find(([count]) => count === draws) || certificate.sampled[certificate.sampled.length - 1] || null;
export const isImplausible = (distance) => distance[4] !== null && distance[4] < FALSE_ALARM;
export const isExact = (certificate) => certificate.closed.error !== null && certificate.closed.error <= EXACT;

/* Which checks pass; null for a sample that nobody has drawn. */
export function checksOf(certificate, draws) {
  const sample = sampleAt(certificate, draws);
  return {
    closed: isExact(certificate),
    sampled: sample ? !sample[1].some(isImplausible) : null,
    greedy: certificate.greedy.equal === certificate.greedy.of,
  };
}

/* "missed" is a mistake that is there and that no check shows. */
export function verdictOf(certificate, draws) {
  const checks = checksOf(certificate, draws),
    failed = Object.values(checks).filter((passed) => passed === false).length;
  return {
    checks,
    failed,
    kind: failed ? "bad" : certificate.mistake ? "missed" : "good",
  };
}

/* About how many draws would show the mistake: by the three tokens that were enumerated, else of one.
 * Where that hides it, as many as did show it. */
export function drawsNeeded(certificate) {
  if (certificate.exact) return certificate.exact.needed;
  return (
    certificate.closed.needed ||
    (certificate.sampled.find(([, distances]) => distances.some(isImplausible)) || [null])[0]
  );
}
