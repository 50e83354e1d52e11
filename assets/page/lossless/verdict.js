/* The verdict on a pair in words: which checks fail, and why one of them may have missed the mistake. */

import { fillText, joinSentences } from "#page/race/text.js";
import { sampleAt, verdictOf, drawsNeeded } from "#page/lossless/reading.js";
import { formatCount, formatRoughly } from "#page/lossless/format.js";

/* `named` are the mistakes. */
export function createVerdictTexts(W, named) {
  function sentence(certificate, kind, failed, checks, asked) {
    const V = W.verdict,
      needed = drawsNeeded(certificate),
      sample = sampleAt(certificate, asked),
      draws = sample ? formatCount(sample[0]) : "0";
    if (kind === "good") return V.right;
    if (kind === "missed" && certificate.least_k > certificate.k)
      return fillText(V.shallow, { least: certificate.least_k, k: certificate.k });
    if (kind === "missed")
      return needed
        ? fillText(V.small, { draws, needed: formatRoughly(needed) })
        : fillText(V.unlisted, { draws });
    const said = [
      fillText(V.wrong, {
        mistake: named[certificate.mistake] ? named[certificate.mistake].title : "–",
        count: V.counts[failed],
        fail: failed === 1 ? V.fails : V.fail,
      }),
    ];
    if (checks.closed) said.push(V.hidden);
    else if (checks.sampled && needed > sample[0])
      said.push(fillText(V.needs, { draws, needed: formatRoughly(needed) }));
    if (checks.greedy) said.push(V.greedy_blind);
    return joinSentences(said);
  }

  /* Of a certificate after so many draws: its kind, and the sentence. */
  return (certificate, draws) => {
    const { kind, failed, checks } = verdictOf(certificate, draws);
    return { kind, said: sentence(certificate, kind, failed, checks, draws) };
  };
}
