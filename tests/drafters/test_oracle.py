"""A perfect draft: lossless as any other, and kept whole where it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdec.drafters import OracleDrafter
from specdec.engine import generate
from specdec.events import Committed, Drafted, Event
from specdec.families.zoo import load
from specdec.lanes.race import tasks
from specdec.methods import METHODS
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import Case, PARAMS, PROMPT, run_loop
from specdec.rules import RULES
from specdec.types import SamplingParams


@pytest.mark.parametrize("rule", [key for key, rule in RULES.items() if rule.lossless])
@pytest.mark.parametrize("params", PARAMS[:6:2], ids=lambda params: f"T={params.temperature}")
def test_every_random_path_of_a_run_on_it_is_the_targets(rule: str, params: SamplingParams) -> None:
    """Where the run leaves the text, it drafts nothing more."""
    case = Case(3, 2, 3, params, seed=4)
    for text in ((0, 1, 2, 0), (2, 2, 2, 2), ()):
        run = run_loop(lambda text=text: case.task(RULES[rule](), OracleDrafter((*PROMPT, *text))))  # type: ignore[misc]
        assert total_variation(output_distribution(run)[0], case.exact_distribution()) <= 1e-12


def tokens(events: list[Event]) -> list[int]:
    return [token for event in events if isinstance(event, Committed) for token in event.tokens]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_plain_decodings_own_text_is_kept_whole(temperature: float) -> None:
    params = SamplingParams(temperature, max_tokens=24, seed=3, ignore_end=True)
    rule = "shared_noise" if temperature else "rejection"
    lanes = tasks(load(), "Once upon a time", "none", 0, params, details=False, rule=rule)
    plain = list(generate(lanes["plain"]))
    drafter = OracleDrafter([*lanes["plain"].prompt, *tokens(plain)])
    oracle = list(generate(replace(lanes["speculative"], drafter=drafter, k=5)))
    assert tokens(oracle) == tokens(plain) and len(tokens(plain)) == 24
    drafts = sum(len(event.tokens) for event in oracle if isinstance(event, Drafted))
    assert drafts == sum(event.accepted for event in oracle if isinstance(event, Committed)) > 15


def test_it_is_no_method() -> None:
    assert "oracle" not in METHODS
