"""Run lanes on one device: speculative and plain decoding of one prompt, optionally transformers as a peer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from .. import rules
from ..drafters.base import Drafter
from ..events import Event
from ..families.zoo import Family
from ..gpu.lane import generate
from ..loop import Task
from ..models.view import TargetView
from ..types import SamplingParams
from ..verify import RejectionSampling, Rule
from .interleave import interleave, PEER, PLAIN, SPECULATIVE
from .probe import probe
from .transformers import assisted


def tasks(
    family: Family,
    prompt: Any,
    drafter: str | Drafter,
    k: int,
    params: SamplingParams,
    details: bool,
    rule: str | Rule = "rejection",
    peer: bool = False,
) -> dict[str, Task]:
    """Make one task for each lane.

    The plain lane has the speculative lane's rule, so that both have the same kind of sampler. If that rule is lossy,
    the plain lane has rejection sampling.
    """
    tokens = family.encode(prompt)
    judge = rules.make_rule(rule) if isinstance(rule, str) else rule

    def task(lane: str, drafter: str | Drafter, k: int, rule: Rule) -> Task:
        return make_task(family, tokens, drafter, k, params, rule, lane, details)

    plain_rule = judge if judge.lossless else RejectionSampling()
    peers = {PEER: task(PEER, drafter, k, RejectionSampling())} if peer else {}
    return {SPECULATIVE: task(SPECULATIVE, drafter, k, judge), **peers, PLAIN: task(PLAIN, "none", 0, plain_rule)}


def make_task(
    family: Family,
    tokens: Sequence[int],
    drafter: str | Drafter,
    k: int,
    params: SamplingParams,
    rule: Rule,
    lane: str = SPECULATIVE,
    details: bool = True,
) -> Task:
    """Make the task of a lane. Raises ValueError for an unknown drafter, or an object that cannot draft."""
    if isinstance(drafter, str):
        if wrapped := family.wrapped(drafter):
            probe(family, wrapped)  # an adaptive drafter chooses its depth by the costs that are measured here
        target, made = family.lane(drafter, min(family.target.context, len(tokens) + params.max_tokens))
    elif callable(getattr(drafter, "propose", None)) and hasattr(drafter, "name"):
        target, made = TargetView(family.target), drafter
    else:
        raise ValueError(f"a {type(drafter).__name__} is no drafter: it needs a `name` and `propose`")
    return Task(
        target,
        tokens,
        params,
        made,
        k,
        rule,
        end_tokens=family.end_tokens,
        token_bytes=family.pieces.bytes,
        piece=family.pieces.piece,
        lane=lane,
        details=details,
        resources=family.resources,
    )


def race(
    family: Family,
    prompt: Any,
    drafter: str | Drafter = "draft_model",
    k: int = 4,
    params: SamplingParams | None = None,
    details: bool = True,
    rule: str | Rule = "rejection",
    peer: bool = False,
) -> Generator[Event, None, None]:
    """Run all lanes and yield their events, interleaved by the lanes' clocks. `peer` adds transformers as a lane.

    Raises PromptError for a prompt that is empty or too long; ValueError for any other argument that cannot run, such
    as an unknown drafter, or with `peer` a drafter that transformers does not support.
    """
    lanes = tasks(family, prompt, drafter, k, params or SamplingParams(), details, rule, peer)
    return interleave({lane: (assisted if lane == PEER else generate)(task) for lane, task in lanes.items()})
