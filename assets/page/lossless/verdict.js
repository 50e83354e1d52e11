/* The verdict on a pair in words: which checks fail, and why one of them may have missed the mistake. */

import { fillText, joinSentences } from "#page/race/text.js";
import { sampleAt, verdictOf, drawsNeeded } from "#page/lossless/reading.js";
import { formatCount, formatRoughly } from "#page/lossless/format.js";

/* `named` are the mistakes. */
export function createVerdictTexts(texts, mistakes) {
  function createSentence(certificate, kind, failed, checks, draws0) {
    const labels = texts.verdict,
      needed = drawsNeeded(certificate),
      sample = sampleAt(certificate, draws0),
      draws = sample ? formatCount(sample[0]) : "0";
    if (kind === "good") return labels.right;
    if (kind === "missed" && certificate.least_k > certificate.k)
      return fillText(labels.shallow, { least: certificate.least_k, k: certificate.k });
    if (kind === "missed")
      return needed
        ? fillText(labels.small, { draws, needed: formatRoughly(needed) })
        : fillText(labels.unlisted, { draws });
    const sentences = [
      fillText(labels.wrong, {
        mistake: mistakes[certificate.mistake] ? mistakes[certificate.mistake].title : "–",
        count: labels.counts[failed],
        fail: failed === 1 ? labels.fails : labels.fail,
      }),
    ];
    if (checks.closed) sentences.push(labels.hidden);
    else if (checks.sampled && needed > sample[0])
      sentences.push(fillText(labels.needs, { draws, needed: formatRoughly(needed) }));
    if (checks.greedy) sentences.push(labels.greedy_blind);
    return joinSentences(sentences);
  }

  /* Of a certificate after so many draws: its kind, and the sentence. */
  return (certificate, draws) => {
    const { kind, failed, checks } = verdictOf(certificate, draws);
    return { kind, said: createSentence(certificate, kind, failed, checks, draws) };
  };
}
