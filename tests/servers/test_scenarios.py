"""Mistakes of state, which no single cycle shows: what shows each to a certificate, and what does not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from specdec.drafters.base import NoDrafter
from specdec.models.base import LanguageModel
from specdec.proof.certify import ModelPair, toy
from specdec.proof.toys import ByPrefix, run_loop, TokenList
from specdec.sampling import RandomSampler
from specdec.servers.certificate import certify, Weights
from specdec.servers.connect import connect
from specdec.task import Task
from specdec.types import SamplingParams
from tests.servers.ours import of_pair, Ours, serving

WINDOW = 8  # tokens that a windowed toy reads
SHORT, LONG = (0, 1), tuple(i % 5 for i in range(WINDOW + 2))


class Windowed(ByPrefix):
    """A toy with a sliding window: a row depends on the last tokens alone."""

    def __init__(self, model: LanguageModel[Any], cache: type[TokenList] = TokenList) -> None:
        self._model, self._cache, self.vocabulary, self.context = model, cache, model.vocabulary, model.context

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        return self._model.forward(prefix[-WINDOW:], self._model.new_cache(WINDOW))[-1]

    def new_cache(self, capacity: int) -> TokenList:
        return self._cache([])


class KeepsTail(TokenList):
    """A ring that cannot roll back once it has wrapped: what was rejected stays in the window (rMLX issue 506)."""

    stale = 0

    @property
    def length(self) -> int:
        return len(self.tokens) - self.stale

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        if len(self.tokens) <= WINDOW:
            super().keep(length, path)
        else:
            self.stale = len(self.tokens) - length - len(path)


class Reset(RandomSampler):
    """Begins anew in every cycle (llama.cpp pull request 27694)."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def at(self, length: int) -> None:
        super().__init__(self._seed)


def keeps_tail(task: Task) -> Task:
    return replace(task, target=Windowed(task.target, KeepsTail))


def verdict(prompt, draws, plant=lambda task: task, sampler=RandomSampler) -> Any:
    pair = toy()
    if plant is keeps_tail:
        pair = ModelPair("windowed", Windowed(pair.models[0]), pair.models[1], (0, 1), pair.params, pair.piece, 12)
    made = of_pair(pair)

    class Wrong(Ours):
        def sample(self, prompt: Sequence[int], params: SamplingParams, n: int) -> list[tuple[int, ...]]:
            run = run_loop(lambda: plant(made(prompt, params)))
            return [run(sampler(params.seed + place)) for place in range(n)]

    with serving(lambda prompt, params: plant(made(prompt, params)), Wrong, encode=lambda _: prompt) as address:
        weights = Weights(pair.models[0], pair.piece)
        *_, last = certify(connect(address), None, weights, 0.8, draws, contexts={"toy": "text"})
    return last["verdict"]


@pytest.mark.long
def test_a_ring_that_keeps_what_was_rejected_shows_once_it_has_wrapped() -> None:
    assert verdict(LONG, 100, keeps_tail) == "not lossless"
    assert verdict(SHORT, 500, keeps_tail) == "lossless"


@pytest.mark.long
def test_a_generator_that_begins_anew_shows_and_so_does_a_server_that_drafts_nothing() -> None:
    assert verdict(SHORT, 200, sampler=Reset) == "not lossless"
    drafts_nothing = verdict(SHORT, 100, lambda task: replace(task, drafter=NoDrafter()))  # LM Studio issue 1914
    assert drafts_nothing == "speculation never ran"
