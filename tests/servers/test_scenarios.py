"""Mistakes of state and of batches: what shows each, with how many texts, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ours import MakeTask, of_pair, Ours, serving

from specdec.proof.pair import ModelPair, toy
from specdec.proof.scenarios import SCENARIOS, WINDOW, Windowed
from specdec.servers.certificate import certify, Weights
from specdec.servers.connect import connect
from specdec.types import SamplingParams

SHORT, LONG = (0, 1), tuple(i % 5 for i in range(WINDOW + 2))


def windowed() -> ModelPair:
    pair = toy()
    return ModelPair("windowed", Windowed(pair.models[0]), pair.models[1], (0, 1), pair.params, pair.piece, 12)


def told_of(key: str, pair: ModelPair, prompt: Sequence[int], draws: int, batch: int = 50) -> Any:
    """The certificate of the toy pair as a server with that mistake in it."""
    made, scenario = of_pair(pair), SCENARIOS[key]

    class Wrong(Ours):
        def sample(self, prompt: Sequence[int], params: SamplingParams, n: int) -> list[tuple[int, ...]]:
            return scenario.texts(made, prompt, params, n)

    task: MakeTask = lambda prompt, params: scenario.plant(made(prompt, params), 0)  # noqa: E731
    with serving(task, kind=Wrong) as address:
        judged = Weights(pair.models[0], pair.piece, pair.models[1])
        *_, told = certify(connect(address), None, judged, 0.8, draws, contexts={"toy": prompt}, batch=batch)
    return told


@pytest.mark.parametrize(
    ("key", "prompt", "draws"), [("kept_tail", LONG, 100), ("reset_generator", SHORT, 200), ("third_text", SHORT, 200)]
)
def test_texts_show_it(key: str, prompt: Sequence[int], draws: int, record_property: Any) -> None:
    pair = windowed() if key == "kept_tail" else toy()
    told = told_of(key, pair, prompt, draws)
    record_property("figure", f"{key}: {told['verdict']} after {draws:,}, tests {told['contexts'][0]['tests']}")
    assert told["verdict"] == "not lossless"


@pytest.mark.parametrize(
    ("key", "batch", "why"), [("kept_tail", 50, "no ring has wrapped"), ("third_text", 2, "nobody asked for three")]
)
def test_too_short_a_prompt_or_too_few_at_once_show_nothing(key: str, batch: int, why: str) -> None:
    pair = windowed() if key == "kept_tail" else toy()
    assert told_of(key, pair, SHORT, 500, batch)["verdict"] == "lossless", why


def test_a_certificate_says_that_nothing_was_drafted() -> None:
    assert told_of("no_drafts", toy(), SHORT, 100)["verdict"] == "speculation never ran"
