/* Writes the verdict: which checks fail, or why all may have missed a mistake. */

import { fillText, joinSentences } from "#page/race/text.js";
import { sampleAt, verdictOf, drawsNeeded } from "#page/lossless/reading.js";
import { formatCount, formatRoughly } from "#page/lossless/format.js";

export function createVerdictTexts(/** @type {LosslessTexts} */ texts) {
  /** @param {Certificate} certificate @param {Kind} kind @param {number} failedCount @param {any} checks
   * @param {number} draws */
  function createSentence(certificate, kind, failedCount, checks, draws) {
    const labels = texts.verdict,
      needed = drawsNeeded(certificate),
      sample = sampleAt(certificate, draws),
      drawsText = sample ? formatCount(sample[0]) : "0";
    if (kind === "good")
      return fillText(/** @type {Record<string, string>} */ (labels.right)[certificate.pair], {
        paths: certificate.exact && formatCount(certificate.exact.paths),
      });
    if (kind === "missed" && certificate.least_k > certificate.k)
      return fillText(labels.shallow, { least: certificate.least_k, k: certificate.k });
    if (kind === "missed")
      return needed
        ? fillText(labels.small, { draws: drawsText, needed: formatRoughly(needed) })
        : fillText(labels.unlisted, { draws: drawsText });
    const sentences = [
      fillText(labels.wrong, {
        mistake: texts.mistakes[certificate.mistake]?.title ?? "–",
        count: labels.counts[failedCount],
        fail: failedCount === 1 ? labels.fails : labels.fail,
      }),
    ];
    if (checks.closed) sentences.push(labels.hidden);
    else if (checks.sampled && needed > sample[0])
      sentences.push(fillText(labels.needs, { draws: drawsText, needed: formatRoughly(needed) }));
    if (checks.greedy) sentences.push(labels.greedy_blind);
    return joinSentences(sentences);
  }

  return (/** @type {Certificate} */ certificate, /** @type {number} */ draws) => {
    const { kind, failed, checks } = verdictOf(certificate, draws);
    const title = kind === "good" ? texts.verdict.good[/** @type {"toy"} */ (certificate.pair)] : texts.verdict[kind];
    return { kind, title, sentence: createSentence(certificate, kind, failed, checks, draws) };
  };
}
