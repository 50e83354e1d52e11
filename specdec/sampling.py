"""Turn logits into probabilities, and draw tokens with a `Sampler`.

Greedy decoding samples from one-hot distributions, which `probabilities` returns at temperature 0.
"""

import random
from typing import Protocol

import torch
from torch import Tensor

from .types import SamplingParams

MAX_SORTED_WHOLE = 1024  # tokens; for a longer row on a CPU, it is faster to sort only the likely tokens
SUM_TOLERANCE = 1e-6  # bounds the float32 error of a sum of probabilities
MIN_NORMALISED = 2**14  # tokens; on a CPU, a float32 softmax over so many sums to 1 only roughly
MIN_TEMPERATURE = MIN_TOP_P = 1e-30  # lower ones are raised to it, because float32 would round the lowest to 0


class Sampler(Protocol):
    """Draws tokens and tosses coins. `key` names the decision, because the noise of some samplers depends on it.

    ("draft", i): draw a token after i drafted ones. ("own", i): draw the target's own token after i drafted ones.
    ("accept", node): toss the coin for a drafted token.
    """

    def at(self, length: int) -> None:
        """Prepare for a cycle. The decoding loop calls this before each cycle with the number of tokens in the text."""
        return

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        """Draw an index from `probs` [V]."""
        ...

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        """Accept with probability min(1, p/q). Also return the coin u in [0, 1), which accepts if u·q < p."""
        ...


class RandomSampler(Sampler):
    """Draws from its own random generator, so that other runs and torch's global state do not affect it."""

    def __init__(self, seed: int) -> None:
        # `Random` ignores the sign of a seed, so that a negative one is first made positive.
        self._random = random.Random(seed % 2**65)

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
    """Gumbel-max: draws argmax(log p + g), where the noise g depends only on the seed and the position in the text.

    Draft and target use the same noise at the same position, so similar distributions often give the same token
    (Daliri, Musco, Suresh 2024, arXiv 2408.07978).
    """

    def __init__(self, seed: int) -> None:
        self.seed, self._length = seed, 0
        self._noise: dict[int, Tensor] = {}  # by position in the text

    def at(self, length: int) -> None:
        self._length = length
        self._noise = {position: noise for position, noise in self._noise.items() if position >= length}

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        position = self._length + key[1]
        if position not in self._noise:
            self._noise[position] = self.noise(position, len(probs)).to(probs.device)
        return int(argmax((probs.double().log() + self._noise[position])[None]))

    def noise(self, position: int, size: int) -> Tensor:
        """Return standard Gumbel noise [size] for the token at `position`, counted from the start of the prompt."""
        seed = random.Random(f"{self.seed}:{position}").getrandbits(32)
        uniform = torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        return -torch.log(-torch.log(uniform))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        # Coins would bias the text: the token after a rejection would reuse the noise that chose the draft.
        raise ValueError("Shared noise tosses no coins: use it only with the rule shared_noise.")


def probabilities(logits: Tensor, params: SamplingParams) -> Tensor:
    """Apply temperature, then top-k, then top-p to logits [n, V], and return probabilities [n, V].

    They are computed in float64 if the logits are, otherwise in float32.
    """
    if params.temperature == 0.0:
        best = argmax(logits).unsqueeze(-1)
        dtype = logits.dtype if logits.dtype == torch.float64 else torch.float32
        return torch.zeros(logits.shape, dtype=dtype, device=logits.device).scatter_(-1, best, 1.0)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if params.temperature != 1.0:
        # The maximum is subtracted first: large logits divided by a small temperature would overflow.
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / max(params.temperature, MIN_TEMPERATURE)
    if not 0 < params.top_k < logits.shape[-1]:
        return apply_top_p(normalised(logits.softmax(dim=-1)), params.top_p)
    keep = highest_ids(logits, params.top_k)
    distribution = apply_top_p(normalised(logits.gather(-1, keep).softmax(dim=-1)), params.top_p)
    return torch.zeros_like(logits).scatter_(-1, keep, distribution)


