"""The decoding loop: draft, verify, commit. It uses models and drafters only through protocols.

    pending = prompt
    each cycle:  proposal = drafter.propose(text)
                 rows     = target.forward(pending + proposal)
                 verdict  = rule.verify(proposal, rows)
                 keep the accepted path in the cache; commit accepted + the target's own token

An executor computes the cycles: `HostExecutor` in PyTorch, as above, or `gpu/lane.py` in captured CUDA graphs
(`lanes/race.py` makes the tasks and chooses).
Plain decoding is the same loop with a drafter that proposes nothing. Invariant: *the cache holds every
committed token except the last.* Cycle 0 is the prefill: it drafts nothing and yields the first token.
"""

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Protocol

import torch

from . import describe
from .drafters.base import Drafter, NoDrafter
from .events import Committed, Counted, Drafted, Event, Failed, Finished, FinishReason, SPECULATIVE, Started, Verified
from .messages import Refused, TranslatableText
from .models.base import LanguageModel
from .models.device import Resources, torch_threads
from .sampling import probabilities, Sampler, SharedNoiseSampler
from .text import TextStream
from .types import check_k, MAX_DRAFT_TOKENS, Proposal, SamplingParams, Verdict
from .verify import RejectionSampling, Rule

MAX_DRAFTER_FAILURES = 3
PIECE = 128  # tokens; of smaller pieces, a pass costs noticeably more per token
OnRead = Callable[[str, int, int], None]  # lane, tokens read, tokens of the prompt
NO_ROOM = TranslatableText(
    "The GPU has no room for this run. Shorten it, choose a smaller pair, or end what else uses the GPU."
)


class DraftError(ValueError):
    """A drafter returned a proposal that breaks the contract in `drafters/base.py`."""


@dataclass
class Task:
    """Defines a run. Every run needs a new drafter, because drafters keep state."""

    target: LanguageModel[Any]
    prompt: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    drafter: Drafter = field(default_factory=NoDrafter)
    k: int = 4
    rule: Rule = field(default_factory=RejectionSampling)
    end_tokens: frozenset[int] = frozenset()
    token_bytes: Callable[[int], bytes] = lambda token: f" {token}".encode()
    piece: Callable[[int], str] = lambda token: f" {token}"
    lane: str = SPECULATIVE
    details: bool = True  # whether events describe the distributions at every position; benchmarks switch this off
    resources: Resources = field(default_factory=Resources)

    @property
    def depth(self) -> int:
        """The largest depth of a draft: K, or the drafter's own limit `deepest` if that is smaller."""
        return self.k if self.drafter.deepest is None else min(self.k, self.drafter.deepest)


class Stopwatch:
    """The lane's clock. It runs only inside `with`, so the time of other lanes and of the caller is not counted."""

    elapsed = 0.0

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.elapsed += time.perf_counter() - self._since


@dataclass(frozen=True)
class CycleResult:
    """What an executor computed in one cycle, and how many seconds each part took."""

    proposal: Proposal
    verdict: Verdict
    describe: Callable[[Sampler | None], dict[str, Any]]  # noise -> positions and distributions for `Verified`
    draft_s: float
    verify_s: float  # the target's pass, and the judgement of its rows
    prefill_s: float = 0.0  # the drafter's own pass over the prompt, which comes before its first draft
    failure: str = ""  # the reason, if the drafter failed


class Executor(Protocol):
    """Computes the cycles of one run."""

    eager: str | None  # why a GPU ran without captured graphs; can change until the run is over
    server: str  # kind and version of another engine that computes the cycles and reports only their tokens; "": ours

    def allocated(self, limit: int) -> contextlib.AbstractContextManager[None]:
        """Allocate memory for a text of at most `limit` tokens, for the time of the `with` block."""
        ...

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        """Draft up to depth `k` after `tokens`, verify, and cache the accepted path. The first call is the prefill.

        An exception ends the run. If only the drafter fails, the cycle has no draft.
        """
        ...

    def stop_drafting(self) -> None:
        """Draft nothing from the next cycle on."""
        ...


