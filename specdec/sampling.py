"""Logits to probabilities to tokens. Pure: every random number comes from the sampler that is passed in.

Greedy decoding is not a second code path: at temperature 0 the distribution is one-hot, and nothing else changes.
"""

from __future__ import annotations

import random
from typing import Protocol

import torch
from torch import Tensor

from .types import SamplingParams

MAX_SORTED_WHOLE = 1024  # tokens: a CPU sorts a longer row more slowly than it finds the likely ones
SUM_TOLERANCE = 1e-6  # float32 error of a sum of probabilities
MIN_NORMALISED = 2**14  # tokens: in a few long float32 sums, a CPU's softmax errs by 1e-5 at 49,152
MIN_TEMPERATURE = 1e-30  # float32 still divides by it; from here on the distribution is one-hot except for exact ties


class Sampler(Protocol):
    """Where randomness enters. `key` says what is decided, for samplers that tie noise to a place.

    The number of a draw is its level: ("draft", 0) is drafted right after the text, ("own", 0) is the target's own
    after that, ("own", -1) the target's own right after the text. That of a trial is the node that is tried, since
    siblings are tried apart; on a chain it is the level, too.
    """

    def at(self, length: int) -> None:
        """Called before every cycle with the number of tokens in the text."""
        return

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        """An index drawn from `probs` [V]."""
        ...

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        """True with probability min(1, p/q), and the coin u that decided: accepted if u·q < p."""
        ...


class RandomSampler(Sampler):
    """Independent random numbers. Each run has its own generator, so runs do not disturb each other or the process."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        cumulative = probs.double().cumsum(0)
        total = float(cumulative[-1])
        index = int(torch.searchsorted(cumulative, self._random.random() * total, right=True))
        if index == len(probs):  # the product rounded up to the total
            index = int(probs.nonzero()[-1])
        return index

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = self._random.random()
        return u * q < p, u


class SharedNoiseSampler(Sampler):
    """Gumbel-max: argmax of log p + g, whose noise g depends on the seed and the place in the text alone.

    Draft and target draw at a place with the same noise, so distributions that are alike give the same token more often
    than not (Daliri, Musco, Suresh 2024, arXiv 2408.07978).
    """

    def __init__(self, seed: int) -> None:
        self.seed, self._length = seed, 0
        self._noise: dict[int, Tensor] = {}  # both models draw with the same noise

    def at(self, length: int) -> None:
        self._length = length
        self._noise = {place: noise for place, noise in self._noise.items() if place >= length}

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        kind, level = key
        place = self._length + level + (kind == "own")
        if place not in self._noise:
            self._noise[place] = self.noise(place, len(probs)).to(probs.device)
        return int(argmax((probs.double().log() + self._noise[place])[None]))

    def noise(self, place: int, size: int) -> Tensor:
        """Standard Gumbel noise for the token at `place`, counted from the start of the prompt.  # [size]"""
        seed = random.Random(f"{self.seed}:{place}").getrandbits(32)
        uniform = torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        return -torch.log(-torch.log(uniform))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        # A coin beside shared noise would bias the text: what is drawn after a rejection depends on the draft.
        raise ValueError("Shared noise tosses no coins: use it with the rule of that name only.")


def probabilities(logits: Tensor, params: SamplingParams) -> Tensor:
    """The distribution that tokens are drawn from: temperature, then top-k, then top-p.  # [n, V] -> [n, V]

    Computed in float32, or in the logits' own dtype where that is finer.
    """
    if params.temperature == 0.0:
        best = argmax(logits).unsqueeze(-1)
        dtype = logits.dtype if logits.dtype == torch.float64 else torch.float32
        return torch.zeros(logits.shape, dtype=dtype, device=logits.device).scatter_(-1, best, 1.0)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if params.temperature != 1.0:
        # From the highest: divided by a small temperature, large logits would overflow.
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / max(params.temperature, MIN_TEMPERATURE)
    if not 0 < params.top_k < logits.shape[-1]:
        return apply_top_p(normalised(logits.softmax(dim=-1)), params.top_p)
    # An exact count: equal logits at the border must not let an extra token in. Top-p then looks at these alone; in the
    # vocabulary's order, in which equals are dropped from the end.
    keep = logits.topk(params.top_k, dim=-1, sorted=False).indices.sort(dim=-1).values
    distribution = apply_top_p(logits.gather(-1, keep).softmax(dim=-1), params.top_p)
    return torch.zeros_like(logits).scatter_(-1, keep, distribution)


