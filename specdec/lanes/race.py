"""Run lanes on one device: speculative and plain decoding of one prompt, optionally transformers as a peer."""

from collections.abc import Generator, Sequence
from dataclasses import replace

import torch

from .. import loop, rules
from ..drafters.base import Drafter
from ..events import Event, PEER, PLAIN, SPECULATIVE
from ..families.zoo import Family
from ..gpu.lane import CudaExecutor, EagerExecutor, reason_against, target_of
from ..host import HostExecutor, OnRead
from ..messages import Refused
from ..models.view import TargetView
from ..settings import RunRequest
from ..task import Task
from ..verify import RejectionSampling, Rule
from .interleave import interleave
from .transformers import assisted


def run_task(task: Task, on_read: OnRead = lambda lane, done, total: None) -> Generator[Event, None, None]:
    """Run `task` in captured graphs if its target is on a GPU and its drafter allows it, else by the host's executor.

    `on_read` is told how much of a long prompt is read; a GPU is too fast for that. Raises Refused as `loop.generate`.
    """
    if torch.device(getattr(target_of(task), "device", "cpu")).type != "cuda":
        return loop.generate(task, HostExecutor(task, on_read=on_read))
    reason = reason_against(task)
    return loop.generate(task, EagerExecutor(task, eager=reason) if reason else CudaExecutor(task))


def make_task(
    family: Family, tokens: Sequence[int], request: RunRequest, lane: str = SPECULATIVE, details: bool = True
) -> Task:
    """Make the task of a lane that continues `tokens`; its drafter and rule are names or objects.

    Raises Refused for an unknown drafter, `adaptive` before its drafter is probed, and what cannot draft or judge.
    """
    drafter, params = request.drafter, request.params
    rule = rules.make_rule(request.rule) if isinstance(request.rule, str) else request.rule
    if not (isinstance(rule, Rule) and hasattr(rule, "name") and hasattr(rule, "lossless")):
        raise Refused(
            f"a {type(rule).__name__} is no rule: derive its class from specdec.verify.Rule, and set name and lossless"
        )
    if isinstance(drafter, str):
        capacity = min(family.target.context, len(tokens) + params.max_tokens)
        target, drafter = family.new_drafter(drafter, capacity, family.template_counts(request.prompt))
    elif isinstance(drafter, Drafter):
        target = TargetView(family.target)
    else:
        raise Refused(f"a {type(drafter).__name__} is no drafter: derive its class from specdec.Drafter")
    return Task(
        target,
        tokens,
        params,
        drafter,
        request.k,
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
    request: RunRequest,
    details: bool = True,
    alone: bool = False,
    on_read: OnRead = lambda lane, done, total: None,
) -> Generator[Event, None, None]:
    """Run all lanes and yield their events, interleaved by the lanes' clocks; or the speculative lane `alone`.

    `request` leaves nothing open; its `peer` adds transformers as a lane. `on_read` is told how much of a long prompt a
    lane has read. Raises Refused for a prompt that is empty or too long, and for any other setting that cannot run,
    such as an unknown drafter, or with `peer` a drafter that transformers does not support.
    """
    tokens = family.encode(request.prompt)
    task = make_task(family, tokens, request, details=details)
    lanes = {SPECULATIVE: run_task(task, on_read)}
    if alone:
        return lanes[SPECULATIVE]
    usual = replace(request, rule=RejectionSampling())
    if request.peer:
        lanes[PEER] = assisted(make_task(family, tokens, usual, PEER, details))
    # By the same rule, so that both have the same kind of sampler. A rule of the user's own could bias its control.
    is_ours = task.rule.lossless and type(task.rule) in rules.RULES.values()
    plain = replace(usual, drafter="none", k=0, rule=task.rule if is_ours else usual.rule)
    lanes[PLAIN] = run_task(make_task(family, tokens, plain, PLAIN, details), on_read)
    return interleave(lanes)
