"""Suffix decoding: guess what most often followed the longest ending of the text that occurred before.

Needs no model. Where prompt lookup copies after three tokens, this looks back as far as the text agrees with itself,
and the longer the match, the longer the copy: long ones in edits and loops, none after a chance repetition.
Oliaro et al. 2024, arXiv 2411.04975.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..models.base import common_prefix
from .base import CopyingDrafter

SPAN = 3  # tokens of a word at most, old or new
MAX_WORDS = 8  # remembered; the oldest is forgotten
GAP = -1  # between the text with its words replaced and the text itself: no token

Word = tuple[int, ...]


def replacement(source: Sequence[int], text: Sequence[int]) -> tuple[Word, Word] | None:
    """Find the shortest words at the beginning of both, after which both go on with the same token."""
    for total in range(2, 2 * SPAN + 1):
        for old in range(max(1, total - SPAN), min(SPAN, total - 1) + 1):
            new = total - old
            if old < len(source) and new < len(text) and source[old] == text[new]:
                return tuple(source[:old]), tuple(text[:new])
    return None


class Replacements:
    """Remembers what each replaced word became last: where a copy broke off at it, the new word is expected again.

    An edit changes the same few words at many places. With the new words put in, the text before predicts what follows.
    """

    def __init__(self) -> None:
        self.words: dict[Word, Word] = {}

    def learn(self, old: Word, new: Word) -> None:
        """Learn that `old` became `new`, also for words that had become `old`. A word that is itself again goes."""
        words = {word: new if became == old else became for word, became in self.words.items()} | {old: new}
        self.words = dict([(word, became) for word, became in words.items() if word != became][-MAX_WORDS:])

    def apply(self, tokens: Sequence[int]) -> list[int]:
        """Return `tokens` with all of these words replaced; of words that begin alike the longest."""
        replaced: list[int] = []
        at = 0
        while at < len(tokens):
            word = next((w for n in range(SPAN, 0, -1) if (w := tuple(tokens[at : at + n])) in self.words), None)
            replaced += self.words[word] if word else tokens[at : at + 1]
            at += len(word or (0,))
        return replaced


class SuffixDrafter(CopyingDrafter):
    """Continues that suffix of the text, among all that occurred before, whose continuation should hold for longest.

    A node of the text's suffix tree is here the list of places where a suffix ended. The list is narrowed token by
    token, from the end of the text backwards, so that no tree has to be stored. A continuation takes the most frequent
    next token at each step; its chance is the product of their shares, and its score the sum of those chances, which is
    the number of tokens expected to be accepted. It ends at `k` tokens, at `factor` times as many as the suffix has and
    `offset` more, and where its chance falls below `floor`. A copy is not a draw, so each token is a point mass.

    Two things are not in the paper. It drafts as many tokens as the suffix has: where a check of few tokens costs
    little more than a step, as on the processors that this was tuned on, a match that has to double from 1, 2 and 4
    misses too much. And where a long copy breaks off at a word and goes on after another one, the text is also searched
    with that word replaced (`replacing`): what is renamed once is renamed again.
    """

    name = "suffix"
    MAX_SUFFIX = 32  # tokens compared backwards
    MAX_PLACES = 256  # latest places looked at: a text of one word over and over stays cheap
    MIN_COPY = 4  # tokens after which a copy is no accident, and the word that ends it a replacement

    def __init__(self, factor: int = 2, offset: int = 2, floor: float = 0.1, replacing: bool = True) -> None:
        super().__init__()
        self.factor, self.offset, self.floor, self.replacing = factor, offset, floor, replacing
        self._replaced = Replacements()
        self._searched: list[int] = []  # the text; after the first replacement, as it reads with them, GAP, the text
        self._ends: defaultdict[int, list[int]] = defaultdict(list)  # token -> the places right after it
        self._indexed = 0  # places that are in `_ends`
        self._length = 0  # tokens of the text at the last call
        self._copy: tuple[list[int], int, int] = ([], 0, 0)  # the last draft, its place, how many tokens agreed before
        self._break: tuple[int, int] | None = None  # in `_searched` and in the text: where a long copy broke off

    def copied(self, text: Sequence[int], k: int) -> list[int]:
        self._follow(text)
        best: list[int] = []
        place = agreed = 0
        score, places = 0.0, 0
        for length, ends in reversed(self._suffixes()):
            most = min(k, self.factor * length + self.offset)
            if score >= most:
                break  # a shorter suffix drafts no more
            if len(ends) == places:
                continue  # the same places as of a longer one
            places = len(ends)
            draft, expected, end = self._continued(ends, most)
            if expected > score:
                best, score, place, agreed = draft, expected, end, length
        self._copy = (best, place, agreed)
        return best

    def _follow(self, tokens: Sequence[int]) -> None:
        """Index the new text; see where the last draft broke off, and learn the word that came instead."""
        draft, place, agreed = self._copy
        grown = tokens[self._length :]
        accepted = common_prefix(draft, grown)
        if self.replacing and accepted < min(len(draft), len(grown)) and agreed + accepted >= self.MIN_COPY:
            self._break = (place + accepted, self._length + accepted)
        self._searched += grown
        self._length = len(tokens)
        if self._break is not None:
            there, here = self._break
            words = replacement(self._searched[there : there + SPAN + 1], tokens[here : here + SPAN + 1])
            if words is not None:
                self._replaced.learn(*words)
                self._searched = [*self._replaced.apply(tokens), GAP, *tokens]
                self._ends.clear()
                self._indexed = 0
            if words is not None or len(tokens) > here + SPAN:
                self._break = None
        for end in range(max(1, self._indexed), len(self._searched)):
            self._ends[self._searched[end - 1]].append(end)
        self._indexed = len(self._searched)

    def _suffixes(self) -> list[tuple[int, list[int]]]:
        """List suffixes that occurred before, shortest first, with the places where they ended, latest first."""
        text, suffixes = self._searched, []
        ends = self._ends[text[-1]][: -self.MAX_PLACES - 1 : -1] if text else []
        length = 1
        while ends and length <= self.MAX_SUFFIX:
            suffixes.append((length, ends))
            ends = [end for end in ends if end > length and text[end - length - 1] == text[-length - 1]]
            length += 1
        return suffixes

    def _continued(self, ends: list[int], depth: int) -> tuple[list[int], float, int]:
        """Return the likeliest continuation, how many of its tokens should be accepted, and where it stands."""
        source = list(self._searched)
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
            if token == GAP:
                break
            expected += chance
            source.append(token)
        return source[len(self._searched) :], expected, ends[0]
