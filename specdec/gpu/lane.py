"""A lane on a GPU: the loop of `engine.py` with its cycles on the device (`cycle.py`), told as the same events.

The host waits once a cycle, for the packed record. Drafts are then told together with their verdict, and times are the
device's own, between CUDA events. An adaptive drafter chooses each cycle's depth beforehand, from the text alone. A run
that the device has no cycle for is the plain loop's (`reason_against`).
The same seed gives the same text again, though not the plain loop's: random numbers come in another order.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import torch

from .. import describe, engine
from ..drafters import AdaptiveDrafter, Drafter, DraftModelDrafter, PromptLookupDrafter
from ..engine import check_prompt, MAX_DRAFTER_FAILURES, Stopwatch, Task, Transcript
from ..events import Drafted, Event, Failed, Finished, Position, Started, Verified
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import residual, SharedNoiseSampler
from ..verify import RejectionSampling
from .accept import Record
from .cycle import Cycle, cycle_for
from .drafting import Draft, extent_of, form_of, places_beyond
from .graphs import aligned, bucket_for
from .trees import TreeRecord

KEPT = 4  # cycles, with their graphs, that wait for a further run of their kind
NO_ROOM = "the GPU has no room for this run; shorten it, choose a smaller pair, or end what else uses the GPU"
_idle: dict[tuple[object, ...], Cycle] = {}


def generate(task: Task) -> Generator[Event, None, None]:
    """`task` on the device where its target is on a GPU and there is a cycle for it, else by the plain loop."""
    if torch.device(getattr(target_of(task), "device", "cpu")).type != "cuda":
        return engine.generate(task)
    reason = reason_against(task)
    return eagerly(engine.generate(task), reason) if reason else on_device(task)


def eagerly(events: Generator[Event, None, None], reason: str) -> Generator[Event, None, None]:
    """The plain loop's `events`; the last one says why it was the plain loop's."""
    with contextlib.closing(events):
        for event in events:
            yield replace(event, eager=reason) if isinstance(event, Finished) else event


def on_device(task: Task, cycle: Cycle | None = None) -> Generator[Event, None, None]:
    """PromptError as from the plain loop; ValueError if the device has no cycle for this task.

    `cycle` is one that the caller keeps, made for this target, drafter, K, length and kind of sampling.
    """
    check_prompt(task)
    if reason := reason_against(task):
        raise ValueError(reason)
    return _run(task, contextlib.nullcontext(cycle) if cycle else leased(task))


def target_of(task: Task) -> object:
    return task.target.model if isinstance(task.target, TargetView) else task.target


def reason_against(task: Task) -> str:
    """Why the plain loop has to do it; "" if the device can."""
    drafter, target = inner_of(task), target_of(task)
    if names := task.params.host_only or ["grammar"] * bool(task.guide):
        return f"{', '.join(names)}: applied on the host"
    if not isinstance(target, Transformer):
        return "only our own decoder runs on the device"
    if type(task.rule) is not RejectionSampling:
        return f"{task.rule.name} is judged on the host"
    if form_of(drafter) is None:
        return f"{drafter.name} drafts on the host"
    if isinstance(drafter, PromptLookupDrafter) and (drafter.longest, drafter.shortest) != (3, 1):
        return "on the device prompt lookup takes 3, 2 or 1 tokens"
    if isinstance(drafter, DraftModelDrafter):
        if not isinstance(drafter.model, Transformer):
            return "only our own decoder drafts on the device"
        if drafter.model.context < capacity(task):
            return f"the draft model reads at most {drafter.model.context} tokens"
    return ""


def inner_of(task: Task) -> Drafter:
    return task.drafter.inner if type(task.drafter) is AdaptiveDrafter else task.drafter


def draft_of(task: Task) -> Draft:
    drafter = inner_of(task)
    form = form_of(drafter)
    return None if task.k == 0 or form is None else form.source(drafter)


def capacity(task: Task) -> int:
    """As much as fits a whole bucket with the drafts beyond it, so that runs of about one length share their graphs."""
    context, beyond = task.target.context, places_beyond(draft_of(task), task.k)
    needed = min(context, len(task.prompt) + task.params.max_tokens)
    return min(context, bucket_for(needed + beyond, aligned(context + beyond)) - beyond)


@contextlib.contextmanager
def leased(task: Task) -> Iterator[Cycle]:
    """A cycle of an earlier run of this kind, if one is free, for this run alone. A broken run's is dropped."""
    target, draft, params = target_of(task), draft_of(task), task.params
    assert isinstance(target, Transformer)
    warps = params.temperature, params.top_k, params.top_p
    key = (target, draft, extent_of(draft, task.k), capacity(task), warps, task.details)
    make = functools.partial(cycle_for(draft), target, draft, task.k, capacity(task), params, details=task.details)
    cycle = _idle.pop(key, None) or with_room(make)
    yield cycle
    _idle[key] = cycle
    while len(_idle) > KEPT:
        del _idle[next(iter(_idle))]