def generate(task: Task, executor: Executor | None = None) -> Generator[Event, None, None]:
    """Run `task` and yield its events. The last is `Finished`, even after an error. Closing the iterator ends the run.

    The default executor is `HostExecutor(task)`. Raises Refused for a bad prompt, or a K out of range.
    """
    if not task.prompt:
        raise Refused(TranslatableText("The prompt is empty. Type a few words to start from."))
    if len(task.prompt) >= task.target.context:
        counts = {"n": len(task.prompt), "limit": task.target.context - 1}
        raise Refused(
            TranslatableText("The prompt has {n} tokens; the model reads at most {limit}. Shorten it.", **counts)
        )
    check_k(task.k)
    return _run(task, executor or HostExecutor(task))


class Transcript:
    """The text of a lane so far, the reason why it ended, and the seconds of each kind of work."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tokens = list(task.prompt)
        self.prompt_length = len(self.tokens)
        self.limit = min(task.target.context, self.prompt_length + task.params.max_tokens)
        self._limit_reason: FinishReason = (
            "length" if self.prompt_length + task.params.max_tokens <= task.target.context else "context"
        )
        self._end_tokens = frozenset() if task.params.ignore_end else task.end_tokens
        self._stream = TextStream(task.params.stop)
        self.text = ""
        self.cycle = 0
        self.seconds = {"prefill": 0.0, "draft": 0.0, "verify": 0.0}
        self.reason: FinishReason | None = self._limit_reason if self.remaining <= 0 else None

    @property
    def remaining(self) -> int:
        """The number of tokens that can still be added."""
        return self.limit - len(self.tokens)

    @property
    def count(self) -> int:
        """The number of tokens added after the prompt."""
        return len(self.tokens) - self.prompt_length

    def commit(self, emitted: Sequence[int]) -> tuple[tuple[int, ...], str]:
        """Add tokens one by one until the text ends. Return the added tokens, and the text that became readable.

        If decoding a token raises an exception, no token is added.
        """
        before, readable = len(self.tokens), ""
        for token, data in [(token, self.task.token_bytes(token)) for token in emitted]:
            self.tokens.append(token)
            ends = token in self._end_tokens
            readable += "" if ends else self._stream.push(data)
            if self._stream.stopped or ends or self.remaining == 0:
                self.reason = "stop" if self._stream.stopped else "end" if ends else self._limit_reason
                readable += self._stream.flush()
                break
        self.text += readable
        return tuple(self.tokens[before:]), readable

    def end_cycle(
        self, tokens: tuple[int, ...], pieces: Sequence[str], readable: str, verdict: Verdict, at: float
    ) -> Committed:
        """Count the cycle, and return the event for the tokens that `commit` added."""
        event = Committed(
            self.task.lane,
            self.cycle,
            tokens,
            pieces=tuple(pieces[: len(tokens)]),
            accepted=min(len(verdict.path), len(tokens)),
            kind=verdict.kind,
            text=readable,
            total=self.count,
            at=at,
        )
        self.cycle += 1
        return event

    def fail(self, reason: str, at: float) -> Failed:
        """End the run because of an error. The text so far is kept."""
        self.reason = "failed"
        self.text += self._stream.flush()
        return Failed(self.task.lane, self.cycle, "engine", reason, True, at)

    def finish(self, at: float, eager: str | None = None, counted: Counted | None = None) -> Finished:
        return Finished(
            self.task.lane,
            self.reason or "failed",
            tokens=self.count,
            text=self.text,
            at=at,
            prefill=self.seconds["prefill"],
            draft=self.seconds["draft"],
            verify=self.seconds["verify"],
            other=max(0.0, at - sum(self.seconds.values())),
            eager=eager,
            counted=counted,
        )


def _run(task: Task, executor: Executor) -> Generator[Event, None, None]:
    transcript, watch = Transcript(task), Stopwatch()
    try:
        yield from _cycles(task, executor, transcript, watch)
    except torch.OutOfMemoryError:
        yield transcript.fail(NO_ROOM, watch.elapsed)
    except Exception as error:
        yield transcript.fail(f"{type(error).__name__}: {error}", watch.elapsed)
    yield transcript.finish(watch.elapsed, executor.eager, "totals" if executor.server else None)


def _cycles(task: Task, executor: Executor, transcript: Transcript, watch: Stopwatch) -> Generator[Event, None, None]:
    lane, params, drafter, tokens = task.lane, task.params, task.drafter, transcript.tokens
    noise, failures = SharedNoiseSampler(params.seed), 0
    yield Started(
        lane,
        drafter.name,
        task.depth,
        params,
        prompt_tokens=len(tokens),
        rule="" if executor.server else task.rule.name,
        lossless=task.rule.lossless,
        costs=drafter.costs,
        server=executor.server,
    )
    with executor.allocated(transcript.limit):
        while transcript.reason is None:
            number = transcript.cycle
            noise.at(len(tokens))
            # Leave room for the target's own token after the draft.
            k = min(task.k, transcript.remaining - 1) if number else 0
            start = watch.elapsed
            with watch, torch_threads(task.resources.threads), torch.inference_mode():
                cycle = executor.cycle(tokens, k)
            transcript.seconds["prefill"] += cycle.prefill_s
            transcript.seconds["draft" if number else "prefill"] += cycle.draft_s
            transcript.seconds["verify" if number else "prefill"] += cycle.verify_s
            start += cycle.prefill_s
            drafted = start + cycle.draft_s
            verified = drafted + cycle.verify_s
            if cycle.failure:
                failures, reason = failures + 1, cycle.failure
                if failures == MAX_DRAFTER_FAILURES:
                    executor.stop_drafting()
                    reason += " (drafter switched off)"
                yield Failed(lane, number, "drafter", reason, False, drafted)
            elif k:
                failures = 0
            proposal, verdict = cycle.proposal, cycle.verdict
            if proposal.tokens:
                pieces = tuple(map(task.piece, proposal.tokens))
                step_ends = tuple(accumulate(proposal.seconds, initial=start))[1:]
                yield Drafted(lane, number, proposal.tokens, pieces, proposal.parents, start, drafted, step_ends)
            # Describe before committing, so that an error adds no token. The clock is stopped meanwhile.
            details = cycle.describe(noise if task.details else None)
            emitted = verdict.emitted(proposal)
            pieces = tuple(map(task.piece, emitted))
            yield Verified(lane, number, start=drafted, end=verified, **details)
            with watch:
                committed, readable = transcript.commit(emitted)
            yield transcript.end_cycle(committed, pieces, readable, verdict, watch.elapsed)


class HostExecutor:
    """Runs drafter, target and rule one after the other."""

    server = ""

    def __init__(
        self,
        task: Task,
        sampler: Sampler | None = None,
        eager: str | None = None,
        on_read: OnRead = lambda lane, read, total: None,
    ) -> None:
        """Take a task. `on_read` is told how much of a long prompt is read."""
        self.task, self.drafter, self.eager, self.on_read = task, task.drafter, eager, on_read
        self.sampler = sampler or task.rule.sampler(task.params.seed)
        self.cache: Any = None  # the target's; `allocated` makes it

    @contextlib.contextmanager
    def allocated(self, limit: int) -> Iterator[None]:
        self.cache = self.task.target.new_cache(limit + MAX_DRAFT_TOKENS)
        yield

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        task, cache = self.task, self.cache
        self.sampler.at(len(tokens))
        proposal, draft_s, failure = self.draft(tokens, k) if k or not cache.length else (Proposal(), 0.0, "")
        start = time.perf_counter()
        self.read_in_pieces(tokens)
        # One pass reads the tokens that are not cached yet, and the whole draft.
        block = [*tokens[cache.length :], *proposal.tokens]
        logits = task.target.forward(block, cache, proposal.parents, len(proposal) + 1)
        if not math.isfinite(float(logits.amax(-1).sum())):  # a logit of -inf is allowed; it excludes its token
            raise FloatingPointError("the target's logits are not finite")
        rows = probabilities(logits, task.params)
        verdict = task.rule.verify(proposal, rows, self.sampler)
        cache.keep(len(tokens), verdict.path)  # removes drafts off this path
        verify_s = time.perf_counter() - start
        details = partial(describe.verification, proposal, rows, verdict, task.piece)
        return CycleResult(proposal, verdict, details, draft_s, verify_s, failure=failure)

    def read_in_pieces(self, tokens: Sequence[int]) -> None:
        """Read a long prompt, except its last piece, with or without `on_read`: pieces can round differently."""
        last = len(tokens) - PIECE
        if self.cache.length >= last:
            return
        while (read := self.cache.length) < last:
            self.on_read(self.task.lane, read, len(tokens))
            self.task.target.forward(tokens[read : min(read + PIECE, last)], self.cache)
        self.on_read(self.task.lane, last, len(tokens))

    def draft(self, tokens: Sequence[int], k: int) -> tuple[Proposal, float, str]:
        """Return a checked proposal, which is empty if the drafter failed, its seconds, and the reason of a failure."""
        start = time.perf_counter()
        try:
            proposal = self.drafter.propose(tokens, k, self.task.params, self.sampler)
            seconds = time.perf_counter() - start
            trees = self.task.rule.trees and not self.task.target.chains_only
            check_proposal(proposal, k, self.task.target.vocabulary, trees)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            return Proposal(), time.perf_counter() - start, f"{type(error).__name__}: {error}"
        return proposal, seconds, ""

    def stop_drafting(self) -> None:
        self.drafter = NoDrafter()


def check_proposal(proposal: Proposal, k: int, vocabulary: int, trees: bool = True) -> None:
    """Raise DraftError if the proposal breaks the contract of a drafter, or is a tree although there are no `trees`."""
    if not isinstance(proposal, Proposal):
        raise DraftError(f"propose() must return a Proposal, not a {type(proposal).__name__}")
    n = len(proposal.tokens)
    if len(proposal.parents) != n:
        raise DraftError("the draft's parents do not form a tree")
    if n == 0:
        return
    if n > MAX_DRAFT_TOKENS:
        raise DraftError(f"the draft holds more than {MAX_DRAFT_TOKENS} tokens")
    if not (trees or proposal.is_chain):
        raise DraftError("the draft is a tree, and this rule or target takes only chains")
    if proposal.max_depth > k:
        raise DraftError(f"the draft is deeper than the {k} tokens that were requested")
    if not all(type(token) is int for token in proposal.tokens):
        raise DraftError("the draft's tokens must be of the type int: convert those of NumPy or torch by int()")
    if not all(0 <= token < vocabulary for token in proposal.tokens):
        raise DraftError("the draft holds a token outside the vocabulary")
    if not isinstance(proposal.seconds, tuple) or len(proposal.seconds) not in (0, n):
        raise DraftError("the draft's seconds must be a tuple, empty or with a number for each token")
    if proposal.probs is not None:
        if tuple(proposal.probs.shape) != (n, vocabulary):
            raise DraftError(f"the draft's probabilities have shape {tuple(proposal.probs.shape)}")
        if not float(proposal.probs.min()) >= 0.0:
            raise DraftError("the draft holds a negative probability")
        if not float((proposal.probs.sum(-1) - 1.0).abs().max()) < 1e-5:
            raise DraftError("the draft's probabilities do not sum to one")
        if not all(float(proposal.probs[i, token]) > 0.0 for i, token in enumerate(proposal.tokens)):
            raise DraftError("the draft holds a token that its own distribution excludes")
