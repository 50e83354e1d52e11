"""Define pairs of target and draft model, each with a text to continue."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..drafters.draft_model import DraftModelDrafter
from ..families.zoo import Family
from ..loop import Task
from ..messages import Refused, TranslatableText
from ..models.base import common_prefix, LanguageModel
from ..sampling import Sampler
from ..types import SamplingParams
from .enumeration import JointDistribution
from .mistakes import Mistake
from .toys import ByPrefix, run_loop, TableModel
from .warp import warped

LENGTH = 3  # number of next tokens whose joint distribution is compared
GREEDY_K = 4  # drafted tokens per cycle in the greedy check
TOY_GREEDY = 24  # tokens of the toy pair's greedy text
GREEDY = 48  # tokens of the embedded pair's greedy text
TOY_WORDS = (" sun", " sea", " sky", " fog", " ice")


class CachedRows(ByPrefix):
    """Caches the logits after each text as float64."""

    def __init__(self, model: LanguageModel[Any], capacity: int) -> None:
        self.vocabulary, self.context = model.vocabulary, model.context
        self._model, self._cache = model, model.new_cache(capacity)
        self._cached: tuple[int, ...] = ()
        self._rows: dict[tuple[int, ...], Tensor] = {}

    @torch.inference_mode()
    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._rows:
            same = common_prefix(self._cached, prefix[:-1])
            self._cache.keep(same)
            self._rows[prefix] = self._model.forward(prefix[same:], self._cache)[-1].double()
            self._cached = prefix
        return self._rows[prefix]


class ModelPair:
    """Holds a target, its draft model, and the `text` that they continue, which has at least two tokens.

    The first `control` tokens of the text are control tokens, which are not shown.
    K is 2, because some mistakes are harmless at K = 1.
    """

    def __init__(
        self,
        name: str,
        target: LanguageModel[Any],
        draft: LanguageModel[Any],
        text: Sequence[int],
        params: SamplingParams,
        piece: Callable[[int], str],
        greedy_limit: int,
        control: int = 0,
    ) -> None:
        self.name, self.text, self.params, self.piece = name, tuple(text), params, piece
        self.k, self.models, self.greedy_limit = 2, (target, draft), greedy_limit
        self.shown_text = self.text[control:]
        self.target, self.draft = (CachedRows(model, len(self.text) + LENGTH + self.k) for model in self.models)

    def task(self, mistake: Mistake | None, k: int, length: int) -> Task:
        """Make a task on the text without its last token; `FirstTokenGiven` draws that one, then `length` follow."""
        params = replace(self.params, max_tokens=1 + length, ignore_end=True)
        drafter = DraftModelDrafter(self.draft)
        task = Task(self.target, self.text[:-1], params, drafter, k, piece=self.piece, details=False)
        return mistake.apply(task, self.draft) if mistake else task

    def row(self, tokens: tuple[int, ...] = ()) -> Tensor:
        """Return the target's distribution [V] after the text and `tokens`, computed independently of `sampling.py`."""
        logits = self.target.logits(self.text + tokens)
        return torch.tensor(warped(logits.tolist(), self.params), dtype=torch.float64)

    @functools.cached_property
    def exact(self) -> list[JointDistribution]:
        """The target's joint distributions of the next 1, 2, … tokens."""
        distributions: list[JointDistribution] = [{(): 1.0}]
        for _ in range(LENGTH):
            longer: JointDistribution = {}
            for tokens, chance in distributions[-1].items():
                row = self.row(tokens)
                longer |= {(*tokens, token): chance * float(row[token]) for token in row.nonzero().flatten().tolist()}
            distributions.append(longer)
        return distributions[1:]


@functools.cache
def toy() -> ModelPair:
    """Make a pair of random tables over five words. It is small enough to walk every random path."""
    target = TableModel(len(TOY_WORDS), seed=1262)
    draft = TableModel(len(TOY_WORDS), seed=11_262, base=target)
    params, piece = SamplingParams(temperature=0.8), TOY_WORDS.__getitem__
    return ModelPair("toy", target, draft, (0, 1), params, piece, TOY_GREEDY)


def embedded(family: Family, text: str) -> ModelPair:
    """Make the pair of the embedded family, to continue `text`. Raises Refused for a text that is too short or long.

    With top-k 20 there are only 8,000 texts of three tokens, so that their distribution can be listed.
    """
    assert family.draft
    tokens, most = family.encode(text), family.target.context - GREEDY - GREEDY_K
    if not 2 <= len(tokens) <= most:
        raise Refused(
            TranslatableText("The text has {n} tokens; it must have between 2 and {most}.", n=len(tokens), most=most)
        )
    return ModelPair(
        "embedded",
        family.target,
        family.draft,
        tokens,
        SamplingParams(temperature=0.8, top_k=20),
        family.pieces.piece,
        GREEDY,
        len(family.prefix),
    )


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

    def at(self, place: int) -> None:
        self.inner.at(place)


def rounded(value: float | Tensor) -> float | None:
    """Round to four significant digits; None for nan and infinity, which JSON does not have."""
    return float(f"{float(value):.4g}") if math.isfinite(float(value)) else None


def next_tokens(pair: ModelPair, mistake: Mistake | None) -> Callable[[Sampler], tuple[int, ...]]:
    """Return a function that takes a sampler and returns the next three tokens, or () if the run fails."""
    run = run_loop(lambda: pair.task(mistake, pair.k, LENGTH))
    return lambda sampler: run(FirstTokenGiven(sampler, pair.text[-1]))[1:]
