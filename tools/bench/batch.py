"""What speculation is worth when several texts are decoded at once: the embedded pair, greedy, on this CPU.

One loop decodes with and without speculation, so the two share all but the draft. Each text keeps as much of its own
draft as the target confirms, and must come out as plain decoding writes it. Every batch size decodes the same texts, in
groups, for the same number of cycles: their α and τ are then the same, and what differs is what passes cost. Runs take
turns; a ratio compares neighbours. Costs are those of the very passes that decoded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas
import torch
from tqdm import tqdm

from specdec.bench.prompts import PROMPTS
from specdec.families.zoo import Family, load
from specdec.figures.stats import interval, middle
from specdec.models.base import common_prefix
from specdec.models.batched import BatchCache, forward
from specdec.models.transformer import Transformer

from .options import Options

BATCHES = (1, 2, 4, 8, 16, 32)  # the last is the number of texts; the others divide it
CONTEXTS = (64, 384)  # tokens of every text before the clock starts
BEGUN = 32  # of them, at most, a prompt; the target writes the rest, no two texts alike
TEMPERATURE = 0.8


@dataclass
class Batch:
    """Texts that are decoded together. The target's cache holds every token but the last of each."""

    ids: list[list[int]]
    target: BatchCache
    draft: BatchCache

    def part(self, start: int, texts: int) -> Batch:
        """Those texts alone, as they are now."""
        ids = [list(own) for own in self.ids[start : start + texts]]
        return Batch(ids, self.target.part(start, texts), self.draft.part(start, texts))


