"""Words that a copy replaced. Where it broke off and went on after another word, that word is expected again.

An edit changes the same few words at many places. Read with the new words, the text before is again what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

SPAN = 3  # tokens of a word at most, old or new
MOST = 8  # words kept; the oldest is forgotten

Word = tuple[int, ...]


def replacement(source: Sequence[int], text: Sequence[int]) -> tuple[Word, Word] | None:
    """The shortest words at the beginning of both, after which both go on with the same token."""
    for total in range(2, 2 * SPAN + 1):
        for old in range(max(1, total - SPAN), min(SPAN, total - 1) + 1):
            new = total - old
            if old < len(source) and new < len(text) and source[old] == text[new]:
                return tuple(source[:old]), tuple(text[:new])
    return None


class Replacements:
    """What each replaced word became last."""

    def __init__(self) -> None:
        self.words: dict[Word, Word] = {}

    def learn(self, old: Word, new: Word) -> None:
        """A word that had become `old` becomes `new`, too; and one that is itself again is forgotten."""
        words = {word: new if became == old else became for word, became in self.words.items()} | {old: new}
        self.words = dict([(word, became) for word, became in words.items() if word != became][-MOST:])

    def read(self, tokens: Sequence[int]) -> list[int]:
        """`tokens` with all of these words replaced; of words that begin alike the longest."""
        found: list[int] = []
        at = 0
        while at < len(tokens):
            word = next((w for n in range(SPAN, 0, -1) if (w := tuple(tokens[at : at + n])) in self.words), None)
            found += self.words[word] if word else tokens[at : at + 1]
            at += len(word or (0,))
        return found
