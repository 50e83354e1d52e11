"""Check by three tests whether decoding with one pair of models is lossless at one place of a text.

1. In closed form: the exact distribution of the next token, summed over all drafts, equals the target's.
2. By sampling: the next one to three tokens, drawn by the shipped loop, follow the target's joint distribution.
3. Greedily: the text equals that of plain decoding, token by token.

The shipped rule passes, and what is planted of `mistakes.py` does not; `python -m tools.certificates` records both.
"""

import contextlib
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..drafters.base import NoDrafter
from ..drafters.draft_model import DraftModelDrafter
from ..events import Committed
from ..families.zoo import Family
from ..host import HostExecutor
from ..loop import generate
from ..messages import Refused, TranslatableText
from ..models.base import LanguageModel
from ..models.device import Resources
from ..sampling import overlap, probabilities, Sampler
from ..task import Task
from ..types import SamplingParams
from . import SAMPLE_SIZES
from .black_box import CachedRows
from .enumeration import completed, JointDistribution, paths, Tokens
from .goodness_of_fit import distances, draws_needed, is_red
from .mistakes import Mistake
from .toys import run_loop, TableModel, warped

LENGTH = 3  # number of next tokens whose joint distribution is compared
GREEDY_K = 4  # drafted tokens per cycle in the greedy check
GREEDY_TOKENS = 48  # tokens of the embedded pair's greedy text; the toy pair's has half as many
TOY_WORDS = (" sun", " sea", " sky", " fog", " ice")
REPORT_EVERY_S = 0.25
MAX_ERROR = 1e-9  # larger than float64's rounding errors in a probability
SHOWN_ROWS = 6  # tokens that the closed form lists; one row sums up all others
NEAR_TIE = 0.25  # rounding can swap logits this close: two bfloat16 steps, for logits between 16 and 32
SHOWN_TOKENS = 14  # tokens of each text that are shown


class ModelPair:
    """Holds a target, its draft model, and the `text` that they continue, which has at least two tokens."""

    def __init__(
        self,
        name: str,
        target: LanguageModel[Any],
        draft: LanguageModel[Any],
        text: Sequence[int],
        params: SamplingParams,
        piece: Callable[[int], str],
        greedy_limit: int,
        control: int = 0,  # the first tokens of the text, which are not shown
    ) -> None:
        self.name, self.text, self.params, self.piece = name, tuple(text), params, piece
        self.k, self.models, self.greedy_limit = 2, (target, draft), greedy_limit  # K = 1 would hide some mistakes
        self.shown_text, self.resources = self.text[control:], Resources()
        self.target, self.draft = (CachedRows(model, len(self.text) + LENGTH + self.k) for model in self.models)

    def task(self, mistake: Mistake | None, k: int, length: int) -> Task:
        """Make a task on the text without its last token; `FirstTokenGiven` draws that one, then `length` follow."""
        params = replace(self.params, max_tokens=1 + length, ignore_end=True)
        drafter = DraftModelDrafter(self.draft)
        task = Task(
            self.target, self.text[:-1], params, drafter, k, piece=self.piece, details=False, resources=self.resources
        )
        return mistake.apply(task, self.draft) if mistake else task

    def row(self, tokens: Tokens = ()) -> Tensor:
        """Return the target's distribution [V] after the text and `tokens`, computed independently of `sampling.py`."""
        logits = self.target.logits(self.text + tokens)
        return torch.tensor(warped(logits.tolist(), self.params), dtype=torch.float64)

    @functools.cached_property
    def exact(self) -> list[JointDistribution]:
        """The target's joint distributions of the next 1, 2, … tokens."""
        return [completed({(): 1.0}, n, lambda text: self.row(text).tolist()) for n in range(1, LENGTH + 1)]


