"""Suffix decoding: guess what most often followed the longest ending of the text that occurred before.

Needs no model. Where prompt lookup copies after three tokens, this looks back as far as the text agrees with itself,
and the longer the match, the longer the copy: long ones in edits and loops, none after a chance repetition.
Oliaro et al. 2024, arXiv 2411.04975.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from .base import CopyingDrafter


class SuffixDrafter(CopyingDrafter):
    """Continues that suffix of the text, among all that occurred before, whose continuation should hold for longest.

    A node of the text's suffix tree is here the list of places where a suffix ended. The list is narrowed token by
    token, from the end of the text backwards, so that no tree has to be stored. A continuation takes the most frequent
    next token at each step; its chance is the product of their shares, and its score the sum of those chances, which is
    the number of tokens expected to be accepted. It ends at `k` tokens, at `factor` times as many as the suffix has and
    `offset` more, and where its chance falls below `floor`. A copy is not a draw, so each token is a point mass.

    The paper drafts as many tokens as the suffix has. This drafts more: where a check of few tokens costs little more
    than a step, a match that has to double from 1, 2 and 4 misses too much.
    """

    name = "suffix"
    MAX_SUFFIX = 32  # tokens compared backwards
    MAX_PLACES = 256  # latest places looked at: a text of one word over and over stays cheap

    def __init__(self, factor: int = 2, offset: int = 2, floor: float = 0.1) -> None:
        super().__init__()
        self.factor, self.offset, self.floor = factor, offset, floor
        self._ends: defaultdict[int, list[int]] = defaultdict(list)  # token -> the places right after it
        self._indexed = 0  # places that are in `_ends`

    def copied(self, text: Sequence[int], k: int) -> list[int]:
        for end in range(max(1, self._indexed), len(text)):
            self._ends[text[end - 1]].append(end)
        self._indexed = len(text)
        best: list[int] = []
        score, places = 0.0, 0
        for length, ends in reversed(self._suffixes(text)):
            most = min(k, self.factor * length + self.offset)
            if score >= most:
                break  # a shorter suffix drafts no more
            if len(ends) == places:
                continue  # the same places as of a longer one
            places = len(ends)
            draft, expected = self._continued(text, ends, most)
            if expected > score:
                best, score = draft, expected
        return best

    def _suffixes(self, text: Sequence[int]) -> list[tuple[int, list[int]]]:
        """List suffixes that occurred before, shortest first, with the places where they ended, latest first."""
        suffixes = []
        ends = self._ends[text[-1]][: -self.MAX_PLACES - 1 : -1] if text else []
        length = 1
        while ends and length <= self.MAX_SUFFIX:
            suffixes.append((length, ends))
            ends = [end for end in ends if end > length and text[end - length - 1] == text[-length - 1]]
            length += 1
        return suffixes

    def _continued(self, text: Sequence[int], ends: list[int], depth: int) -> tuple[list[int], float]:
        """Return the likeliest continuation, and how many of its tokens should be accepted."""
        source = list(text)
        chance, expected = 1.0, 0.0
        for step in range(depth):
            # A copy may run on into itself: a loop continues as a loop.
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
