/* The verdict on a pair in words: which checks fail, and why one of them may have missed the mistake. */

import { words, sentences } from "#page/race/text.js";
import { sampleAt, verdictOf, neededBy, count, roughly } from "#page/lossless/reading.js";

/* `named` are the mistakes. */
export function verdictWords(W, named) {
  function sentence(certificate, kind, failed, checks, asked) {
    const V = W.verdict,
      needed = neededBy(certificate),
      sample = sampleAt(certificate, asked),
      draws = sample ? count(sample[0]) : "0";
    if (kind === "good") return V.right;
    if (kind === "missed" && certificate.least_k > certificate.k)
      return words(V.shallow, { least: certificate.least_k, k: certificate.k });
    if (kind === "missed")
      return needed
        ? words(V.small, { draws, needed: roughly(needed) })
        : words(V.unlisted, { draws });
    const said = [
      words(V.wrong, {
        mistake: named[certificate.mistake] ? named[certificate.mistake].title : "–",
        count: V.counts[failed],
        fail: failed === 1 ? V.fails : V.fail,
      }),
    ];
    if (checks.closed) said.push(V.hidden);
    else if (checks.sampled && needed > sample[0])
      said.push(words(V.needs, { draws, needed: roughly(needed) }));
    if (checks.greedy) said.push(V.greedy_blind);
    return sentences(said);
  }

  /* Of a certificate after so many draws: its kind, and the sentence. */
  return (certificate, draws) => {
    const { kind, failed, checks } = verdictOf(certificate, draws);
    return { kind, said: sentence(certificate, kind, failed, checks, draws) };
  };
}
