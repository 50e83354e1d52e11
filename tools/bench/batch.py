"""What speculation is worth when several texts are decoded at once: the embedded pair, greedy, on this CPU.

One loop decodes with and without speculation, so the two share all but the draft. Each text keeps as much of its own
draft as the target confirms, and must come out as plain decoding writes it. Every batch size decodes the same texts, in
groups, for the same number of cycles: their α and τ are then the same, and what differs is what passes cost. Runs take
turns; a ratio compares neighbours.

Texts of a batch share the reading of the weights, and each reads its own cache. The pass computes with the weights of
`Transformer`, whose passes over one text it equals up to rounding.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pandas
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from specdec.bench.prompts import PROMPTS
from specdec.families.zoo import Family, load
from specdec.figures.stats import interval, middle
from specdec.models.base import common_prefix
from specdec.models.transformer import Transformer

from .options import Options

BATCHES = (1, 2, 4, 8, 16, 32)  # the last is the number of texts; the others divide it
CONTEXTS = (64, 384)  # tokens of every text before the clock starts
PROMPT_TOKENS = 32  # of them, at most; the target writes the rest, no two texts alike
TEMPERATURE = 0.8


class BatchCache:
    """`data` is [layers, keys and values, texts, heads, capacity, head_dim]; `lengths` has one entry for each text.

    Setting its length rolls a text back.
    """

    def __init__(self, model: Transformer, texts: int, capacity: int) -> None:
        shape = len(model.layers), 2, texts, model.kv_heads, capacity, model.head_dim
        self.data = torch.zeros(shape, dtype=model.dtype)
        self.lengths = [0] * texts

    def part(self, start: int, texts: int) -> BatchCache:
        """Copy those texts."""
        copy = object.__new__(BatchCache)
        which = slice(start, start + texts)
        copy.data, copy.lengths = self.data[:, :, which].clone(), self.lengths[which]
        return copy


@torch.inference_mode()
def forward(model: Transformer, tokens: list[list[int]], cache: BatchCache, rows: int = 1) -> Tensor:
    """Append the same number of tokens to every text; logits of the last `rows` of each.  # -> [texts, rows, V]

    The layers of `model` have no windows.
    """
    texts, count = len(tokens), len(tokens[0])
    longest = max(cache.lengths) + count
    places = torch.tensor(cache.lengths)[:, None] + torch.arange(count)  # [texts, n]
    text, angles = torch.arange(texts)[:, None], model.angles[places.flatten()]
    kv_heads, shared = model.kv_heads, model.heads // model.kv_heads  # `shared` heads read the same keys
    hidden = torch.arange(longest) > places[:, None, :, None]
    mask = torch.zeros(texts, 1, count, longest, dtype=model.dtype).masked_fill_(hidden, float("-inf"))
    mask = mask.repeat_interleave(kv_heads, 0)  # [texts · kv_heads, 1, n, longest]
    x = F.embedding(torch.tensor(tokens).flatten(), model.embedding)
    for i, layer in enumerate(model.layers):
        qkv = model.project_qkv(model.rms_normalise(x), layer, angles)  # [heads + 2 kv_heads, texts · n, head_dim]
        queries, new = qkv.unflatten(1, (texts, count)).transpose(0, 1).split((model.heads, 2 * kv_heads), 1)
        for stored, added in zip(cache.data[i], new.chunk(2, 1), strict=True):
            stored[text, :, places] = added.transpose(1, 2)
        # As plain products: torch's attention for 16 bits took three times as long as all the rest on a CPU.
        keys, values = (stored.flatten(0, 1)[:, :longest] for stored in cache.data[i])
        scores = torch.bmm(queries.reshape(texts * kv_heads, shared * count, -1), keys.transpose(1, 2))
        weights = (scores.unflatten(1, (shared, count)) + mask).softmax(-1).flatten(1, 2)
        y = torch.bmm(weights, values).view(texts, model.heads, count, -1).transpose(0, 1)
        x = model.attention_out_and_mlp(x, y.flatten(1, 2), layer)
    cache.lengths = [length + count for length in cache.lengths]
    last = x.view(texts, count, -1)[:, -rows:]
    return model.logits(last.flatten(0, 1)).view(texts, rows, -1)


@dataclass
class Batch:
    """Texts that are decoded together. The target's cache holds every token but the last of each."""

    ids: list[list[int]]
    target: BatchCache
    draft: BatchCache

    def part(self, start: int, texts: int) -> Batch:
        """Copy those texts as they are now."""
        ids = [list(own) for own in self.ids[start : start + texts]]
        return Batch(ids, self.target.part(start, texts), self.draft.part(start, texts))