@functools.cache
def toy() -> ModelPair:
    """Make a pair of random tables over five words. It is small enough to walk every random path."""
    target = TableModel(len(TOY_WORDS), seed=1262)
    draft = TableModel(len(TOY_WORDS), seed=11_262, base=target)
    params, piece = SamplingParams(temperature=0.8), TOY_WORDS.__getitem__
    return ModelPair("toy", target, draft, (0, 1), params, piece, GREEDY_TOKENS // 2)


def embedded(family: Family, text: str) -> ModelPair:
    """Make the pair of the embedded family, to continue `text`. Raises Refused for a text that is too short or long."""
    tokens, most = family.encode(text), family.target.context - GREEDY_TOKENS - GREEDY_K
    if not 2 <= len(tokens) <= most:
        raise Refused(
            TranslatableText("The text has {n} tokens; it must have between 2 and {most}.", n=len(tokens), most=most)
        )
    # With top-k 20 there are only 8,000 texts of three tokens, so that their distribution can be listed.
    params, draft = SamplingParams(temperature=0.8, top_k=20), family.drafts["draft_model"]
    piece, shared = family.pieces.piece, len(family.prefix)
    pair = ModelPair("embedded", family.target, draft, tokens, params, piece, GREEDY_TOKENS, shared)
    pair.resources = family.resources
    return pair


class FirstTokenGiven(Sampler):
    """Returns `token` as the first draw, and makes every later draw with `inner`."""

    def __init__(self, inner: Sampler, token: int) -> None:
        self.inner, self.token = inner, token
        self.begun = False

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        if self.begun:
            return self.inner.categorical(probs, key)
        self.begun = True
        return self.token

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        return self.inner.accept(p, q, key)


def four_digits(value: float | Tensor) -> float | None:
    """Round to four significant digits; None for nan and infinity, which JSON does not have."""
    return float(f"{float(value):.4g}") if math.isfinite(float(value)) else None


def next_tokens(pair: ModelPair, mistake: Mistake | None) -> Callable[[Sampler], Tokens]:
    """Return a function that takes a sampler and returns the next three tokens, or () if the run fails."""
    run = run_loop(lambda: pair.task(mistake, pair.k, LENGTH))
    return lambda sampler: run(FirstTokenGiven(sampler, pair.text[-1]))[1:]


def certify(pair: ModelPair, mistake: Mistake | None, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the growing certificate, ready for JSON. The sample is tested at each of the `SAMPLE_SIZES` up to `draws`.

    It is never tested between two sizes: `sample` yields one group of equal runs after another, so a part is no sample.
    """
    result: dict[str, Any] = {
        "pair": pair.name,
        "mistake": mistake.key if mistake else "",
        "draws": draws,
        "k": pair.k,
        "least_k": mistake.least_k if mistake else 1,
        "temperature": pair.params.temperature,
        "top_k": pair.params.top_k,
        "text": [pair.piece(token) for token in pair.shown_text[-SHOWN_TOKENS:]],
        "closed": closed_form(pair, mistake),
        "greedy": greedy(pair, mistake),
        "sampled": [],
        "done": 0,
    }
    yield result
    generator, counts, last_yield = torch.Generator().manual_seed(seed), Counter[Tokens](), time.monotonic()
    for before, until in pairwise((0, *(n for n in SAMPLE_SIZES if n <= draws))):
        for text, n in sample(pair, mistake, until - before, generator):
            counts[text] += n
            if time.monotonic() - last_yield > REPORT_EVERY_S:
                last_yield = time.monotonic()
                yield {**result, "done": counts.total()}
        tested = [[*map(four_digits, values), ruled_out] for *values, ruled_out in distances(pair.exact, counts)]
        result = {**result, "done": until, "sampled": [*result["sampled"], [until, tested]]}
        yield result


def passed(result: dict[str, Any]) -> list[bool]:
    """Return whether a complete certificate passes each of the three checks: closed form, sample, greedy text."""
    error, greedy_text = result["closed"]["error"], result["greedy"]
    sampled = not any(map(is_red, result["sampled"][-1][1]))
    return [error is not None and error <= MAX_ERROR, sampled, greedy_text["equal"] == greedy_text["of"]]


class OwnDrawRecorder(FirstTokenGiven):
    """Draws the given first token. Then stores the distribution of the first draw whose key is "own"."""

    distribution: Tensor | None = None

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        if not self.begun or key[0] != "own":
            return super().categorical(probs, key)
        if self.distribution is None:
            self.distribution = probs
        return self.token  # any token will do


def next_token_distribution(pair: ModelPair, mistake: Mistake | None) -> Tensor:
    """Return the exact distribution [V] of the next token when one token is drafted.

    It averages over drafts and coins. After a rejection, the next draw's distribution counts; nan if there is none.
    """

    def run(sampler: Sampler) -> Tensor:
        recorder = OwnDrawRecorder(sampler, pair.text[-1])
        task = pair.task(mistake, 1, 2)
        with contextlib.closing(generate(task, HostExecutor(task, recorder))) as events:
            cycle = next((event for event in events if isinstance(event, Committed) and event.cycle == 1), None)
        if cycle is not None and cycle.accepted:
            return torch.nn.functional.one_hot(torch.tensor(cycle.tokens[0]), pair.target.vocabulary).double()
        unknown = torch.full((pair.target.vocabulary,), math.nan)
        return unknown if recorder.distribution is None else recorder.distribution

    return torch.stack([chance * distribution for distribution, chance in paths(run, 100_000)]).sum(0)


def closed_form(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    p, distribution = pair.row(), next_token_distribution(pair, mistake)
    q = probabilities(pair.draft.logits(pair.text)[None], pair.params)[0]
    error = float((distribution - p).abs().max())
    shown = torch.maximum(p, distribution.nan_to_num()).topk(min(SHOWN_ROWS, len(p))).indices.tolist()
    shown.sort(key=lambda token: -float(p[token]))
    rows = [[pair.piece(token), four_digits(p[token]), four_digits(distribution[token])] for token in shown]
    rest = [four_digits((values.sum() - values[shown].sum()).clamp(min=0.0)) for values in (p, distribution)]
    drawn: JointDistribution = {(token,): chance for token, chance in enumerate(distribution.tolist()) if chance != 0.0}
    needed = None if error <= MAX_ERROR else draws_needed(drawn, pair.exact[0])
    figures = {"error": four_digits(error), "overlap": four_digits(overlap(p, q)), "needed": needed}
    return figures | {"rows": rows, "rest": rest}


class Crowd(Sampler):
    """Draws for many runs at once, with `RandomSampler`'s probabilities. A draw splits the runs into groups by result.

    The sampler replays `script`, and then follows one group at each draw; `others` are the (script, count) of the rest.
    """

    def __init__(self, generator: torch.Generator, count: int, script: tuple[int, ...] = ()) -> None:
        self.generator, self.count, self.script = generator, count, script
        self.others: list[tuple[tuple[int, ...], int]] = []
        self._decided = 0

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        cumulative = probs.double().cumsum(0)
        last = int(probs.nonzero()[-1])
        return self._decide(lambda u: torch.searchsorted(cumulative, u * cumulative[-1], right=True).clamp(max=last))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        accepted = bool(self._decide(lambda u: (u * q < p).long()))
        return accepted, 0.0 if accepted else 1.0

    def _decide(self, results_of: Callable[[Tensor], Tensor]) -> int:
        if self._decided == len(self.script):
            u = torch.rand(self.count, dtype=torch.float64, generator=self.generator)
            groups = [(result, n) for result, n in enumerate(results_of(u).bincount().tolist()) if n]
            result, self.count = groups.pop()
            self.others += [((*self.script, other), n) for other, n in groups]
            self.script += (result,)
        self._decided += 1
        return self.script[self._decided - 1]


def sample(
    pair: ModelPair, mistake: Mistake | None, draws: int, generator: torch.Generator
) -> Iterator[tuple[Tokens, int]]:
    """Yield the text of each random path that is drawn, and how many of the `draws` runs take this path."""
    run = next_tokens(pair, mistake)
    groups: list[tuple[tuple[int, ...], int]] = [((), draws)]
    while groups:
        script, count = groups.pop()
        crowd = Crowd(generator, count, script)
        yield run(crowd), crowd.count
        groups += crowd.others


@torch.inference_mode()
def greedy(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    """Compare the texts of speculative and plain decoding at temperature 0, which are shown from token `start` on.

    Of the `of` compared tokens, the first `equal` agree. If not all do, `gap` is the difference of the two highest
    logits at the next one. A small gap is no mistake: passes over five tokens and over one token round differently.
    """
    target, draft = pair.models
    params = SamplingParams(max_tokens=pair.greedy_limit, ignore_end=True)
    plain_task = Task(target, pair.text, params, NoDrafter(), 0, details=False)
    task = replace(plain_task, drafter=DraftModelDrafter(draft), k=GREEDY_K)
    plain, speculative = (
        [token for event in generate(each_task) if isinstance(event, Committed) for token in event.tokens]
        for each_task in (plain_task, mistake.apply(task, draft) if mistake else task)
    )
    equal = next((i for i in range(pair.greedy_limit) if plain[i : i + 1] != speculative[i : i + 1]), pair.greedy_limit)
    start = 0 if equal == pair.greedy_limit else max(0, equal - SHOWN_TOKENS // 2)
    result: dict[str, Any] = {"equal": equal, "of": pair.greedy_limit, "start": start, "gap": None}
    for name, text in (("plain", plain), ("speculative", speculative)):
        result[name] = [pair.piece(token) for token in text[start : start + SHOWN_TOKENS]]
    if equal < pair.greedy_limit:
        text = [*pair.text, *plain[:equal]]
        row = target.forward(text, target.new_cache(len(text)))[-1].double()
        best = row.topk(2).values
        result["gap"] = four_digits(best[0] - best[1])
    return result
