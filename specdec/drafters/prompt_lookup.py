"""Prompt lookup: what followed the last few tokens earlier in the text is drafted again.

Needs no model. Wins on text that repeats itself (quotations, code edits, summaries).
Apoorv Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import CopyingDrafter

MAX_NGRAM = 3  # tokens of the longest suffix that is looked up


class PromptLookupDrafter(CopyingDrafter):
    """Copies what followed the longest suffix of 3, 2 or 1 tokens that occurred before, at its latest occurrence.

    With text `a b c d a b` the suffix `a b` matches at the start, so the draft is `c d a b …`.
    A copy is not a draw, so each token is a point mass.
    """

    name = "prompt_lookup"

    def __init__(self) -> None:
        super().__init__()
        self._indexed = 0
        self._ends: dict[tuple[int, ...], int] = {}  # n-gram -> where its latest occurrence ended

    def copied(self, text: Sequence[int], k: int) -> list[int]:
        # N-grams that end at the end of the text are indexed by the next call, so that the suffix never finds itself.
        for end in range(max(1, self._indexed), len(text)):
            for n in range(1, min(MAX_NGRAM, end) + 1):
                self._ends[tuple(text[end - n : end])] = end
        self._indexed = len(text)
        for n in range(min(MAX_NGRAM, len(text)), 0, -1):
            match = self._ends.get(tuple(text[len(text) - n :]))
            if match is not None:
                source = list(text)
                for i in range(match, match + k):
                    source.append(source[i])  # a copy may run on into itself: a loop continues as a loop
                return source[len(text) :]
        return []
