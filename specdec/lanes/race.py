"""Run lanes on one device: speculative and plain decoding of one prompt, optionally transformers as a peer."""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from .. import rules
from ..drafters.base import Drafter
from ..events import Event, PEER, PLAIN, SPECULATIVE
from ..families.zoo import Family
from ..loop import Task
from ..messages import Refused
from ..models.view import TargetView
from ..types import SamplingParams
from ..verify import RejectionSampling, Rule
from .executor import OnRead, run_task
from .interleave import interleave
from .probe import probe
from .transformers import assisted


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
    """Make the task of a lane. Raises Refused for an unknown drafter, or an object that cannot draft or judge."""
    if not isinstance(rule, Rule):
        raise Refused(f"a {type(rule).__name__} is no rule: derive its class from specdec.verify.Rule")
    if isinstance(drafter, str):
        if wrapped := family.wrapped(drafter):
            probe(family, wrapped)  # an adaptive drafter chooses its depth by the costs that are measured here
        target, made = family.lane(drafter, min(family.target.context, len(tokens) + params.max_tokens))
    elif isinstance(drafter, Drafter):
        target, made = TargetView(family.target), drafter
    else:
        raise Refused(f"a {type(drafter).__name__} is no drafter: derive its class from specdec.Drafter")
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


def race_lanes(
    family: Family,
    prompt: Any,
    drafter: str | Drafter = "draft_model",
    k: int = 4,
    params: SamplingParams | None = None,
    details: bool = True,
    rule: str | Rule = "rejection",
    peer: bool = False,
    on_read: OnRead = lambda lane, done, total: None,
) -> Generator[Event, None, None]:
    """Run all lanes and yield their events, interleaved by the lanes' clocks. `peer` adds transformers as a lane.

    `on_read` is told how much of a long prompt a lane has read.

    Raises Refused for a prompt that is empty or too long, and for any other argument that cannot run, such
    as an unknown drafter, or with `peer` a drafter that transformers does not support.
    """
    judge = rules.make_rule(rule) if isinstance(rule, str) else rule
    task = partial(make_task, family, family.encode(prompt), params=params or SamplingParams(), details=details)
    lanes = {SPECULATIVE: run_task(task(drafter, k, rule=judge), on_read)}
    if peer:
        lanes[PEER] = assisted(task(drafter, k, rule=RejectionSampling(), lane=PEER))
    # By the same rule, so that both have the same kind of sampler. A rule of the user's own could bias its control.
    plain_rule = judge if judge.lossless and type(judge) in rules.RULES.values() else RejectionSampling()
    lanes[PLAIN] = run_task(task("none", 0, rule=plain_rule, lane=PLAIN), on_read)
    return interleave(lanes)
