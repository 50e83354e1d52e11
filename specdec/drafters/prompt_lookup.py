"""Prompt lookup: find an earlier occurrence of the text's last few tokens, and draft the tokens that followed it.

It needs no model, and pays off if the text repeats itself (quotations, code edits, summaries).
Apoorv Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import CopyingDrafter

MAX_NGRAM = 3  # tokens of the longest suffix that is looked up


class PromptLookupDrafter(CopyingDrafter):
    """Finds the latest earlier occurrence of the last 3 tokens, or else of 2 or 1, and copies the tokens after it.

    In the text `a b c d a b` the suffix `a b` matches at the start, so the draft is `c d a b …`.
    Each copied token is a point mass.
    """

    name = "prompt_lookup"

    def __init__(self, around: tuple[int, int] = (0, 0)) -> None:
        super().__init__(around)
        self._indexed = 0
        self._ends: dict[tuple[int, ...], int] = {}  # n-gram -> the index after its latest occurrence

    def copied(self, text: Sequence[int], k: int) -> list[int]:
        # N-grams at the very end of the text are indexed by the next call, so that a suffix does not find itself.
        for end in range(max(1, self._indexed), len(text)):
            for n in range(1, min(MAX_NGRAM, end) + 1):
                self._ends[tuple(text[end - n : end])] = end
        self._indexed = len(text)
        for n in range(min(MAX_NGRAM, len(text)), 0, -1):
            match = self._ends.get(tuple(text[len(text) - n :]))
            if match is not None:
                source = list(text)
                for i in range(match, match + k):
                    source.append(source[i])  # can be a token of this draft
                return source[len(text) :]
        return []
