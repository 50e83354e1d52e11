"""One cycle on the device: draft, verify, accept, grow the text, and tell the host once.

A cycle has two steps, each captured as a CUDA graph if that is possible (`graphs.py`): the whole draft loop
(`drafting.py`), and one pass of the target followed by the accept step (`accept.py`; for a tree `trees.walk`). Text,
length, random numbers and all caches stay on the device. The invariant is that of `engine.py`: *the target's cache
holds every committed token except the last.* Plain decoding is K = 0. Each K has its own graphs, so the host may
choose another K for every cycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..models.transformer import Transformer
from ..sampling import probabilities
from ..types import SamplingParams
from .accept import accept, draw, HEAD, numbers, packed, ratio, Record, Test
from .drafting import Branching, Draft, extent_of, look_up, places_beyond, steps_of, target_for, Text, TreeSteps
from .graphs import aligned, bucket_for, Graphs
from .ops import Branches
from .trees import FIELDS, paths_of, walk
from .trees import packed as packed_tree


class Cycle:
    """Runs a target with its draft, for texts of up to `capacity` tokens, one at a time.

    `k` is how deep a cycle drafts at most; with Medusa, never deeper than it has heads. Temperature, top-k and top-p
    of `params` are captured in the graphs. ValueError if the draft model's context is shorter than `capacity`. Trees
    need a `TreeCycle`: see `cycle_for`.
    """

    fields = 4  # numbers that a record holds for every drafted token
    unpack = staticmethod(Record.of_chain)

    @torch.inference_mode()
    def __init__(
        self,
        target: Transformer,
        draft: Draft,
        k: int,
        capacity: int,
        params: SamplingParams,
        test: Test = ratio,
        details: bool = False,
    ) -> None:
        if isinstance(draft, Transformer) and draft.context < capacity:
            raise ValueError(f"the draft model reads at most {draft.context} tokens")
        self.extent = extent_of(draft, k)
        self.k, self.params, self.test = self.extent.depth, params, test
        self._beyond = [places_beyond(draft, k) for k in range(self.k + 1)]
        self.capacity, size = capacity, aligned(capacity + self._beyond[-1])  # a draft may reach beyond the end
        device = target.device
        self.target = target_for(draft, target, size)
        self.text = torch.zeros(size, dtype=torch.long, device=device)
        self.length, self.end, self.limit = (torch.zeros_like(self.text[:1]) for _ in range(3))
        nodes, drawn = self.extent.nodes, params.temperature > 0.0
        self.drafted = torch.zeros_like(self.text[:nodes])
        self._text = Text(self.text, self.length, self.drafted, self.target, self.k)
        self.steps = None if draft is None or draft == "lookup" else steps_of(draft, self._text, drawn)
        self.numbers = torch.zeros(size, self.extent.numbers, dtype=torch.float64, device=device)
        self.sound = torch.ones(1, dtype=torch.bool, device=device)
        distribution = torch.float64 if target.dtype == torch.float64 else torch.float32
        self.drawn = self.steps is not None and drawn  # whether drafts are sampled; else each token is a point mass
        self.rows = torch.zeros(nodes + 1, target.vocabulary, dtype=distribution, device=device)
        self.distributions = torch.zeros_like(self.rows[: nodes if self.drawn else 0])
        self.record = torch.zeros(HEAD + self.fields * nodes, dtype=torch.float64, device=device)
        self._steps = torch.arange(self.k + 1, device=device)
        self._results = [self.record, *([self.rows, self.distributions] if details else [])]
        self._on_gpu = self.record.is_cuda
        self._host = [torch.empty_like(t, device="cpu", pin_memory=True) for t in self._results] if self._on_gpu else []
        self.graphs = Graphs(device)
        self.syncs = 0  # times that the host has waited
        self.prefill_seconds = self.draft_seconds = self.verify_seconds = 0.0  # of the last cycle
        self._host_length = 0  # the length of the text, on the host
        self._end = 0  # the most tokens that the text may have
        self._unread: Sequence[int] | None = None  # a prompt that the draft has yet to read
        self._seen = 0  # tokens of the text, from its start, that the draft has read

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int], end: int, seed: int) -> Record:
        """Read the prompt, whose text will have at most `end` tokens, and draw the first token.

        The draft reads the prompt only when the first `run` begins, so the first token need not wait for that.
        """
        if not 0 < len(prompt) < end <= self.capacity:
            raise ValueError(f"{len(prompt)} tokens growing to {end} do not fit {self.capacity}")
        start = self._mark()
        self.text[: len(prompt)] = torch.tensor(prompt, device=self.text.device)
        self.length.fill_(len(prompt))
        self.end.fill_(end)
        self.sound.fill_(True)
        self.limit.fill_(0)
        self.numbers.copy_(numbers(seed, len(self.numbers), self.extent))
        self._host_length, self._end, self._unread = len(prompt), end, prompt
        self._judge(self.target.prefill(prompt), self.drafted[:0], None)
        return self._read(0, start, start, start)

    @torch.inference_mode()
    def prepare(self, first: int, end: int, depths: Iterable[int] | None = None) -> None:
        """Capture the graphs that texts of `first` to `end` tokens need, before `begin` and so before a run's clock.

        `depths` are the K that cycles may have. Without them it is the largest K; for a tree, the largest that fits.
        """
        if self.graphs.reason:
            return
        self.length.fill_(2)
        needed = {
            (k, self._bucket(length, k))
            for length in range(first, end)
            for k in ([self._fitting(end - length - 1)] if depths is None else depths)
        }
        for k, bucket in sorted(needed):
            for key, step in self._plan(bucket, k):
                self.graphs.prepare(key, step, self.length)

    @torch.inference_mode()
    def run(self, k: int | None = None) -> Record:
        """Run one cycle, which drafts at most `k` levels; without `k`, as many as `prepare` captured by default."""
        k = self._fitting(self._end - self._host_length - 1) if k is None else k
        start = self._mark()
        self._catch_up(k)
        marks = [self._mark()]
        for key, step in self._plan(self._bucket(self._host_length, k), k):
            self.graphs.run(key, step, self.length)
            marks.append(self._mark())
        return self._read(k, start, marks[0], marks[-2])

    def _catch_up(self, k: int) -> None:
        """Let the draft read what its first step does not: the prompt, and the tokens of cycles without a draft."""
        if self.steps is None or k == 0:
            return
        if self._unread is not None:
            self.steps.prefill(self._unread)
            self._seen, self._unread = len(self._unread), None
        needed = self._host_length - self.steps.reach
        if self._seen < needed:
            self.steps.catch_up(self._seen, needed, self._bucket(self._host_length, k))

    def _fitting(self, room: int) -> int:
        """The K of a cycle where `room` drafts fit. A chain is always K long: drafts beyond the end are ignored."""
        return self.k

    def _bucket(self, length: int, k: int) -> int:
        return bucket_for(length + self._beyond[k], len(self.text))

    def _plan(self, bucket: int, k: int) -> list[tuple[tuple[str, int, int], Callable[[], None]]]:
        """List the steps of a cycle, each with the key of its graph."""
        verify = (("verify", bucket, k), lambda: self._verify(bucket, k))
        return [(("draft", bucket, k), lambda: self._draft(bucket, k)), verify] if k else [verify]

    def host_distributions(self, record: Record) -> tuple[Tensor, Tensor | None]:
        """Return the target's rows and the drafts' distributions of the last cycle, on the host. Needs `details`."""
        (_, rows, distributions), nodes = self._host or self._results, list(record.nodes)
        return rows[[0, *(node + 1 for node in nodes)]], distributions[nodes] if self.drawn and nodes else None

    def _limit(self, k: int) -> None:
        """Set how many levels of the draft count: those up to the end of the text."""
        self.limit.copy_((self.end - self.length - 1).clamp(min=0, max=k))

    def _draft(self, bucket: int, k: int) -> None:
        self._limit(k)
        if self.steps is None:
            drafted, exists = look_up(self._text, bucket)
            self.drafted.copy_(drafted)
            self.limit.mul_(exists)
            return
        uniform = self._numbers()[1 + self.k :]
        highest = []
        ids = self.steps.ids
        for i, logits in enumerate(self.steps.logits(bucket, k)):
            high, token = logits.max(-1)
            highest.append(high)
            if self.drawn:
                distribution = probabilities(logits, self.params)[0]
                token = draw(distribution, uniform[i : i + 1])
                row = self.distributions[i]
                row.copy_(distribution) if ids is None else row.index_copy_(0, ids, distribution)  # else zero for good
            if ids is None:
                self.drafted[i : i + 1].copy_(token)
            else:
                torch.index_select(ids, 0, token, out=self.drafted[i : i + 1])
        self._check(torch.cat(highest))

    def _check(self, highest: Tensor) -> None:
        """Ignore the draft if its logits are not finite."""
        self.sound.copy_(highest.sum(0, keepdim=True).isfinite())
        self.limit.mul_(self.sound)

    def _numbers(self) -> Tensor:
        """The random numbers of this cycle."""
        return self.numbers.index_select(0, self.length)[0]

    def _verify(self, bucket: int, k: int) -> None:
        start, drafted = self.length - 1, self.drafted[:k]
        if not k:
            self.limit.zero_()
        ids = torch.cat([self.text.index_select(0, start), drafted])
        # With an early exit, all tokens but the last draft have passed the layers below the exit.
        logits = self.target.forward(ids, start, bucket, k if self.target.cache.exit_layer else 0)
        self._judge(logits, drafted, self.distributions[:k] if self.drawn else None)

    def _judge(self, logits: Tensor, drafted: Tensor, distributions: Tensor | None) -> None:
        """Judge the drafts by the target's logits, and grow the text."""
        k = len(drafted)
        rows, row = probabilities(logits, self.params), self._numbers()
        outcome = accept(rows, drafted, distributions, row[1 : 1 + k], row[:1], self.limit, self.test)
        record = packed(outcome, drafted, row[1 : 1 + k], self.limit, self.sound, finite(logits))
        self._grow(outcome.accepted, drafted, outcome.token, rows, record)

    def _grow(self, accepted: Tensor, drafted: Tensor, token: Tensor, rows: Tensor, record: Tensor) -> None:
        """Append the first `accepted` drafts, then `token`, to the text. What stands after them is ignored."""
        steps = self._steps[: len(drafted) + 1]
        emitted = torch.where(steps < accepted, torch.cat([drafted, token]), token)
        self.text.index_copy_(0, self.length + steps, emitted)
        self.rows[: len(rows)].copy_(rows)
        self.record[: len(record)].copy_(record)
        self.length.add_(accepted + 1)

    def _count(self, k: int) -> int:
        """The number of tokens drafted in a cycle of depth `k`."""
        return k

    def _read(self, k: int, start: Mark, prefilled: Mark, drafted: Mark) -> Record:
        """Wait for the device and read the record of the cycle: the one place where the host waits."""
        verified = self._mark()
        for host, result in zip(self._host, self._results, strict=False):
            host.copy_(result, non_blocking=True)
        if self._on_gpu:
            done = torch.cuda.Event()
            done.record()
            done.synchronize()
        self.syncs += 1
        record = self.unpack((self._host or self._results)[0][: HEAD + self.fields * self._count(k)].tolist())
        if self.steps is not None and k:
            self._seen = self._host_length + self.steps.valid_drafts(record.accepted, k)
        self._host_length += record.accepted + 1
        self.prefill_seconds = seconds(start, prefilled)
        self.draft_seconds, self.verify_seconds = seconds(prefilled, drafted), seconds(drafted, verified)
        return record

    def _mark(self) -> Mark:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class TreeCycle(Cycle):
    """The cycle of drafts that are trees: one pass verifies all nodes, each of which attends to its own path.

    A tree's shape follows from its depth, so near the end of the text the cycle uses a smaller K.
    """

    fields = FIELDS
    unpack = staticmethod(Record.of_tree)

    @torch.inference_mode()
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.parents = torch.full_like(self.drafted, -1)
        self.real = torch.zeros_like(self.drafted).bool()

    def _fitting(self, room: int) -> int:
        return min(self.k, room)

    def _count(self, k: int) -> int:
        return self._growing.nodes(k) if k else 0

    @property
    def _growing(self) -> TreeSteps:
        assert isinstance(self.steps, TreeSteps)
        return self.steps

    def _draft(self, bucket: int, k: int) -> None:
        self._limit(k)
        n, uniform = self._count(k), self._numbers()[1 + self.extent.nodes :].view(self.extent.depth, -1)
        grown = self._growing.grow(bucket, k, self.params, uniform)
        self.drafted[:n].copy_(grown.tokens)
        self.parents[:n].copy_(grown.parents)
        self.real[:n].copy_(grown.real)
        if grown.distributions is not None:
            self.distributions[:n].copy_(grown.distributions)
        self._check(grown.highest)

    def _verify(self, bucket: int, k: int) -> None:
        if not k:
            return super()._verify(bucket, k)
        n, start, row = self._count(k), self.length - 1, self._numbers()
        drafted, parents = self.drafted[:n], self.parents[:n]
        paths = paths_of(parents, k)
        depths = paths.sum(1) - 1
        counts = self.real[:n] & (depths[1:] <= self.limit)
        real = (paths[1:, 1:] <= counts).all(1)  # all nodes on its path exist and count
        branches = Branches(start + depths, start, start + depths, paths)
        ids = torch.cat([self.text.index_select(0, start), drafted])
        logits = self.target.forward(ids, start, bucket, branches=branches)
        rows = probabilities(logits, self.params)
        distributions = self.distributions[:n] if self.drawn else None
        walked = walk(rows, drafted, parents, distributions, real, row[1 : 1 + n], row[:1], self.test)
        path = walked.path[:k]
        self.target.keep(start + 1, path, walked.accepted)
        record = packed_tree(walked, drafted, parents, self.sound, finite(logits))
        self._grow(walked.accepted, drafted.index_select(0, path), walked.token, rows, record)


def cycle_for(draft: Draft) -> type[Cycle]:
    """Choose the class of cycle for `draft`."""
    return TreeCycle if isinstance(draft, Branching) else Cycle


def finite(logits: Tensor) -> Tensor:
    """Whether all rows have a finite maximum.  # bool [1]"""
    return logits.amax(-1).sum(0, keepdim=True).isfinite()


Mark = float | torch.cuda.Event


def seconds(a: Mark, b: Mark) -> float:
    if isinstance(a, torch.cuda.Event) and isinstance(b, torch.cuda.Event):
        return float(a.elapsed_time(b)) / 1000.0
    assert isinstance(a, float) and isinstance(b, float)
    return b - a
