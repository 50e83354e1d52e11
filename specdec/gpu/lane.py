"""Executors for `loop.py` on a GPU, whose cycles run on the device (`runner.py`).

Other tasks use the host's executor. Its random numbers come in another order: the same seed samples another text.
"""

import contextlib
import functools
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .. import describe
from ..drafters.adaptive import AdaptiveDrafter
from ..drafters.draft_model import DraftModelDrafter
from ..events import Details, Position
from ..host import HostExecutor
from ..models.device import Resources
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import residual, Sampler
from ..task import CycleResult, Task
from ..verify import RejectionSampling
from .accept import Record
from .drafting import Draft, draft_of, DRAFTS, inner_of
from .graphs import aligned, bucket_for
from .runner import DeviceRunner


def target_of(task: Task) -> object:
    return task.target.model if isinstance(task.target, TargetView) else task.target


def reason_against(task: Task) -> str:
    """Return why no `DeviceRunner` can run `task`; "" if one can."""
    drafter, target = inner_of(task.drafter), target_of(task)
    if not isinstance(target, Transformer):
        return "only our own decoder runs on the device"
    if type(task.rule) is not RejectionSampling:
        return f"{task.rule.name} is judged on the host"
    if type(drafter) not in DRAFTS:
        return f"{drafter.name} drafts on the host"
    if isinstance(drafter, DraftModelDrafter):
        if not isinstance(drafter.model, Transformer):
            return "only our own decoder drafts on the device"
        if drafter.model.context < capacity(task):
            return f"the draft model reads at most {drafter.model.context} tokens"
    return ""


def capacity(task: Task) -> int:
    """Return the text's greatest length, rounded up so that similar runs share graphs."""
    context, beyond = task.target.context, draft_of(task.drafter, task.depth).k + 1
    needed = min(context, len(task.prompt) + task.params.max_tokens)
    return min(context, bucket_for(needed + beyond, aligned(context + beyond)) - beyond)


class EagerExecutor(HostExecutor):
    """Runs as `HostExecutor`, but drops the idle `DeviceRunner`s if memory runs out."""

    @contextlib.contextmanager
    def allocated(self, limit: int) -> Iterator[None]:
        with releasing_memory(self.task.resources), super().allocated(limit):
            yield


class CudaExecutor:
    """Runs cycles in captured graphs, if capture succeeds. Reuses an idle `DeviceRunner` with the same `RunnerKey`."""

    eager: str | None = None

    def __init__(self, task: Task) -> None:
        self.task = task
        self.adaptive = task.drafter if isinstance(task.drafter, AdaptiveDrafter) else None
        self.stopped = False

    @contextlib.contextmanager
    def allocated(self, limit: int) -> Iterator[None]:
        """Prepare a `DeviceRunner` for the run. Store it afterwards, unless the run has failed."""
        self.limit, idle = limit, self.task.resources.idle
        key = RunnerKey.from_task(self.task)
        with releasing_memory(self.task.resources):
            self.runner = runner = idle.pop(key, None) or new_runner(key, self.task)
            try:
                runner.prepare(len(self.task.prompt), limit, range(runner.k + 1) if self.adaptive else ())
                yield
                idle[key] = runner
            except GeneratorExit:  # the run is stopped between two cycles; `begin` sets all anew
                idle[key] = runner
                raise
            finally:
                self.eager = runner.graphs.reason or None
                while len(idle) > self.task.resources.max_idle:
                    del idle[next(iter(idle))]

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        runner = self.runner
        k = 0 if self.stopped else min(runner.k, k)
        prefill = len(tokens) == len(self.task.prompt)
        if self.adaptive and k:
            k = self.adaptive.depth(tokens, k, self.task.params.temperature)
        if prefill:
            record = runner.begin(self.task.prompt, self.limit, self.task.params.seed)
        else:  # without an adaptive drafter K stays the same, so that cycles share graphs
            record = runner.run(k if self.adaptive or self.stopped else None)
        if not record.finite:
            raise FloatingPointError("the target's logits are not finite")
        proposal = record.proposal()
        if self.adaptive:
            self.adaptive.remember_draft(len(tokens), proposal)
        return CycleResult(
            proposal,
            record.verdict(),
            functools.partial(self.describe, record),
            runner.draft_seconds if k else 0.0,
            runner.verify_seconds,
            "DraftError: the draft's logits are not finite" if k and not record.sound else "",
        )

    def stop_drafting(self) -> None:
        self.stopped = True

    def describe(self, record: Record, noise: Sampler | None) -> Details:
        """Describe a cycle as `describe.verification` does on the host."""
        task = self.task
        if noise is not None:
            rows, distributions = self.runner.host_distributions(record)
            n = record.accepted
            distribution = rows[n]
            if n < len(record.drafted):
                q = None if distributions is None else distributions[n]
                distribution = residual(distribution, q, record.drafted[n])
            proposal = record.proposal(distributions)
            return describe.verification(proposal, rows, record.verdict(distribution), task.piece, noise)
        statuses = describe.statuses(record.proposal(), record.verdict())
        judged = zip(record.drafted, statuses, record.p, record.q, record.u, strict=True)
        positions = (
            Position(i, token, task.piece(token), status, p, q, None if status == "discarded" else u)
            for i, (token, status, p, q, u) in enumerate(judged)
        )
        return Details(tuple(positions))


@dataclass(frozen=True)
class RunnerKey:
    """What a `DeviceRunner` is made for. Tasks with equal keys can use one in turn."""

    target: Transformer
    draft: Draft
    capacity: int
    temperature: float
    top_k: int
    top_p: float
    details: bool

    @classmethod
    def from_task(cls, task: Task) -> "RunnerKey":
        """Return the key for a task that has no `reason_against`."""
        target, params = target_of(task), task.params
        assert isinstance(target, Transformer)
        sampling = params.temperature, params.top_k, params.top_p
        return cls(target, draft_of(task.drafter, task.depth), capacity(task), *sampling, task.details)


def new_runner(key: RunnerKey, task: Task) -> DeviceRunner:
    """Make a `DeviceRunner`. If memory runs out, drop the idle ones and try once more."""
    make = functools.partial(DeviceRunner, key.target, key.draft, key.capacity, task.params, details=key.details)
    with contextlib.suppress(torch.OutOfMemoryError):
        return make()
    release_memory(task.resources)
    return make()


@contextlib.contextmanager
def releasing_memory(resources: Resources) -> Iterator[None]:
    """If memory runs out inside the `with`, drop the idle `DeviceRunner`s, so that the next run has room."""
    try:
        yield
    except torch.OutOfMemoryError:
        release_memory(resources)
        raise


def release_memory(resources: Resources) -> None:
    resources.idle.clear()
    gc.collect()  # also frees tensors that an error's traceback refers to
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