@dataclass
class Run:
    """What was decoded: the new tokens of each text, how they came about, and where the time went."""

    new: list[list[int]] = field(default_factory=list)
    cycles: int = 0  # passes of the target, over all groups
    judged: int = 0
    accepted: int = 0
    draft_s: float = 0.0
    verify_s: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(map(len, self.new))

    @property
    def pass_s(self) -> float:
        return self.verify_s / self.cycles


Pair = tuple[Transformer, Transformer]  # target and draft model


def draft(model: Transformer, batch: Batch, k: int) -> list[list[int]]:
    """Return the draft model's k greedy tokens for each text. It reads the last two tokens anew: no more can lack."""
    batch.draft.lengths = [len(own) - 2 for own in batch.ids]
    drafts: list[list[int]] = [[] for _ in batch.ids]
    pending = [own[-2:] for own in batch.ids]
    for _ in range(k):
        pending = forward(model, pending, batch.draft)[:, -1:].argmax(-1).tolist()
        drafts = [[*drafted, *token] for drafted, token in zip(drafts, pending, strict=True)]
    return drafts


def decode(pair: Pair, batch: Batch, cycles: int, k: int, run: Run) -> Run:
    """Decode so many cycles of every text, greedily, and add them to `run`. With k = 0 it is plain decoding."""
    lengths = [len(own) for own in batch.ids]
    start = time.perf_counter()
    for _ in range(cycles):
        before = time.perf_counter()
        drafts = draft(pair[1], batch, k)
        between = time.perf_counter()
        rows = [[own[-1], *more] for own, more in zip(batch.ids, drafts, strict=True)]
        choices = forward(pair[0], rows, batch.target, k + 1).argmax(-1).tolist()
        run.draft_s += between - before
        run.verify_s += time.perf_counter() - between
        for own, more, chosen in zip(batch.ids, drafts, choices, strict=True):
            accepted = common_prefix(more, chosen)
            own += chosen[: accepted + 1]
            run.accepted += accepted
            run.judged += min(accepted + 1, k)
        batch.target.lengths = [len(own) - 1 for own in batch.ids]
    run.seconds += time.perf_counter() - start
    run.cycles += cycles
    run.new += [own[length:] for own, length in zip(batch.ids, lengths, strict=True)]
    return run


def begin(family: Family, pair: Pair, count: int, context: int, room: int) -> Batch:
    """Let the target write `count` texts of `context` tokens after the bench's prompts, all kinds in turn."""
    prompts = [prompt for kinds in zip(*PROMPTS.values(), strict=True) for prompt in kinds]
    ids = [family.encode(prompts[i % len(prompts)])[:PROMPT_TOKENS] for i in range(count)]
    ids = [own[: min(map(len, ids))] for own in ids]
    batch = Batch(ids, *(BatchCache(model, count, context + room) for model in pair))
    generator = torch.Generator().manual_seed(0)
    pending = [list(own) for own in ids]
    while len(ids[0]) < context:
        probabilities = (forward(pair[0], pending, batch.target)[:, -1] / TEMPERATURE).softmax(-1)
        pending = torch.multinomial(probabilities, 1, generator=generator).tolist()
        for own, token in zip(ids, pending, strict=True):
            own += token
    forward(pair[1], [own[:-1] for own in ids], batch.draft)
    return batch