def normalised(probs: Tensor) -> Tensor:
    """Make long rows sum to one, in place: `u q < p` takes p as it is.  # [n, V] -> [n, V]"""
    if probs.shape[-1] < MIN_NORMALISED or probs.device.type != "cpu":
        return probs
    return probs.div_(probs.sum(dim=-1, keepdim=True))


def apply_top_p(probs: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of likeliest tokens whose sum reaches `top_p`, normalised.  # [n, V] -> [n, V]"""
    if top_p >= 1.0:
        return probs
    if probs.device.type == "cpu" and probs.shape[-1] > MAX_SORTED_WHOLE and len(probs):
        after = torch.stack([after_few(row, top_p) for row in probs])
    else:
        after, _ = after_reaching(probs, top_p)
    probs = probs.masked_fill(after, 0.0)
    return probs / probs.sum(dim=-1, keepdim=True)


def after_reaching(probs: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Mark the tokens after those whose sum reaches `top_p`; also return the sum.  # [.., V] -> bool [.., V], [..]"""
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    sums = ordered.cumsum(dim=-1)
    reached = sums - ordered >= top_p  # by those before
    return reached.scatter(-1, order, reached), sums[..., -1]


def after_few(probs: Tensor, top_p: float) -> Tensor:
    """`after_reaching` of one row, to the bit, without sorting a whole vocabulary.  # [V] -> bool [V]

    All tokens below `least` together are less than half of what top-p leaves out: the others reach it without them.
    """
    least = (1.0 - top_p) / 2 / len(probs)
    likely = (probs >= least).nonzero().flatten()
    after, total = after_reaching(probs[likely], top_p) if len(likely) else (likely, 0.0)
    if not total >= top_p + SUM_TOLERANCE:  # top_p is nearly 1, or the row holds no probabilities
        return after_reaching(probs, top_p)[0]
    return torch.ones_like(probs, dtype=torch.bool).index_copy_(0, likely, after)


def argmax(logits: Tensor) -> Tensor:
    """The index of the highest number in every row, the first of equals.  # [n, V] -> [n]

    On a CPU NumPy finds it ten times faster than torch.
    """
    if logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float64):
        return torch.from_numpy(logits.numpy().argmax(-1))
    return logits.argmax(-1)


def residual(p: Tensor, q: Tensor | None, token: int) -> Tensor:
    """The residual, drawn from after a rejection: max(0, p - q), normalised.  # [V]

    Leviathan et al. 2022 (arXiv 2211.17192), Algorithm 1. `q` None is a point mass on `token`. Where p and q
    agree so closely that nothing is left, a rejection was a rounding accident and p itself is the answer (normalised
    as well: block verification weighs its p).
    """
    if q is None:
        left = p.clone()
        left[token] = 0.0
    else:
        left = (p - q).clamp_(min=0.0)
    mass = float(left.sum())
    return left / mass if mass > 0.0 else p / p.sum()


def block_chance(weight: float, p: Tensor, q: Tensor) -> float:
    """h of block verification after a prefix of this weight: m / (m + 1 - w), where m = Σ max(0, w p - q)."""
    mass = float((weight * p - q).clamp(min=0.0).sum())
    return mass / (mass + 1.0 - weight) if weight < 1.0 else 1.0


def overlap(p: Tensor, q: Tensor) -> float:
    """β = Σ min(p, q) = 1 - total variation: the chance that a draft drawn from q is kept."""
    return float(torch.minimum(p, q).sum())


def entropy(probs: Tensor) -> float:
    """The entropy in nats.  # [V]"""
    return float(torch.special.entr(probs).sum())
