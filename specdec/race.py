"""Two lanes on one device: speculative and plain decoding of one prompt, each with its own clock.

The lane whose clock is behind runs next, so both advance in the same time and a reader of the events sees the
true speed-up grow. Neither lane ever waits for the other on its own clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from . import rules
from .engine import check_prompt, generate, PromptError, Task
from .events import Committed, Event, Finished
from .probe import probe
from .types import SamplingParams
from .verify import RejectionSampling, Rule
from .zoo import adapted, Family

SPECULATIVE, PLAIN = "speculative", "plain"


def tasks(
    family: Family, prompt: str, drafter: str, k: int, params: SamplingParams, details: bool, rule: str = "rejection"
) -> dict[str, Task]:
    """One task a lane, alike but for the drafter. The rule decides the noise, too, so plain decoding has the same.

    Only a lossy rule is not the plain lane's: without a draft nothing is lossy.
    """
    if not prompt.strip():
        raise PromptError("The prompt is empty. Type a few words to start from.")
    tokens = family.encode(prompt)
    capacity = min(family.target.context, len(tokens) + params.max_tokens)
    judge = rules.named(rule)
    if wrapped := adapted(drafter):
        probe(family, wrapped)

    def task(lane: str, drafter_name: str, k: int, rule: Rule) -> Task:
        target, drafter = family.lane(drafter_name, capacity)
        return Task(
            target, tokens, params, drafter, k, rule, end_tokens=family.end_tokens,
            token_bytes=family.pieces.bytes, piece=family.pieces.piece, lane=lane, details=details,
        )  # fmt: skip

    plain = judge if judge.lossless else RejectionSampling()
    return {SPECULATIVE: task(SPECULATIVE, drafter, k, judge), PLAIN: task(PLAIN, "none", 0, plain)}


def race(
    family: Family,
    prompt: str,
    drafter: str = "draft_model",
    k: int = 4,
    params: SamplingParams | None = None,
    details: bool = True,
    rule: str = "rejection",
) -> Generator[Event, None, None]:
    """Run both lanes; their events come interleaved by the lanes' clocks.

    PromptError for a prompt that is empty or too long, ValueError for an unknown drafter or rule.
    """
    lanes = tasks(family, prompt, drafter, k, params or SamplingParams(), details, rule)
    for task in lanes.values():
        check_prompt(task)
    return interleave({lane: generate(task) for lane, task in lanes.items()})


def interleave(lanes: dict[str, Generator[Event, None, None]]) -> Generator[Event, None, None]:
    """A whole cycle at a time, of the lane whose clock (from the first token on) is behind."""
    clocks, first = dict.fromkeys(lanes, 0.0), dict.fromkeys(lanes, 0.0)
    running = list(lanes)
    with contextlib.ExitStack() as stack:
        for lane in lanes.values():
            stack.enter_context(contextlib.closing(lane))
        while running:
            lane_behind = min(running, key=lambda name: clocks[name])
            for event in lanes[lane_behind]:
                yield event
                if isinstance(event, Committed):
                    if event.cycle == 0:
                        first[lane_behind] = event.at
                    clocks[lane_behind] = event.at - first[lane_behind]
                    break
                if isinstance(event, Finished):
                    running.remove(lane_behind)
                    break
