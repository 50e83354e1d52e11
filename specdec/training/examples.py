"""Store the token ids of texts that a target wrote. Each text is a prompt with its answer.

A file is a NumPy archive. `tokens` has all texts in a row, without the chat template's tokens before the prompt, and
`lengths` the length of each, and `starts` the index where its answer begins.
"""

import random
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..messages import Refused
from ..paths import write_whole

Numbers = np.ndarray[Any, np.dtype[Any]]
EARLIEST = 8  # first position whose token is learned, because an EAGLE-3 head needs some tokens before it
SHARE_OF_WINDOWS = 0.2  # share of batches whose rows span several texts, so that late positions are trained, too
WINDOW = 384  # length in tokens of a row that spans several texts
POOL = 4_096  # number of texts that are sorted by length at a time
MULTIPLE = 16  # row lengths are rounded up to a multiple of this, so that few different shapes occur


@dataclass(frozen=True)
class Example:
    """A prompt with its answer. The answer begins at the index `start`."""

    tokens: list[int]
    start: int


@dataclass(frozen=True)
class Batch:
    tokens: Numbers  # int64 [rows, n], padded with zeros
    places: Numbers  # int64 [m]: indices into the flattened tokens; the token after each belongs to an answer


class Examples:
    def __init__(self, tokens: Numbers, is_answer: Numbers, lengths: Numbers) -> None:
        self.tokens, self.is_answer, self.lengths = tokens, is_answer, lengths
        self.offsets = np.cumsum(lengths) - lengths

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def answer_tokens(self) -> int:
        return int(self.is_answer.sum())

    def split(self, one_in: int, most: int) -> tuple["Examples", "Examples"]:
        """Hold out one of `one_in` texts, by their tokens: a later call holds out the same. Return (others, held out).

        At least one is held out, at most `most` and not all, of which there must be two.
        """
        parts = np.split(self.tokens, self.offsets[1:])
        hashes = np.array([zlib.crc32(part.astype(np.int64).tobytes()) for part in parts])
        count = min(most, len(self) - 1, max(1, int((hashes < 2**32 // one_in).sum())))
        order = np.argsort(hashes, kind="stable")
        return self.select(np.sort(order[count:])), self.select(order[:count])

    def select(self, which: Numbers) -> "Examples":
        indices = np.concatenate([np.arange(self.offsets[i], self.offsets[i] + self.lengths[i]) for i in which])
        return Examples(self.tokens[indices], self.is_answer[indices], self.lengths[which])

    def most_frequent(self, count: int, vocabulary: int) -> Numbers:
        """Return the ids of the `count` most frequent answer tokens, in ascending order."""
        uses = np.bincount(self.tokens[self.is_answer], minlength=vocabulary)
        return np.sort(np.argsort(-uses, kind="stable")[:count])

    def batch(self, offsets: Numbers, lengths: Numbers) -> Batch:
        columns = np.arange(-(-int(lengths.max()) // MULTIPLE) * MULTIPLE)
        valid = columns < lengths[:, None]
        indices = np.where(valid, offsets[:, None] + columns, 0)
        answers = valid & self.is_answer[indices] & (columns >= EARLIEST)
        tokens = np.where(valid, self.tokens[indices], 0).astype(np.int64)
        return Batch(tokens, np.flatnonzero(answers) - 1)

    def in_order(self, size: int) -> Iterator[Batch]:
        """Yield all texts once, in batches of about `size` tokens."""
        for which in groups(np.argsort(self.lengths, kind="stable"), self.lengths, size):
            yield self.batch(self.offsets[which], self.lengths[which])

    def shuffled(self, size: int, rng: random.Random) -> Iterator[Batch]:
        """Yield all texts in batches of about `size` tokens: texts of similar length, or windows over several."""
        order, total = np.array(rng.sample(range(len(self)), len(self))), len(self.tokens)
        for first in range(0, len(order), POOL):
            pool = order[first : first + POOL]
            batches = groups(pool[np.argsort(self.lengths[pool])], self.lengths, size)
            rng.shuffle(batches)
            for which in batches:
                if rng.random() < SHARE_OF_WINDOWS:
                    offsets = self.offsets[which][: max(1, size // WINDOW)]
                    batch = self.batch(offsets, np.minimum(WINDOW, total - offsets))
                else:
                    batch = self.batch(self.offsets[which], self.lengths[which])
                if len(batch.places):
                    yield batch


def groups(ordered: Numbers, lengths: Numbers, size: int) -> list[Numbers]:
    """Split texts into groups of about `size` tokens after padding. `ordered` has their indices, shortest first."""
    result = []
    last = len(ordered)
    while last:
        count = min(last, max(1, size // int(lengths[ordered[last - 1]])))
        result.append(ordered[last - count : last])
        last -= count
    return result


def save(texts: Sequence[Example], path: Path) -> None:
    tokens = np.concatenate([np.array(text.tokens, dtype=np.int64) for text in texts])
    dtype = np.uint16 if tokens.max() < 2**16 else np.uint32
    lengths = np.array([len(text.tokens) for text in texts], dtype=np.uint32)
    starts = np.array([text.start for text in texts], dtype=np.uint32)
    arrays: dict[str, Any] = {"tokens": tokens.astype(dtype), "lengths": lengths, "starts": starts}
    write_whole(path, lambda new: np.savez_compressed(new, **arrays))


def load(paths: Iterable[Path], before: Sequence[int], vocabulary: int, context: int) -> Examples:
    """Load the texts of some files, put the tokens `before` in front of each, and cut each to `context` tokens."""
    begin, texts = np.array(before, dtype=np.int64), dict[bytes, tuple[Numbers, Numbers]]()
    for path in paths:
        for text, start in zip(*read_file(path, vocabulary), strict=True):
            whole = np.concatenate((begin, text))[:context]
            answer = np.arange(len(whole)) >= max(len(begin) + start, EARLIEST)
            # Duplicates are dropped: a draft could be measured on a text that it has learned.
            if answer.any():
                texts[whole.tobytes()] = whole, answer
    lengths = np.array([len(whole) for whole, _ in texts.values()], dtype=np.int64)
    nothing = begin[:0], begin[:0] > 0
    tokens, answers = (np.concatenate(parts) for parts in zip(nothing, *texts.values(), strict=True))
    return Examples(tokens, answers, lengths)


def read_file(path: Path, vocabulary: int) -> tuple[list[Numbers], list[int]]:
    """Return the texts of one file, and where the answer of each begins. Raises Refused for a wrong file."""
    try:
        with np.load(path) as file:
            tokens, lengths, starts = (file[name].astype(np.int64) for name in ("tokens", "lengths", "starts"))
        if len(lengths) != len(starts) or lengths.sum() != len(tokens) or (starts > lengths).any():
            raise ValueError
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise Refused(f"{path} holds no examples: it lacks arrays of tokens, lengths and starts that fit") from error
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise Refused(f"{path} has ids beyond the target's vocabulary of {vocabulary}: another model wrote it")
    return np.split(tokens, np.cumsum(lengths)[:-1]), starts.tolist()
