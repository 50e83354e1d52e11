"""Check by three tests whether decoding with one pair of models is lossless at one place of a text.

1. In closed form: the exact distribution of the next token, summed over all drafts, equals the target's.
2. By sampling: the next one to three tokens, drawn by the shipped loop, follow the target's joint distribution.
3. Greedily: the text equals that of plain decoding, token by token.

The shipped rule passes. To see a test fail, plant a mistake of `mistakes.py` in the same loop.
`python -m tools.certificates` records the results of the shipped rule and of all mistakes.
"""

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..drafters.base import NoDrafter
from ..drafters.draft_model import DraftModelDrafter
from ..events import Committed
from ..loop import generate, HostExecutor, Task
from ..sampling import overlap, probabilities, Sampler
from ..types import DRAWS, SamplingParams
from .enumeration import JointDistribution, paths
from .goodness_of_fit import distances, draws_needed, is_red
from .mistakes import Mistake
from .pair import FirstTokenGiven, GREEDY_K, ModelPair, next_tokens, rounded

REPORT_EVERY_S = 0.25
LOSSLESS = 1e-9  # larger than float64's rounding errors in a probability
SHOWN = 6  # tokens that the closed form lists; one row sums up all others
NEAR_TIE = 0.25  # rounding can swap logits this close: two bfloat16 steps, for logits between 16 and 32
WINDOW = 14  # tokens of each text that are shown


def certify(pair: ModelPair, mistake: Mistake | None, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the certificate as it grows, ready for JSON. The sample is tested at each size in `DRAWS` up to `draws`.

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
        "text": [pair.piece(token) for token in pair.shown_text[-WINDOW:]],
        "closed": closed_form(pair, mistake),
        "greedy": greedy(pair, mistake),
        "sampled": [],
        "done": 0,
    }
    yield result
    generator, counts, last_yield = torch.Generator().manual_seed(seed), Counter[tuple[int, ...]](), time.monotonic()
    for before, until in pairwise((0, *(n for n in DRAWS if n <= draws))):
        for text, n in sample(pair, mistake, until - before, generator):
            counts[text] += n
            if time.monotonic() - last_yield > REPORT_EVERY_S:
                last_yield = time.monotonic()
                yield {**result, "done": counts.total()}
        result = {**result, "done": until, "sampled": [*result["sampled"], [until, listed(pair, counts)]]}
        yield result


def listed(pair: ModelPair, counts: Counter[tuple[int, ...]]) -> list[list[Any]]:
    """Return the `distances` of the counted texts from the target's distribution, rounded for JSON."""
    return [[*map(rounded, values), ruled_out] for *values, ruled_out in distances(pair.exact, counts)]


def passed(result: dict[str, Any]) -> list[bool]:
    """Return whether a complete certificate passes each of the three checks: closed form, sample, greedy text."""
    error, greedy_text = result["closed"]["error"], result["greedy"]
    sampled = not any(map(is_red, result["sampled"][-1][1]))
    return [error is not None and error <= LOSSLESS, sampled, greedy_text["equal"] == greedy_text["of"]]


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

    It averages over all drafts and coins. If the draft is accepted, it is the next token; otherwise the distribution of
    the loop's next draw counts. If a mistake makes the loop stop before that draw, the result is nan.
    """

    def run(sampler: Sampler) -> Tensor:
        recorder = OwnDrawRecorder(sampler, pair.text[-1])
        task = pair.task(mistake, 1, 2)
        with contextlib.closing(generate(task, HostExecutor(task, recorder))) as events:
            cycle = next((event for event in events if isinstance(event, Committed) and event.cycle == 1), None)
        if cycle is not None and cycle.accepted:
            return torch.nn.functional.one_hot(torch.tensor(cycle.tokens[0]), pair.target.vocabulary).double()
        return (
            torch.full((pair.target.vocabulary,), math.nan) if recorder.distribution is None else recorder.distribution
        )

    return torch.stack([chance * distribution for distribution, chance in paths(run, 100_000)]).sum(0)


def closed_form(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    p, distribution = pair.row(), next_token_distribution(pair, mistake)
    q = probabilities(pair.draft.logits(pair.text)[None], pair.params)[0]
    error = float((distribution - p).abs().max())
    shown = torch.maximum(p, distribution.nan_to_num()).topk(min(SHOWN, len(p))).indices.tolist()
    shown.sort(key=lambda token: -float(p[token]))
    rows = [[pair.piece(token), rounded(p[token]), rounded(distribution[token])] for token in shown]
    rest = [rounded((values.sum() - values[shown].sum()).clamp(min=0.0)) for values in (p, distribution)]
    drawn: JointDistribution = {(token,): chance for token, chance in enumerate(distribution.tolist()) if chance != 0.0}
    needed = None if error <= LOSSLESS else draws_needed(drawn, pair.exact[0])
    return {"error": rounded(error), "overlap": rounded(overlap(p, q)), "rows": rows, "rest": rest, "needed": needed}


class Crowd(Sampler):
    """Draws for many runs at once, with `RandomSampler`'s probabilities. A draw splits the runs into groups by result.

    This sampler replays `script`, and then follows one of the groups at each draw. The others go to `others` as pairs
    (script, count), to be replayed later.
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
) -> Iterator[tuple[tuple[int, ...], int]]:
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
    """Compare the texts of speculative and plain decoding at temperature 0.

    Of the `of` compared tokens, the first `equal` agree. `plain` and `speculative` show both texts from token `start`
    on. If they differ, `gap` is the difference of the two highest logits at the first different token. A small gap is
    no mistake, because the target's passes over five tokens and over one token round differently.
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
    start = 0 if equal == pair.greedy_limit else max(0, equal - WINDOW // 2)
    result: dict[str, Any] = {"equal": equal, "of": pair.greedy_limit, "start": start, "gap": None}
    for name, text in (("plain", plain), ("speculative", speculative)):
        result[name] = [pair.piece(token) for token in text[start : start + WINDOW]]
    if equal < pair.greedy_limit:
        text = [*pair.text, *plain[:equal]]
        row = target.forward(text, target.new_cache(len(text)))[-1].double()
        best = row.topk(2).values
        result["gap"] = rounded(best[0] - best[1])
    return result