def with_room(make: Callable[[], Cycle]) -> Cycle:
    """A new cycle, in the place of those that wait if there is no other. torch's OutOfMemoryError if even so not."""
    with contextlib.suppress(torch.OutOfMemoryError):
        return make()
    _idle.clear()
    gc.collect()  # what the error held
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return make()


def _run(task: Task, lease: contextlib.AbstractContextManager[Cycle]) -> Generator[Event, None, None]:
    transcript, watch, eager = Transcript(task), Stopwatch(), ""
    try:
        with lease as cycle:
            yield from _cycles(task, cycle, transcript, watch)
            eager = cycle.graphs.reason
    except torch.OutOfMemoryError:
        yield transcript.fail(MemoryError(NO_ROOM), watch.elapsed)
    except Exception as error:
        yield transcript.fail(error, watch.elapsed)
    yield transcript.finished(watch.elapsed, eager or None)


def _cycles(task: Task, cycle: Cycle, transcript: Transcript, watch: Stopwatch) -> Generator[Event, None, None]:
    lane, params, failures = task.lane, task.params, 0
    noise, tokens = SharedNoiseSampler(params.seed), transcript.tokens
    adaptive = task.drafter if isinstance(task.drafter, AdaptiveDrafter) else None
    costs = adaptive.costs if adaptive else None
    yield Started(lane, task.drafter.name, task.depth, params, len(tokens), task.rule.name, task.rule.lossless, costs)
    if adaptive:
        adaptive.stops = False
    cycle.prepare(len(tokens), transcript.limit, range(cycle.k + 1) if adaptive else None)
    while transcript.reason is None:
        number, length = transcript.cycle, len(tokens)
        wanted = min(cycle.k, transcript.wanted - 1) if number else 0
        noise.at(length)
        with watch:
            start = watch.now()
            if adaptive and (wanted or not number):
                wanted = adaptive.depth(tokens, wanted)
            if number:
                record = cycle.run(wanted if adaptive else None)
            else:
                record = cycle.begin(task.prompt, transcript.limit, params.seed)
            if not record.finite:
                raise FloatingPointError("the target's logits are not finite")
        transcript.spent["prefill"] += cycle.prefill_seconds  # the draft's, after the first token was told
        start += cycle.prefill_seconds
        drafted = start + (cycle.draft_seconds if wanted else 0.0)
        verified = drafted + cycle.verify_seconds
        transcript.spend("draft", drafted - start)
        transcript.spend("verify", verified - drafted)
        if wanted and not record.sound:
            failures += 1
            reason = "DraftError: the draft's logits are not finite"
            if failures == MAX_DRAFTER_FAILURES:
                cycle.stop_drafting()
                reason += " (drafter switched off)"
            if failures <= MAX_DRAFTER_FAILURES:
                yield Failed(lane, number, "drafter", reason, False, drafted)
        elif wanted:
            failures = 0
        proposal, verdict = record.proposal(), record.verdict()
        if adaptive:
            adaptive.drafted(length, proposal)
        if record.drafted:
            pieces = tuple(map(task.piece, record.drafted))
            yield Drafted(lane, number, record.drafted, pieces, proposal.parents, start, drafted)
        emitted = verdict.emitted(proposal)
        pieces = tuple(map(task.piece, emitted))
        yield Verified(lane, number, start=drafted, end=verified, **told(task, cycle, record, noise))
        with watch:
            committed, readable = transcript.commit(emitted)
        yield transcript.committed(committed, pieces, readable, verdict, watch.elapsed)


def told(task: Task, cycle: Cycle, record: Record | TreeRecord, noise: SharedNoiseSampler) -> dict[str, Any]:
    """What `Verified` tells beside its times, as `describe` tells it of the plain loop."""
    if task.details:
        rows, distributions = cycle.distributions_told(record)
        proposal, path = record.proposal(distributions), record.verdict().path
        last = path[-1] if path else -1
        distribution = rows[last + 1]
        for node in proposal.children(last):  # none of them was kept
            distribution = residual(
                distribution, None if distributions is None else distributions[node], proposal.tokens[node]
            )
        return describe.verification(proposal, rows, record.verdict(distribution), task.piece, noise)
    statuses = describe.statuses(record.proposal(), record.verdict())
    judged = zip(record.drafted, statuses, record.p, record.q, record.u, strict=True)
    return {
        "positions": tuple(
            Position(i, token, task.piece(token), status, p, q, None if status == "discarded" else u)
            for i, (token, status, p, q, u) in enumerate(judged)
        )
    }