@dataclass
class Run:
    """What was decoded: the new tokens of each text, how they came about, and where the time went."""

    new: list[list[int]] = field(default_factory=list)
    cycles: int = 0  # passes of the target
    judged: int = 0
    accepted: int = 0
    seconds: float = 0.0
    drafting: float = 0.0
    checking: float = 0.0  # in passes of the target

    def __add__(self, other: Run) -> Run:
        return Run(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def tokens(self) -> int:
        return sum(map(len, self.new))

    @property
    def rate(self) -> float:
        """Tokens per second of all texts together."""
        return self.tokens / self.seconds

    @property
    def check(self) -> float:
        """Seconds of one pass of the target."""
        return self.checking / self.cycles


@dataclass
class Cell:
    """What was measured at one context, batch size and K: runs, each with the faster of its two plain neighbours."""

    context: int
    texts: int
    k: int
    pairs: list[tuple[Run, Run]] = field(default_factory=list)
    identical: bool = True

    def point(self) -> dict[str, Any]:
        """Medians over the runs; costs in plain steps. Texts and draws are the same in all of them."""
        run = self.pairs[0][0]
        tau = run.tokens / run.cycles / self.texts
        return {
            "context": self.context,
            "batch": self.texts,
            "k": self.k,
            "alpha": round(run.accepted / run.judged, 4),
            "tau": round(tau, 4),
            "plain_step_ms": middle(1000.0 * plain.check for _, plain in self.pairs),
            "draft_cost": middle(run.drafting / run.cycles / self.k / plain.check for run, plain in self.pairs),
            "verify_cost": middle(run.check / plain.check for run, plain in self.pairs),
            "plain_tokens_per_second": middle(plain.rate for _, plain in self.pairs),
            "tokens_per_second": middle(run.rate for run, _ in self.pairs),
            "measured_speedup": middle(run.rate / plain.rate for run, plain in self.pairs),
            "measured_speedup_interval": interval(run.rate / plain.rate for run, plain in self.pairs),
            "accounted_speedup": middle(
                tau * plain.check / (run.drafting / run.cycles + run.check) for run, plain in self.pairs
            ),
            "identical_to_plain": self.identical,
        }


def same(run: Run, plain: Run) -> bool:
    """Whether each text is plain decoding's, which goes further."""
    return all(own == theirs[: len(own)] for own, theirs in zip(run.new, plain.new, strict=True))


def draft(model: Transformer, batch: Batch, k: int) -> list[list[int]]:
    """The draft model's k greedy tokens for each text. It reads the last two tokens anew: no more can be missing."""
    batch.draft.lengths = [len(own) - 2 for own in batch.ids]
    drafts: list[list[int]] = [[] for _ in batch.ids]
    pending = [own[-2:] for own in batch.ids]
    for _ in range(k):
        pending = forward(model, pending, batch.draft)[:, -1:].argmax(-1).tolist()
        for drafted, token in zip(drafts, pending, strict=True):
            drafted += token
    return drafts


def decode(target: Transformer, drafter: Transformer, batch: Batch, cycles: int, k: int) -> Run:
    """Greedy, so many cycles for every text. With k = 0 it is plain decoding."""
    lengths = [len(own) for own in batch.ids]
    run = Run(cycles=cycles)
    start = time.perf_counter()
    for _ in range(cycles):
        begun = time.perf_counter()
        drafts = draft(drafter, batch, k)
        drafted = time.perf_counter()
        rows = [[own[-1], *more] for own, more in zip(batch.ids, drafts, strict=True)]
        choices = forward(target, rows, batch.target, k + 1).argmax(-1).tolist()
        checked = time.perf_counter()
        for own, more, chosen in zip(batch.ids, drafts, choices, strict=True):
            kept = common_prefix(more, chosen)
            own += chosen[: kept + 1]
            run.accepted += kept
            run.judged += min(kept + 1, k)
        batch.target.lengths = [len(own) - 1 for own in batch.ids]
        run.drafting += drafted - begun
        run.checking += checked - drafted
    run.seconds = time.perf_counter() - start
    run.new = [own[length:] for own, length in zip(batch.ids, lengths, strict=True)]
    return run


def texts_of(family: Family, count: int, context: int, room: int) -> Batch:
    """`count` texts of `context` tokens, which the target wrote after the bench's prompts, all kinds in turn."""
    target, drafter = pair_of(family)
    kinds = [list(PROMPTS[kind]) for kind in PROMPTS]
    prompts = [kinds[i % len(kinds)][i // len(kinds) % len(kinds[0])] for i in range(count)]
    ids = [family.encode(prompt)[:BEGUN] for prompt in prompts]
    length = min(map(len, ids))
    ids = [own[:length] for own in ids]
    batch = Batch(ids, BatchCache(target, count, context + room), BatchCache(drafter, count, context + room))
    chance = torch.Generator().manual_seed(0)
    pending = [list(own) for own in ids]
    while len(ids[0]) < context:
        distributions = (forward(target, pending, batch.target)[:, -1] / TEMPERATURE).softmax(-1)
        pending = torch.multinomial(distributions, 1, generator=chance).tolist()
        for own, token in zip(ids, pending, strict=True):
            own += token
    forward(drafter, [own[:-1] for own in ids], batch.draft)
    return batch


def pair_of(family: Family) -> tuple[Transformer, Transformer]:
    target, drafter = family.target, family.draft
    if not isinstance(target, Transformer) or not isinstance(drafter, Transformer):
        raise ValueError("a batch takes two models of our own decoder, a target and a draft model")
    return target, drafter


def measure(family: Family, options: Options, batches: Sequence[int], contexts: Sequence[int]) -> list[dict[str, Any]]:
    """A point a context, batch size and K; every round goes through all of them.

    No text grows by more than `options.tokens`; ValueError where they do not fit.
    """
    target, drafter = pair_of(family)
    room = options.tokens + max(options.k) + 1
    if max(contexts) + room > target.context:
        raise ValueError(
            f"texts of {max(contexts)} tokens leave no room for {room} more: fewer --tokens, or smaller -k"
        )
    if min(options.k) < 1 or max(options.k) >= options.tokens:
        raise ValueError("-k must lie between 1 and what --tokens has room for")
    family.use_threads()
    count = max(batches)

    def run(begun: Batch, size: int, cycles: int, k: int) -> Run:
        """All texts, so many at once."""
        groups = (begun.part(start, size) for start in range(0, count, size))
        return sum((decode(target, drafter, group, cycles, k) for group in groups), Run())

    texts = {context: texts_of(family, count, context, room) for context in contexts}
    written = {context: run(begun, count, options.tokens, 0) for context, begun in texts.items()}
    cells = [Cell(context, size, k) for context in contexts for size in batches for k in options.k]
    for repeat in tqdm(range(options.repeats + 1), desc="batches", unit="round"):  # the first warms up
        for context, begun in texts.items():
            for size in batches:
                before = run(begun, size, options.tokens // 2, 0)
                for cell in (cell for cell in cells if (cell.context, cell.texts) == (context, size)):
                    found = run(begun, size, options.tokens // (cell.k + 1), cell.k)
                    after = run(begun, size, options.tokens // 2, 0)
                    cell.identical = cell.identical and same(found, written[context]) and same(after, written[context])
                    if repeat:
                        cell.pairs.append((found, min(before, after, key=lambda plain: plain.seconds)))
                    before = after
    return [cell.point() for cell in cells]


COLUMNS = {
    "context": "context", "batch": "batch", "k": "K", "alpha": "α", "tau": "τ", "draft_cost": "c", "verify_cost": "v",
    "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s", "measured_speedup": "measured",
    "accounted_speedup": "accounted", "identical_to_plain": "identical",
}  # fmt: skip


def report(options: Options) -> dict[str, Any]:
    family = load(options.family)
    points = measure(family, options, BATCHES, CONTEXTS)
    print(
        pandas.DataFrame(points)[list(COLUMNS)]
        .rename(columns=COLUMNS)
        .to_string(index=False, float_format="{:.2f}".format)
    )
    return {"tokens": options.tokens, "repeats": options.repeats, "points": points, "models": family.describe()}
