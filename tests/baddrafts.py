"""What a drafter may hand over that is no draft: each of it costs the drafter, and never the text."""

from collections.abc import Callable
from typing import Any

import torch

from specdec.types import Proposal

Draft = Callable[[int], Any]  # of so many tokens


def raises(kind: type[BaseException], said: str = "out of order") -> Draft:
    def draft(k: int) -> Any:
        raise kind(said)

    return draft


def chained(token: Any) -> Draft:
    return lambda k: Proposal.chain([token] * k)


def spoiled(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def spoil(distribution: torch.Tensor) -> torch.Tensor:
        distribution[-1, 0] = value
        return distribution

    return spoil


def bad_drafts(vocabulary: int) -> dict[str, Draft]:
    def over(change: Callable[[torch.Tensor], Any]) -> Draft:
        return lambda k: Proposal.chain([1] * k, change(torch.full((k, vocabulary), 1.0 / vocabulary)))

    one = torch.tensor(1)
    return {
        "raises": raises(RuntimeError),
        "raises StopIteration": raises(StopIteration),
        "out of memory": raises(MemoryError),
        "returns None": lambda k: None,
        "returns a list": lambda k: [1] * k,
        "too deep": lambda k: Proposal.chain([1] * (k + 1)),
        "too many nodes": lambda k: Proposal((1,) * 65, (-1,) * 65),
        "no tree": lambda k: Proposal((1,) * k, (k,) * k),
        "too few parents": lambda k: Proposal((1,) * k, ()),
        "id -1": chained(-1),
        "id V": chained(vocabulary),
        "id NaN": chained(float("nan")),
        "id 1.0": chained(1.0),
        "id of another library": chained(torch.tensor(1)),
        "parents without tokens": lambda k: Proposal((), (-1,) * k),
        "NaN in the distribution": over(spoiled(float("nan"))),
        "negative distribution": over(spoiled(-0.1)),
        "a sign that the sum hides": over(
            lambda q: q + torch.eye(vocabulary)[2] * 0.2 - torch.eye(vocabulary)[3] * 0.2
        ),
        "distribution that does not sum to one": over(lambda q: q * 2),
        "distribution that nearly sums to one": over(lambda q: q * 1.0005),
        "rows that make up for each other": over(lambda q: q * torch.linspace(0.5, 1.5, len(q))[:, None]),
        "distribution of zeros": over(lambda q: q * 0),
        "distribution that excludes the token": over(
            lambda q: (q * vocabulary / (vocabulary - 1)).index_fill(1, one[None], 0.0)
        ),
        "distribution of another vocabulary": over(lambda q: q[:, :5]),
    }
