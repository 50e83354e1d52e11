/* The verdict on a pair in words: which checks fail, and why one of them may have missed the mistake. */

import { words, sentences, chance } from "#page/race/text.js";
import { sampleAt, verdictOf, neededBy, count, roughly } from "#page/lossless/reading.js";

/* `named` are the mistakes; `healthy` is the certificate without one, if it is there. */
export function verdictWords(W, named) {
  function sentence(told, kind, failed, checks, asked, healthy) {
    const V = W.verdict,
      needed = neededBy(told),
      sample = sampleAt(told, asked),
      draws = sample ? count(sample[0]) : "0";
    if (kind === "good")
      return told.harmless && healthy
        ? words(V.harmless[told.mistake], {
            kept: chance(told.closed.overlap),
            usual: chance(healthy.closed.overlap),
          })
        : V.right;
    if (kind === "missed" && told.least_k > told.k)
      return words(V.shallow, { least: told.least_k, k: told.k });
    if (kind === "missed")
      return words(needed ? V.small : told.beyond ? V.unlisted : "", {
        draws,
        needed: roughly(needed || told.beyond),
      });
    const said = [
      words(V.wrong, {
        mistake: named[told.mistake] ? named[told.mistake].title : "–",
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
  return (told, draws, healthy) => {
    const { kind, failed, checks } = verdictOf(told, draws);
    return { kind, said: sentence(told, kind, failed, checks, draws, healthy) };
  };
}
