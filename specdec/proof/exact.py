"""What the shipped loop writes at one place of a text, exactly: the next token in closed form, the next three by
enumeration."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from torch import Tensor

from ..engine import generate
from ..events import Committed
from ..sampling import overlap, probabilities, Sampler
from .enumeration import JointDistribution, output_distribution, paths, total_variation
from .goodness_of_fit import draws_needed
from .mistakes import Mistake
from .pair import brief, Given, ModelPair, next_tokens

LOSSLESS = 1e-9  # rounding of float64 logits stays below it
SHOWN = 6  # tokens in the closed form, all others in one


class Watching(Given):
    """Keeps the distribution that the target's own token is drawn from: the first after the given token."""

    distribution: Tensor | None = None

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        if not self.begun or key[0] != "own":
            return super().categorical(probs, key)
        if self.distribution is None:
            self.distribution = probs
        return self.token


def next_token_distribution(pair: ModelPair, mistake: Mistake | None) -> Tensor:
    """The exact distribution of the token after one draft: draft × accept + the rest × the distribution after a
    rejection.  # [V]

    From the shipped loop: over every draft, accepted or not, what it commits or draws from; nan where that is no
    distribution.
    """

    def run(sampler: Sampler) -> Tensor:
        watching = Watching(sampler, pair.text[-1])
        with contextlib.closing(generate(pair.task(mistake, 1, 2), watching)) as events:
            cycle = next((event for event in events if isinstance(event, Committed) and event.cycle == 1), None)
        if cycle is not None and cycle.accepted:
            return torch.nn.functional.one_hot(torch.tensor(cycle.tokens[0]), pair.target.vocabulary).double()
        return (
            torch.full((pair.target.vocabulary,), math.nan) if watching.distribution is None else watching.distribution
        )

    return torch.stack([chance * distribution for distribution, chance in paths(run, 100_000)]).sum(0)


def closed_form(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    p, distribution = pair.row(), next_token_distribution(pair, mistake)
    whole = pair.draft.logits(pair.text)
    drawn = whole if mistake and mistake.harmless else pair.masked(whole, pair.text[-1:])
    q = probabilities(drawn[None], pair.params)[0]
    error = float((distribution - p).abs().max())
    shown = torch.maximum(p, distribution.nan_to_num()).topk(min(SHOWN, len(p))).indices.tolist()
    shown.sort(key=lambda token: -float(p[token]))
    rows = [[pair.piece(token), brief(p[token]), brief(distribution[token])] for token in shown]
    rest = [brief((values.sum() - values[shown].sum()).clamp(min=0.0)) for values in (p, distribution)]
    wrong: JointDistribution = {(token,): chance for token, chance in enumerate(distribution.tolist()) if chance != 0.0}
    needed = None if error <= LOSSLESS else draws_needed(wrong, pair.exact[0])
    return {"error": brief(error), "overlap": brief(overlap(p, q)), "rows": rows, "rest": rest, "needed": needed}


def enumerated(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    """The exact total variation of the next 1, 2, … tokens over every random path, and the draws that would show it."""
    distribution, count = output_distribution(next_tokens(pair, mistake))
    found: list[float] = []
    for length, exact in enumerate(pair.exact, start=1):
        marginal: JointDistribution = {}
        for tokens, chance in distribution.items():
            marginal[tokens[:length]] = marginal.get(tokens[:length], 0.0) + chance
        found.append(total_variation(marginal, exact))
    needed = None if found[-1] <= LOSSLESS else draws_needed(distribution, pair.exact[-1])
    return {"tv": [brief(tv) for tv in found], "paths": count, "needed": needed}
