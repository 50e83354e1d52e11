"""Run lanes on one device: speculative and plain decoding of one prompt, optionally transformers as a peer."""

from __future__ import annotations

from collections.abc import Generator

from .. import rules
from ..engine import Task
from ..events import Event
from ..families.zoo import Family
from ..gpu.lane import generate
from ..methods import check_request
from ..types import SamplingParams
from ..verify import RejectionSampling, Rule
from .interleave import interleave, PEER, PLAIN, SPECULATIVE
from .probe import probe
from .transformers import assisted


def tasks(
    family: Family,
    prompt: str,
    drafter: str,
    k: int,
    params: SamplingParams,
    details: bool,
    rule: str = "rejection",
    peer: bool = False,
) -> dict[str, Task]:
    """Make one task for each lane.

    The plain lane has the speculative lane's rule, so that both have the same kind of sampler. If that rule is lossy,
    the plain lane has rejection sampling.
    """
    check_request(prompt, drafter, k, rule)
    tokens = family.encode(prompt)
    capacity = min(family.target.context, len(tokens) + params.max_tokens)
    judge = rules.make_rule(rule)
    if wrapped := family.wrapped(drafter):
        probe(family, wrapped)  # an adaptive drafter chooses its depth by the costs that are measured here

    def task(lane: str, drafter_name: str, k: int, rule: Rule) -> Task:
        target, drafter = family.lane(drafter_name, capacity)
        return Task(
            target,
            tokens,
            params,
            drafter,
            k,
            rule,
            end_tokens=family.end_tokens,
            token_bytes=family.pieces.bytes,
            piece=family.pieces.piece,
            lane=lane,
            details=details,
        )

    plain_rule = judge if judge.lossless else RejectionSampling()
    peers = {PEER: task(PEER, drafter, k, RejectionSampling())} if peer else {}
    return {SPECULATIVE: task(SPECULATIVE, drafter, k, judge), **peers, PLAIN: task(PLAIN, "none", 0, plain_rule)}


def race(
    family: Family,
    prompt: str,
    drafter: str = "draft_model",
    k: int = 4,
    params: SamplingParams | None = None,
    details: bool = True,
    rule: str = "rejection",
    peer: bool = False,
) -> Generator[Event, None, None]:
    """Run all lanes and yield their events, interleaved by the lanes' clocks. `peer` adds transformers as a lane.

    Raises PromptError for a prompt that is empty or too long; ValueError for any other argument that cannot run, such
    as an unknown drafter, or with `peer` a drafter that transformers does not support.
    """
    lanes = tasks(family, prompt, drafter, k, params or SamplingParams(), details, rule, peer)
    return interleave({lane: (assisted if lane == PEER else generate)(task) for lane, task in lanes.items()})