def is_same(run: Run, plain: Run) -> bool:
    """Whether one of them has the beginning of every text of the other."""
    return all(a[: len(b)] == b[: len(a)] for a, b in zip(run.new, plain.new, strict=True))


def point(pairs: list[tuple[Run, Run]], texts: int, k: int) -> dict[str, Any]:
    """Medians over runs, each with a plain neighbour; costs in plain steps. Texts are the same in all of them."""
    run = pairs[0][0]
    tau = run.tokens / run.cycles / texts
    rates = [(one.tokens / one.seconds, plain.tokens / plain.seconds) for one, plain in pairs]
    costs = [(one.draft_s / one.cycles / plain.pass_s, one.pass_s / plain.pass_s) for one, plain in pairs]
    return {
        "alpha": round(run.accepted / run.judged, 4),
        "tau": round(tau, 4),
        "plain_step_ms": middle(1e3 * plain.pass_s for _, plain in pairs),
        "draft_cost": middle(drafting / k for drafting, _ in costs),
        "verify_cost": middle(check for _, check in costs),
        "plain_tokens_per_second": middle(plain for _, plain in rates),
        "tokens_per_second": middle(rate for rate, _ in rates),
        "measured_speedup": middle(rate / plain for rate, plain in rates),
        "measured_speedup_interval": interval(rate / plain for rate, plain in rates),
        "accounted_speedup": middle(tau / (drafting + check) for drafting, check in costs),
    }


def measure(family: Family, options: Options) -> list[dict[str, Any]]:
    """Return a point for each context, batch size and K. ValueError where texts do not fit: they grow by --tokens."""
    if not isinstance(family.target, Transformer) or not isinstance(family.draft, Transformer):
        raise ValueError("a batch takes two models of our own decoder, a target and a draft model")
    pair, tokens, room = (family.target, family.draft), options.tokens, options.tokens + max(options.k) + 1
    if max(CONTEXTS) + room > family.target.context or not 1 <= min(options.k) <= max(options.k) < tokens:
        most = family.target.context - max(CONTEXTS) - max(options.k) - 1
        raise ValueError(f"-k must lie between 1 and --tokens, and --tokens is at most {most} here")
    family.use_threads()
    begun = {context: begin(family, pair, BATCHES[-1], context, room) for context in CONTEXTS}

    def run(context: int, size: int, cycles: int, k: int) -> Run:
        """All texts, so many at once."""
        whole = Run()
        for first in range(0, BATCHES[-1], size):
            decode(pair, begun[context].part(first, size), cycles, k, whole)
        return whole

    written = {context: run(context, BATCHES[-1], tokens, 0) for context in CONTEXTS}
    pairs: dict[tuple[int, int, int], list[tuple[Run, Run]]] = {}
    for _ in tqdm(range(options.repeats + 1), desc="batches", unit="round"):  # the first warms up
        for context in CONTEXTS:
            for size in BATCHES:
                before = run(context, size, tokens // 2, 0)
                for k in options.k:
                    speculative = run(context, size, tokens // (k + 1), k)
                    after = run(context, size, tokens // 2, 0)
                    faster = min(before, after, key=lambda plain: plain.seconds)
                    pairs.setdefault((context, size, k), []).append((speculative, faster))
                    before = after
    return [
        {"context": context, "batch": size, "k": k, **point(cell[1:], size, k)}
        | {"identical_to_plain": all(is_same(one, written[context]) for both in cell for one in both)}
        for (context, size, k), cell in pairs.items()
    ]


def report(options: Options) -> dict[str, Any]:
    family = load(options.family)
    points = measure(family, options)
    print(pandas.DataFrame(points).to_string(index=False, float_format="{:.2f}".format))
    return {"tokens": options.tokens, "repeats": options.repeats, "points": points, "models": family.describe()}
