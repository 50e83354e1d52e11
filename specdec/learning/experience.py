"""What a run teaches, and the draft that learns it.

The examples are the target's own logits at every place where it judged a draft: it computed them anyway.

A rejection says what the draft should have expected there, and an acceptance says it, too; after a rejection nothing
was judged, so nothing is learned.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..drafters import DraftModelDrafter, NoDrafter
from ..engine import generate, Task
from ..events import Committed, Event
from ..families.zoo import Family
from ..figures.stats import LaneStats
from ..models import pretrained
from ..models.base import LanguageModel
from ..models.checkpoint import read_json, read_weights
from ..models.transformer import Transformer
from ..training.loss import divergence
from ..types import SamplingParams

RATE = 1.5e-3  # of AdamW, at its highest
LONGEST_STEP = 1.0  # the norm of a gradient, at most


@dataclass(frozen=True)
class Example:
    """A text, and the target's logits for its tokens from `first` on."""

    tokens: tuple[int, ...]
    first: int
    logits: Tensor  # float16 [len(tokens) - first, V]


class Overheard:
    """A language model, of whose last pass the logits are kept."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model, self.vocabulary, self.context = model, model.vocabulary, model.context
        self.logits = torch.empty(0)

    def new_cache(self, capacity: int) -> Any:
        return self.model.new_cache(capacity)

    def forward(self, tokens: Sequence[int], cache: Any, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        self.logits = self.model.forward(tokens, cache, parents, rows)
        return self.logits


def run(
    family: Family, draft: LanguageModel[Any] | None, prompt: Sequence[int], k: int, params: SamplingParams
) -> Generator[None, None, tuple[LaneStats, Example]]:
    """One run of the shipped loop, plain without a draft. None after every event, where it may be left."""
    target, lane = Overheard(family.target), "speculative" if draft else "plain"
    drafter = DraftModelDrafter(draft, min(draft.context, len(prompt) + params.max_tokens)) if draft else NoDrafter()
    task = Task(
        target, prompt, params, drafter, k if draft else 0, end_tokens=family.end_tokens,
        token_bytes=family.pieces.bytes, piece=family.pieces.piece, lane=lane, details=False,
    )  # fmt: skip
    tokens, told, events = list(prompt), list[Tensor](), list[Event]()
    for event in generate(task):
        events.append(event)
        if isinstance(event, Committed):
            tokens += event.tokens
            told.append(
                target.logits[: len(event.tokens)].half()
            )  # of a chain: row i is the distribution of its token i
        yield
    return LaneStats.of(events, lane), Example(tuple(tokens), len(prompt), torch.cat(told))


class Student:
    """A copy of a draft that was read from a folder. It learns at one temperature, that of the runs."""

    def __init__(self, draft: Transformer, temperature: float) -> None:
        assert draft.source is not None
        self.draft, self.temperature = draft, temperature
        config = pretrained.as_library(read_json(draft.source / "config.json"))
        self.model = pretrained.built(config, read_weights(draft.source), torch.float32, "cpu").requires_grad_(True)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The divergence of the draft's distribution from the target's, at all places of these examples."""
        texts = [torch.tensor(example.tokens[:-1]) for example in examples]
        states = self.model.model(input_ids=pad_sequence(texts, batch_first=True), use_cache=False).last_hidden_state
        judged = torch.cat([states[i, example.first - 1 : len(texts[i])] for i, example in enumerate(examples)])
        p = torch.cat([example.logits for example in examples]).float()
        return divergence(self._distribution(p), self._distribution(self.model.lm_head(judged)))

    def _distribution(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).log_softmax(-1)

    def step(self, examples: Sequence[Example], rate: float = 1.0) -> float:
        """One step of the optimiser, at that share of the highest rate; the loss before it."""
        for group in self.optimiser.param_groups:
            group["lr"] = RATE * rate
        loss = self.loss(examples)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LONGEST_STEP)
        self.optimiser.step()
        return float(loss.detach())

    def exported(self) -> Transformer:
        """What was learned so far as a draft for the engine, in 8 bits where the one it began as was."""
        weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.draft.config.tie_word_embeddings:
            del weights["lm_head.weight"]
        return Transformer(self.draft.config, weights, self.draft.dtype, "cpu", self.draft.stored)