def highest_ids(logits: Tensor, count: int) -> Tensor:
    """Return the ids of the `count` highest logits of each row, in ascending order; of equal logits, the lowest ids.

    [n, V] -> [n, count]. Its shapes do not depend on the values, so that CUDA graphs can capture it.
    """
    least = logits.topk(count, dim=-1, sorted=False).values.amin(dim=-1, keepdim=True)
    above, equal = logits > least, logits == least
    room = count - above.sum(dim=-1, keepdim=True)
    chosen = above | equal & (equal.cumsum(dim=-1) <= room)
    last = logits.shape[-1] - 1
    ids = torch.where(chosen, torch.arange(last + 1, device=logits.device), last)
    return ids.topk(count, dim=-1, largest=False, sorted=True).values


def normalised(probs: Tensor) -> Tensor:
    """On a CPU, normalise long rows of `probs` [n, V] in place, because the test `u q < p` needs sums of 1."""
    if probs.shape[-1] < MIN_NORMALISED or probs.device.type != "cpu":
        return probs
    return probs.div_(probs.sum(dim=-1, keepdim=True))


def apply_top_p(probs: Tensor, top_p: float) -> Tensor:
    """Keep the likeliest tokens, just enough to sum to `top_p`, and normalise.  # [n, V] -> [n, V]"""
    if top_p >= 1.0:
        return probs
    top_p = max(top_p, MIN_TOP_P)
    if probs.device.type == "cpu" and probs.shape[-1] > MAX_SORTED_WHOLE and len(probs):
        tail = torch.stack([mark_tail_of_long_row(row, top_p) for row in probs])
    else:
        tail, _ = mark_tail(probs, top_p)
    probs = probs.masked_fill(tail, 0.0)
    return probs / probs.sum(dim=-1, keepdim=True)


def mark_tail(probs: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Mark the tokens that top-p drops, because likelier ones already sum to `top_p`. Also return the sum of each row.

    Shapes: [.., V] -> bool [.., V], [..].
    """
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    sums = ordered.cumsum(dim=-1)
    dropped = sums - ordered >= top_p
    return dropped.scatter(-1, order, dropped), sums[..., -1]


def mark_tail_of_long_row(probs: Tensor, top_p: float) -> Tensor:
    """Mark the same tokens of one row as `mark_tail`, but sort only the likely ones.  # [V] -> bool [V]

    Tokens with a probability below `threshold` sum to less than (1 - top_p) / 2, so top-p always drops them.
    """
    threshold = (1.0 - top_p) / 2 / len(probs)
    likely = (probs >= threshold).nonzero().flatten()
    tail, total = mark_tail(probs[likely], top_p) if len(likely) else (likely, 0.0)
    if not total >= top_p + SUM_TOLERANCE:  # top_p is nearly 1, or the row contains NaN
        return mark_tail(probs, top_p)[0]
    return torch.ones_like(probs, dtype=torch.bool).index_copy_(0, likely, tail)


def argmax(logits: Tensor) -> Tensor:
    """Return the index of the maximum of each row; among equal maxima, the first.  # [n, V] -> [n]

    For float32 and float64 on a CPU this uses NumPy, which is ten times faster than torch.
    """
    if logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float64):
        return torch.from_numpy(logits.numpy().argmax(-1))
    return logits.argmax(-1)


def residual(p: Tensor, q: Tensor | None, token: int) -> Tensor:
    """Return the distribution [V] to draw from after a rejection: max(0, p - q), normalised.

    See Leviathan et al. 2022 (arXiv 2211.17192), Algorithm 1. `q` None stands for a point mass on `token`. If the
    difference is zero everywhere, only rounding can have caused the rejection, and the result is p, normalised.
    """
    if q is None:
        difference = p.clone()
        difference[token] = 0.0
    else:
        difference = (p - q).clamp_(min=0.0)
    mass = float(difference.sum())
    return difference / mass if mass > 0.0 else p / p.sum()


def block_chance(weight: float, p: Tensor, q: Tensor) -> float:
    """Return block verification's chance h = m/(m+1-w) to keep a prefix of weight w; m = Σ max(0, w p - q) after it."""
    mass = float((weight * p - q).clamp(min=0.0).sum())
    return mass / (mass + 1.0 - weight) if weight < 1.0 else 1.0


def overlap(p: Tensor, q: Tensor) -> float:
    """Return β = Σ min(p, q) = 1 - TV (Leviathan et al., theorem 3.5): the chance that a token from q is accepted."""
    return float(torch.minimum(p, q).sum())


def entropy(probs: Tensor) -> float:
    """Return the entropy of a distribution [V] in nats."""
    return float(torch.special.entr(probs).sum())
