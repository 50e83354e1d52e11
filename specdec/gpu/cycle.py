"""Run one cycle on the device: draft, verify, accept, extend the text, and send the host one record.

A cycle has two steps, each captured as a CUDA graph if that is possible (`graphs.py`): the whole draft loop
(`drafting.py`), and one pass of the target followed by the accept step (`accept.py`). Text, length, random numbers and
all caches stay on the device. The invariant is that of `engine.py`: *the target's cache holds every committed token
except the last.* Plain decoding is K = 0. Each K has its own graphs, so the host may choose another K for every cycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise, starmap

import torch
from torch import Tensor

from ..models.transformer import Transformer
from ..sampling import probabilities
from ..types import SamplingParams
from .accept import accept, draw, HEAD, numbers, packed, ratio, Record, Test
from .drafting import depth_of, Draft, look_up, steps_of, target_for, Text
from .graphs import aligned, bucket_for, Graphs

Mark = float | torch.cuda.Event
MOMENTS = ("start", "prefilled", "drafted", "verified", "copied")  # of a cycle, in this order


class Cycle:
    """Runs a target with its draft, for texts of up to `capacity` tokens, one at a time.

    A cycle drafts at most `k` tokens; with Medusa, at most one for each head. Temperature, top-k and top-p of `params`
    are captured in the graphs. Raises ValueError if the draft model's context is shorter than `capacity`.
    """

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
        k = depth_of(draft, k)
        self.k, self.params, self.test = k, params, test
        self.capacity, size = capacity, aligned(capacity + k + 1)  # a draft may reach beyond the end
        device = target.device
        self.target = target_for(draft, target, size)
        self.text = torch.zeros(size, dtype=torch.long, device=device)
        self.length, self.end, self.limit = (torch.zeros_like(self.text[:1]) for _ in range(3))
        self.drafted = torch.zeros_like(self.text[:k])
        self._text = Text(self.text, self.length, self.drafted, self.target, k)
        self.steps = steps_of(draft, self._text)
        self.numbers = torch.zeros(size, 1 + 2 * k, dtype=torch.float64, device=device)
        self.sound = torch.ones(1, dtype=torch.bool, device=device)
        distribution = torch.float64 if target.dtype == torch.float64 else torch.float32
        # Whether drafts are sampled. If not, each token is a point mass.
        self.drawn = self.steps is not None and params.temperature > 0.0
        self.rows = torch.zeros(k + 1, target.vocabulary, dtype=distribution, device=device)
        self.distributions = torch.zeros_like(self.rows[: k if self.drawn else 0])
        self.record = torch.zeros(HEAD + 4 * k, dtype=torch.float64, device=device)
        self._steps = torch.arange(k + 1, device=device)
        self._results = [self.record, *([self.rows, self.distributions] if details else [])]
        self._on_gpu = self.record.is_cuda
        self._host = [torch.empty_like(t, device="cpu", pin_memory=True) for t in self._results] if self._on_gpu else []
        new_mark = partial(torch.cuda.Event, enable_timing=True) if self._on_gpu else float
        self._marks: dict[str, Mark] = {moment: new_mark() for moment in MOMENTS}
        self.graphs = Graphs(device)
        self.syncs = 0  # how often the host has waited
        self.prefill_seconds = self.draft_seconds = self.verify_seconds = 0.0  # times of the last cycle
        self._host_length = 0  # the length of the text, on the host
        self._unread: Sequence[int] | None = None  # the prompt, until the draft has read it
        self._seen = 0  # how many tokens of the text the draft has read

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int], end: int, seed: int) -> Record:
        """Read the prompt, whose text will have at most `end` tokens, and draw the first token.

        The draft reads the prompt later, in the first `run`, so that the first token does not wait for that.
        """
        if not 0 < len(prompt) < end <= self.capacity:
            raise ValueError(f"{len(prompt)} tokens growing to {end} do not fit {self.capacity}")
        for moment in MOMENTS[:3]:
            self._mark(moment)
        self.text[: len(prompt)] = torch.tensor(prompt, device=self.text.device)
        self.length.fill_(len(prompt))
        self.end.fill_(end)
        self.sound.fill_(True)
        self.limit.fill_(0)
        self.numbers.copy_(numbers(seed, len(self.numbers), self.k))
        self._host_length, self._unread = len(prompt), prompt
        self._judge(self.target.prefill(prompt), self.drafted[:0], None)
        return self._read(0)

    @torch.inference_mode()
    def prepare(self, first: int, end: int, depths: Iterable[int] = ()) -> None:
        """Capture the graphs for texts of `first` to `end` tokens. Call it before `begin`, so that it is not timed.

        `depths` are the values of K that cycles may have, by default only the largest.
        """
        if self.graphs.reason:
            return
        self.length.fill_(2)
        depths = [*depths] or [self.k]
        for k, bucket in sorted({(k, self._bucket(length, k)) for length in range(first, end) for k in depths}):
            for key, step in self._plan(bucket, k):
                self.graphs.prepare(key, step, self.length)

    @torch.inference_mode()
    def run(self, k: int | None = None) -> Record:
        """Run one cycle, which drafts `k` tokens, by default the largest K. Drafts beyond the end are ignored."""
        k = self.k if k is None else k
        self._mark("start")
        self._catch_up(k)
        self._mark("prefilled")
        *draft, verify = self._plan(self._bucket(self._host_length, k), k)
        for key, step in draft:
            self.graphs.run(key, step, self.length)
        self._mark("drafted")
        self.graphs.run(*verify, self.length)
        return self._read(k)

    def _catch_up(self, k: int) -> None:
        """Let the draft read what its first step does not read: the prompt, and tokens of cycles without a draft."""
        if self.steps is None or k == 0:
            return
        if self._unread is not None:
            self.steps.prefill(self._unread)
            self._seen, self._unread = len(self._unread), None
        needed = self._host_length - self.steps.reach
        if self._seen < needed:
            self.steps.catch_up(self._seen, needed, self._bucket(self._host_length, k))

    def _bucket(self, length: int, k: int) -> int:
        return bucket_for(length + k + 1, len(self.text))

    def _plan(self, bucket: int, k: int) -> list[tuple[tuple[str, int, int], Callable[[], None]]]:
        """List the steps of a cycle, each with the key of its graph."""
        verify = (("verify", bucket, k), lambda: self._verify(bucket, k))
        return [(("draft", bucket, k), lambda: self._draft(bucket, k)), verify] if k else [verify]

    def host_distributions(self, record: Record) -> tuple[Tensor, Tensor | None]:
        """Return the target's rows and the drafts' distributions, valid until the next cycle. Needs `details`."""
        (_, rows, distributions), n = self._host or self._results, len(record.drafted)
        return rows[: n + 1], distributions[:n] if self.drawn and n else None

    def _draft(self, bucket: int, k: int) -> None:
        self.limit.copy_((self.end - self.length - 1).clamp(min=0, max=k))  # drafts up to the end of the text
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
                self.distributions[i].index_copy_(0, ids, distribution)  # zero elsewhere, from the start
            torch.index_select(ids, 0, token, out=self.drafted[i : i + 1])
        self.sound.copy_(torch.cat(highest).sum(0, keepdim=True).isfinite())
        self.limit.mul_(self.sound)  # a draft whose logits are not finite is ignored

    def _numbers(self) -> Tensor:
        """Return the random numbers of this cycle."""
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
        finite = logits.amax(-1).sum(0, keepdim=True).isfinite()
        record = packed(outcome, drafted, row[1 : 1 + k], self.limit, self.sound, finite)
        steps = self._steps[: k + 1]  # tokens after the target's own are written too, and ignored
        emitted = torch.where(steps < outcome.accepted, torch.cat([drafted, outcome.token]), outcome.token)
        self.text.index_copy_(0, self.length + steps, emitted)
        self.rows[: len(rows)].copy_(rows)
        self.record[: len(record)].copy_(record)
        self.length.add_(outcome.accepted + 1)

    def _read(self, k: int) -> Record:
        """Wait for the device and read the record of the cycle. The host waits nowhere else."""
        self._mark("verified")
        for host, result in zip(self._host, self._results, strict=False):
            host.copy_(result, non_blocking=True)
        self._mark("copied")
        if isinstance(copied := self._marks["copied"], torch.cuda.Event):
            copied.synchronize()
        self.syncs += 1
        record = Record.unpack((self._host or self._results)[0][: HEAD + 4 * k].tolist())
        if self.steps is not None and k:
            self._seen = self._host_length + self.steps.valid_drafts(record.accepted, k)
        self._host_length += record.accepted + 1
        *marks, _ = self._marks.values()
        self.prefill_seconds, self.draft_seconds, self.verify_seconds = starmap(seconds, pairwise(marks))
        return record

    def _mark(self, moment: str) -> None:
        """Note when the device reaches this moment of a cycle."""
        mark = self._marks[moment]
        if isinstance(mark, torch.cuda.Event):
            mark.record()
        else:
            self._marks[moment] = time.perf_counter()


def seconds(a: Mark, b: Mark) -> float:
    if isinstance(a, torch.cuda.Event) and isinstance(b, torch.cuda.Event):
        return float(a.elapsed_time(b)) / 1000.0
    assert isinstance(a, float) and isinstance(b, float)
    return b - a
