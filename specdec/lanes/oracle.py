"""What a perfect draft would give: plain decoding, then a run that drafts the text of it."""

from __future__ import annotations

from dataclasses import replace

from ..drafters.oracle import OracleDrafter
from ..events import Committed, Event
from ..families.zoo import Family
from ..gpu.lane import generate
from ..types import SamplingParams
from .interleave import PLAIN, SPECULATIVE
from .race import tasks


def perfect(family: Family, prompt: str, k: int, params: SamplingParams) -> tuple[list[Event], list[Event]]:
    """The events of both, the perfect draft's first; text for text the same."""
    rule = "shared_noise" if params.temperature > 0.0 else "rejection"
    lanes = tasks(family, prompt, "none", 0, params, details=False, rule=rule)
    plain = list(generate(lanes[PLAIN]))
    text = [token for event in plain if isinstance(event, Committed) for token in event.tokens]
    oracle = OracleDrafter([*lanes[PLAIN].prompt, *text])
    return list(generate(replace(lanes[SPECULATIVE], drafter=oracle, k=k))), plain
