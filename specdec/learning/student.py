"""A draft model that can be trained: transformers' copy of a checkpoint, and the way back to our own decoder."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..models import pretrained
from ..models.checkpoint import read_json, read_weights
from ..models.transformer import Transformer
from .experience import Lesson
from .loss import divergence

RATE = 1.5e-3  # of AdamW, at its highest
LONGEST_STEP = 1.0  # the norm of a gradient, at most


class Student:
    """A copy of a draft that was read from a folder. It learns at one temperature, that of the runs."""

    def __init__(self, draft: Transformer, temperature: float) -> None:
        assert draft.source is not None
        self.draft, self.temperature = draft, temperature
        config = pretrained.as_library(read_json(draft.source / "config.json"))
        self.model = pretrained.built(config, read_weights(draft.source), torch.float32, "cpu").requires_grad_(True)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0)

    def loss(self, lessons: Sequence[Lesson]) -> Tensor:
        """The divergence of the draft's distribution from the target's, at all places of these lessons."""
        texts = [torch.tensor(lesson.tokens[:-1]) for lesson in lessons]
        states = self.model.model(input_ids=pad_sequence(texts, batch_first=True), use_cache=False).last_hidden_state
        judged = torch.cat([states[i, lesson.first - 1 : len(texts[i])] for i, lesson in enumerate(lessons)])
        p = torch.cat([lesson.logits for lesson in lessons]).float()
        return divergence(self._distribution(p), self._distribution(self.model.lm_head(judged)))

    def _distribution(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).log_softmax(-1)

    def step(self, lessons: Sequence[Lesson], rate: float = 1.0) -> float:
        """One step of the optimiser, at that share of the highest rate; the loss before it."""
        for group in self.optimiser.param_groups:
            group["lr"] = RATE * rate
        loss = self.loss(lessons)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LONGEST_STEP)
        self.optimiser.step()
        return float(loss.detach())

    def graduate(self) -> Transformer:
        """What was learned so far as a draft for the engine, in 8 bits where the one it began as was."""
        weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.draft.config.tie_word_embeddings:
            del weights["lm_head.weight"]
        return Transformer(self.draft.config, weights, self.draft.dtype, "cpu", self.draft.stored)
