"""Suffix decoding: guess what most often followed the longest words that the text repeats.

Needs no model. Where prompt lookup copies after three tokens, this looks back as far as the text agrees with itself,
and drafts the further the more agrees: long copies in edits and loops, none after a chance repetition.
Oliaro et al. 2024, arXiv 2411.04975.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..sampling import Chooser
from ..types import Proposal, SamplingParams


class SuffixDrafter:
    """Of all suffixes of the text that occurred before, the one whose continuation is expected to hold for longest.

    A node of the text's suffix tree is here the list of places where a suffix ended. It is narrowed token by token,
    from the end of the text backwards, so that no tree has to be kept. A continuation takes the most frequent next
    token at each step; its chance is the product of their shares, and its score the sum of those chances, which is the
    number of tokens that it expects to be kept. It ends at `k` tokens, at `factor` times as many as the suffix has and
    `offset` more, and where its chance falls below `floor`. A copy is not a draw, so each token is a point mass.

    The paper drafts as many as the suffix has. Where a check of few tokens costs little more than a step, as on the
    processors that this was tuned on, a match that has to double from 1, 2 and 4 misses too much.
    """

    name = "suffix"
    LONGEST = 32  # tokens compared backwards
    MOST = 256  # latest places looked at: a text of one word over and over stays cheap

    def __init__(self, factor: int = 2, offset: int = 2, floor: float = 0.1) -> None:
        self.factor, self.offset, self.floor = factor, offset, floor
        self._read = 0
        self._ends: defaultdict[int, list[int]] = defaultdict(list)  # token -> the places right after it

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        best: list[int] = []
        score, places = 0.0, 0
        for length, ends in reversed(self._suffixes(tokens)):
            most = min(k, self.factor * length + self.offset)
            if score >= most:
                break  # a shorter suffix drafts no more
            if len(ends) == places:
                continue  # the same places as of a longer one
            places = len(ends)
            draft, expected = self._continued(tokens, ends, most)
            if expected > score:
                best, score = draft, expected
        return Proposal.chain(best) if best else Proposal()

    def _suffixes(self, tokens: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Suffixes that occurred before, shortest first, with the places where they ended, latest first."""
        for end in range(max(1, self._read), len(tokens)):
            self._ends[tokens[end - 1]].append(end)
        self._read = len(tokens)
        found = []
        ends = self._ends[tokens[-1]][: -self.MOST - 1 : -1] if tokens else []
        length = 1
        while ends and length <= self.LONGEST:
            found.append((length, ends))
            ends = [end for end in ends if end > length and tokens[end - length - 1] == tokens[-length - 1]]
            length += 1
        return found

    def _continued(self, tokens: Sequence[int], ends: list[int], depth: int) -> tuple[list[int], float]:
        """The likeliest continuation by its own count, and how many of its tokens are expected to be kept."""
        source = list(tokens)
        chance, expected = 1.0, 0.0
        for step in range(depth):
            # A copy may run on into itself: a loop continues as a loop.
            token = source[ends[0] + step]
            if len(ends) > 1:
                token, count = Counter(source[end + step] for end in ends).most_common(1)[0]
                chance *= count / len(ends)
                if chance < self.floor:
                    break
                ends = [end for end in ends if source[end + step] == token]
            expected += chance
            source.append(token)
        return source[len(tokens) :], expected
