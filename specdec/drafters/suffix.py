"""Suffix decoding: find earlier copies of the text's last tokens, and draft what followed them most often.

It needs no model. It compares up to 32 tokens, while prompt lookup compares at most three. The longer the match, the
more tokens it may draft. Oliaro et al. 2024, arXiv 2411.04975.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from .base import CopyingDrafter


class SuffixDrafter(CopyingDrafter):
    """Looks up suffixes of the text, and drafts the continuation with the most expected accepted tokens.

    The paper builds a suffix tree. This class lists the places where a suffix occurred before. A continuation takes
    the most frequent next token at each step; the token's share is the fraction of places where it comes next. The
    product of the shares so far is the token's chance of acceptance. The sum of these chances is the expected number of
    accepted tokens. The continuation ends where the chance falls below `floor`, or at
    min(`k`, `factor` · (length of the suffix) + `offset`) tokens.
    """

    name = "suffix"
    MAX_SUFFIX = 32  # tokens
    MAX_PLACES = 256  # only the latest places are compared, so that repetitive texts stay cheap

    def __init__(
        self, around: tuple[int, int] = (0, 0), *, factor: int = 2, offset: int = 2, floor: float = 0.1
    ) -> None:
        super().__init__(around)
        self.factor, self.offset, self.floor = factor, offset, floor
        self._ends: defaultdict[int, list[int]] = defaultdict(list)  # token -> the index after each of its occurrences
        self._indexed = 0  # length of the text in the last call

    def copied(self, text: Sequence[int], k: int) -> list[int]:
        for end in range(max(1, self._indexed), len(text)):
            self._ends[text[end - 1]].append(end)
        self._indexed = len(text)
        best: list[int] = []
        score, occurrences = 0.0, 0
        for length, ends in reversed(self._suffixes(text)):
            depth = min(k, self.factor * length + self.offset)
            if score >= depth:
                break  # a score is at most its depth, and no shorter suffix has a larger depth
            if len(ends) == occurrences:
                continue  # the suffix that is one token longer occurred at the same places
            occurrences = len(ends)
            draft, expected = self._continuation(text, ends, depth)
            if expected > score:
                best, score = draft, expected
        return best

    def _suffixes(self, text: Sequence[int]) -> list[tuple[int, list[int]]]:
        """List the length of each suffix that occurred before, and the ends of its occurrences, latest first."""
        suffixes = []
        ends = self._ends[text[-1]][: -self.MAX_PLACES - 1 : -1] if text else []
        length = 1
        while ends and length <= self.MAX_SUFFIX:
            suffixes.append((length, ends))
            ends = [end for end in ends if end > length and text[end - length - 1] == text[-length - 1]]
            length += 1
        return suffixes

    def _continuation(self, text: Sequence[int], ends: list[int], depth: int) -> tuple[list[int], float]:
        """Return the most frequent continuation, and its expected number of accepted tokens."""
        source = list(text)
        chance, expected = 1.0, 0.0
        for step in range(depth):
            # `source` includes the draft so far, so that a repetition continues.
            token = source[ends[0] + step]
            if len(ends) > 1:
                following = [source[end + step] for end in ends]
                if (count := following.count(token)) < len(following):
                    token, count = Counter(following).most_common(1)[0]
                    ends = [end for end, other in zip(ends, following, strict=True) if other == token]
                    chance *= count / len(following)
                    if chance < self.floor:
                        break
            expected += chance
            source.append(token)
        return source[len(text) :], expected
