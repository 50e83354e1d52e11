"""Run cycles on the device: draft, verify, accept, extend the text, and send the host one record each.

A cycle has two steps: the draft loop (`drafting.py`), and one pass of the target with the accept step (`accept.py`).
Each is a CUDA graph if possible (`graphs.py`). Text and caches stay on the device. As in `loop.py`, between cycles
*the target's cache holds every committed token except the last.* K may change: each has its own graphs (0: plain).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..models.transformer import Transformer
from ..sampling import probabilities
from ..types import SamplingParams
from .accept import accept, draw, HEAD, numbers, packed, ratio, Record, Test
from .drafting import Draft, look_up, Text
from .graphs import aligned, bucket_for, Graphs, StaticDecoder

MOMENTS = ("start", "drafted", "verified", "copied")  # of a cycle, in this order


class HostEvent:
    """Stands for a `torch.cuda.Event` where there is no GPU."""

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: "HostEvent") -> float:  # in milliseconds
        return 1e3 * (end.at - self.at)

    def synchronize(self) -> None:
        """Do nothing: the host has computed everything itself."""


class DeviceRunner:
    """Decodes texts of up to `capacity` tokens with one target and its draft, one text at a time.

    Temperature, top-k and top-p of `params` are fixed in the graphs. Raises ValueError if the draft model's context is
    shorter than `capacity`.
    """

    @torch.inference_mode()
    def __init__(
        self,
        target: Transformer,
        draft: Draft,
        capacity: int,
        params: SamplingParams,
        test: Test = ratio,
        details: bool = False,  # whether each cycle also copies its distributions to the host
    ) -> None:
        if isinstance(draft.source, Transformer) and draft.source.context < capacity:
            raise ValueError(f"the draft model reads at most {draft.source.context} tokens")
        k = draft.k
        self.k, self.params, self.test = k, params, test
        self.capacity, size = capacity, aligned(capacity + k + 1)  # the last draft can reach beyond the end
        device = target.device
        self.target = StaticDecoder(target, size, draft.taps, draft.exit_layer)
        self.text = torch.zeros(size, dtype=torch.long, device=device)
        self.length, self.end, self.limit = (torch.zeros_like(self.text[:1]) for _ in range(3))  # limit: usable drafts
        self.drafted = torch.zeros_like(self.text[:k])
        self.prompt_end, self.around = torch.zeros_like(self.length), draft.around
        self._text_state = Text(self.text, self.length, self.prompt_end, self.drafted, self.target, k)
        self.steps = draft.steps(self._text_state, draft.source) if draft.steps else None
        self.numbers = torch.zeros(size, 1 + 2 * k, dtype=torch.float64, device=device)  # random, a row per text length
        self.sound = torch.ones(1, dtype=torch.bool, device=device)  # whether the draft's logits are finite
        dtype = torch.float64 if target.dtype == torch.float64 else torch.float32  # of distributions
        # Whether drafted tokens are sampled from a distribution. If not, q is a point mass.
        self.samples_drafts = self.steps is not None and params.temperature > 0.0
        self.rows = torch.zeros(k + 1, target.vocabulary, dtype=dtype, device=device)
        self.distributions = torch.zeros_like(self.rows[: k if self.samples_drafts else 0])
        self.record = torch.zeros(HEAD + 4 * k, dtype=torch.float64, device=device)
        self._offsets = torch.arange(k + 1, device=device)
        self._results = [self.record, *([self.rows, self.distributions] if details else [])]
        self._on_gpu = self.record.is_cuda
        self._host = [torch.empty_like(t, device="cpu", pin_memory=True) for t in self._results] if self._on_gpu else []
        new_mark = partial(torch.cuda.Event, enable_timing=True) if self._on_gpu else HostEvent
        self._marks: dict[str, Any] = {moment: new_mark() for moment in MOMENTS}
        self.graphs = Graphs(device)
        self.syncs = 0  # how often the host has waited for the device
        self.draft_seconds = self.verify_seconds = 0.0  # times of the last cycle
        self._host_length = 0
        self._seen = 0  # how many tokens of the text the draft has read

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int], end: int, seed: int) -> Record:
        """Prefill the target, then the draft if it can follow, and draw the first token of a text of at most `end`."""
        if not 0 < len(prompt) < end <= self.capacity:
            raise ValueError(f"a prompt of {len(prompt)} and a text of {end} tokens do not fit {self.capacity}")
        for moment in MOMENTS[:2]:
            self._marks[moment].record()
        self.text[: len(prompt)] = torch.tensor(prompt, device=self.text.device)
        self.length.fill_(len(prompt))
        self.prompt_end.fill_(len(prompt) - self.around[1])
        self.end.fill_(end)
        self.sound.fill_(True)
        self.limit.fill_(0)
        self.numbers.copy_(numbers(seed, len(self.numbers), self.k))
        self._host_length = self._seen = len(prompt)
        self._judge(self.target.prefill(prompt), self.drafted[:0], None)
        if self.steps is not None and len(prompt) + 2 < end:
            self.steps.prefill(prompt)
        return self._read(0)

    @torch.inference_mode()
    def prepare(self, first: int, end: int, depths: Iterable[int] = ()) -> None:
        """Capture graphs before `begin`, for texts of `first` to `end` tokens and K in `depths` (none: the largest)."""
        if self.graphs.reason:
            return
        self.length.fill_(2)  # warm-ups run on a text of two tokens: no draft can begin on a shorter one
        depths = [*depths] or [self.k]
        for k, bucket in sorted({(k, self._bucket(length, k)) for length in range(first, end) for k in depths}):
            for key, step in self._plan(bucket, k):
                self.graphs.prepare(key, step, self.length)

    @torch.inference_mode()
    def run(self, k: int | None = None) -> Record:
        """Run one cycle that drafts `k` tokens, by default the largest K. Drafts beyond the text's end are ignored."""
        k = self.k if k is None else k
        self._marks["start"].record()
        self._catch_up(k)
        *draft, verify = self._plan(self._bucket(self._host_length, k), k)
        for key, step in draft:
            self.graphs.run(key, step, self.length)
        self._marks["drafted"].record()
        self.graphs.run(*verify, self.length)
        return self._read(k)

    def _catch_up(self, k: int) -> None:
        """Let the draft read what it lacks before its first step: tokens of cycles with K = 0."""
        if self.steps is None or k == 0:
            return
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
        """Return the distributions of target and draft. The next cycle overwrites them. Needs `details`."""
        (_, rows, distributions), n = self._host or self._results, len(record.drafted)
        return rows[: n + 1], distributions[:n] if self.samples_drafts and n else None

    def _draft(self, bucket: int, k: int) -> None:
        self.limit.copy_((self.end - self.length - 1).clamp(min=0, max=k))  # no drafts beyond the end
        if self.steps is None:
            drafted, exists = look_up(self._text_state, bucket, self.around)
            self.drafted.copy_(drafted)
            self.limit.mul_(exists)
            return
        uniform = self._numbers()[1 + self.k :]
        highest_logits = []
        ids = self.steps.ids
        for i, logits in enumerate(self.steps.logits(bucket, k)):
            highest_logit, token = logits.max(-1)
            highest_logits.append(highest_logit)
            if self.samples_drafts:
                distribution = probabilities(logits, self.params)[0]
                token = draw(distribution, uniform[i : i + 1])
                self.distributions[i].index_copy_(0, ids, distribution)  # all other entries stay 0
            torch.index_select(ids, 0, token, out=self.drafted[i : i + 1])
        self.sound.copy_(torch.cat(highest_logits).sum(0, keepdim=True).isfinite())
        self.limit.mul_(self.sound)  # NaN or inf in the logits: ignore the draft

    def _numbers(self) -> Tensor:
        return self.numbers.index_select(0, self.length)[0]

    def _verify(self, bucket: int, k: int) -> None:
        start, drafted = self.length - 1, self.drafted[:k]
        if not k:
            self.limit.zero_()
        ids = torch.cat([self.text.index_select(0, start), drafted])
        # With an early exit, all tokens except the last draft have already passed the layers below the exit.
        logits = self.target.forward(ids, start, bucket, k if self.target.cache.exit_layer else 0)
        self._judge(logits, drafted, self.distributions[:k] if self.samples_drafts else None)

    def _judge(self, logits: Tensor, drafted: Tensor, distributions: Tensor | None) -> None:
        """Verify the drafts by the target's logits, and append the emitted tokens to the text."""
        k = len(drafted)
        rows, uniform = probabilities(logits, self.params), self._numbers()
        outcome = accept(rows, drafted, distributions, uniform[1 : 1 + k], uniform[:1], self.limit, self.test)
        finite = logits.amax(-1).sum(0, keepdim=True).isfinite()
        record = packed(outcome, drafted, uniform[1 : 1 + k], self.limit, self.sound, finite)
        offsets = self._offsets[: k + 1]
        emitted = torch.where(offsets < outcome.accepted, torch.cat([drafted, outcome.token]), outcome.token)
        self.text.index_copy_(0, self.length + offsets, emitted)  # what follows the target's token is overwritten later
        self.rows[: len(rows)].copy_(rows)
        self.record[: len(record)].copy_(record)
        self.length.add_(outcome.accepted + 1)

    def _read(self, k: int) -> Record:
        """Wait for the device, and read the record of the cycle."""
        self._marks["verified"].record()
        for host, result in zip(self._host, self._results, strict=False):
            host.copy_(result, non_blocking=True)
        self._marks["copied"].record()
        self._marks["copied"].synchronize()
        self.syncs += 1
        record = Record.unpack((self._host or self._results)[0][: HEAD + 4 * k].tolist())
        if self.steps is not None and k:
            self._seen = self._host_length + self.steps.valid_drafts(record.accepted, k)
        self._host_length += record.accepted + 1
        *marks, _ = self._marks.values()
        seconds = (begin.elapsed_time(end) / 1e3 for begin, end in pairwise(marks))
        self.draft_seconds, self.verify_seconds = seconds
        return record
