/* Suffix decoding (Oliaro et al. 2024, arXiv 2411.04975), as in `specdec/drafters/suffix.py`: what most often followed
 * the longest ending of the text that occurred before; and with words replaced as an edit replaced them. */

const LONGEST = 32, // tokens compared backwards
  MOST = 256, // latest places looked at
  LONG = 4, // tokens after which a copy is no chance, and the word that ends it a replacement
  FACTOR = 2,
  OFFSET = 2,
  FLOOR = 0.1,
  GAP = -1; // between the text with its words replaced and the text itself: no token
const SPAN = 3, // tokens of a word at most, old or new
  WORDS = 8; // replaced words kept; the oldest is forgotten

export class Suffix {
  replaced = new Replacements();
  /** @type {number[]} the text; after the first replacement, as it reads with them, GAP, the text */
  searched = [];
  /** @type {Map<number, number[]>} token -> the places right after it */
  ends = new Map();
  indexed = 0;
  length = 0;
  /** @type {{ draft: number[], place: number, agreed: number }} the last draft */
  copy = { draft: [], place: 0, agreed: 0 };
  /** @type {[number, number] | null} in `searched` and in the text: where a long copy broke off */
  broken = null;

  /** @param {number[]} text @param {number} k */
  copied(text, k) {
    this.follow(text);
    let best = { draft: /** @type {number[]} */ ([]), place: 0, agreed: 0 },
      score = 0,
      places = 0;
    for (const [length, ends] of this.suffixes().reverse()) {
      const most = Math.min(k, FACTOR * length + OFFSET);
      if (score >= most) break; // a shorter suffix drafts no more
      if (ends.length === places) continue; // the same places as of a longer one
      places = ends.length;
      const [draft, expected, place] = this.continued(ends, most);
      if (expected > score) [best, score] = [{ draft, place, agreed: length }, expected];
    }
    this.copy = best;
    return best.draft;
  }

  /* Read on; see where the last draft broke off, and what word was replaced where one broke off before. */
  follow(tokens) {
    const { draft, place, agreed } = this.copy,
      grown = tokens.slice(this.length),
      kept = common(draft, grown);
    if (kept < Math.min(draft.length, grown.length) && agreed + kept >= LONG)
      this.broken = [place + kept, this.length + kept];
    this.searched.push(...grown);
    this.length = tokens.length;
    if (this.broken) {
      const [there, here] = this.broken,
        word = replacement(
          this.searched.slice(there, there + SPAN + 1),
          tokens.slice(here, here + SPAN + 1),
        );
      if (word) {
        this.replaced.learn(...word);
        this.searched = [...this.replaced.read(tokens), GAP, ...tokens];
        this.ends.clear();
        this.indexed = 0;
      }
      if (word || tokens.length > here + SPAN) this.broken = null;
    }
    for (let end = Math.max(1, this.indexed); end < this.searched.length; end++) {
      const token = this.searched[end - 1];
      if (!this.ends.has(token)) this.ends.set(token, []);
      /** @type {number[]} */ (this.ends.get(token)).push(end);
    }
    this.indexed = this.searched.length;
  }

  /* Suffixes that occurred before, shortest first, with the places where they ended, latest first. */
  suffixes() {
    const text = this.searched,
      /** @type {[number, number[]][]} */ found = [];
    let ends = (this.ends.get(text[text.length - 1]) || []).slice(-MOST).reverse();
    for (let length = 1; ends.length && length <= LONGEST; length++) {
      found.push([length, ends]);
      const token = text[text.length - length - 1];
      ends = ends.filter((end) => end > length && text[end - length - 1] === token);
    }
    return found;
  }

  /* The likeliest continuation by its own count, how many of its tokens should be kept, and where it stands. */
  continued(ends, depth) {
    const source = [...this.searched];
    let chance = 1,
      expected = 0;
    for (let step = 0; step < depth; step++) {
      let token = source[ends[0] + step];
      if (ends.length > 1) {
        const found = ends.map((end) => source[end + step]);
        if (found.some((one) => one !== token)) {
          const counts = new Map();
          for (const one of found) counts.set(one, (counts.get(one) || 0) + 1);
          const most = Math.max(...counts.values());
          token = found.find((one) => counts.get(one) === most);
          ends = ends.filter((_, i) => found[i] === token);
          chance *= most / found.length;
          if (chance < FLOOR) break;
        }
      }
      if (token === GAP) break;
      expected += chance;
      source.push(token);
    }
    return /** @type {[number[], number, number]} */ ([
      source.slice(this.searched.length),
      expected,
      ends[0],
    ]);
  }
}

/* What each replaced word became last; a word is its tokens, joined by commas. */
class Replacements {
  /** @type {Map<string, string>} */
  words = new Map();

  /* A word that had become `old` becomes `fresh`, too; and one that is itself again is forgotten. */
  learn(old, fresh) {
    const all = new Map([...this.words].map(([word, is]) => [word, is === old ? fresh : is]));
    all.set(old, fresh);
    this.words = new Map([...all].filter(([word, is]) => word !== is).slice(-WORDS));
  }

  /* `tokens` with all of these words replaced; of words that begin alike the longest. */
  read(tokens) {
    const /** @type {number[]} */ found = [];
    for (let at = 0; at < tokens.length;) {
      let n = SPAN;
      while (n && !(at + n <= tokens.length && this.words.has(tokens.slice(at, at + n).join())))
        n--;
      const word = this.words.get(tokens.slice(at, at + n).join());
      if (n && word) found.push(...word.split(",").map(Number));
      else found.push(tokens[at]);
      at += n || 1;
    }
    return found;
  }
}

/** The shortest words at the beginning of both, after which both go on with the same token.
 * @returns {[string, string] | null} */
function replacement(source, text) {
  for (let total = 2; total <= 2 * SPAN; total++)
    for (let old = Math.max(1, total - SPAN); old <= Math.min(SPAN, total - 1); old++) {
      const fresh = total - old;
      if (old < source.length && fresh < text.length && source[old] === text[fresh])
        return [source.slice(0, old).join(), text.slice(0, fresh).join()];
    }
  return null;
}

function common(one, other) {
  let n = 0;
  while (n < Math.min(one.length, other.length) && one[n] === other[n]) n++;
  return n;
}
