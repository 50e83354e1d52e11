"""The decoding loop: draft, verify, commit. It uses models and drafters only through protocols.

    pending = prompt
    each cycle:  proposal = drafter.propose(text)
                 rows     = target.forward(pending + proposal)
                 verdict  = rule.verify(proposal, rows)
                 keep the accepted path in the cache; commit accepted + the target's own token

An executor computes the cycles: `host.py` in PyTorch, as above, or `gpu/lane.py` in captured CUDA graphs
(`lanes/race.py` makes the tasks and chooses).
Plain decoding is the same loop with a drafter that proposes nothing. Invariant: *the cache holds every
committed token except the last.* Cycle 0 is the prefill: it drafts nothing and yields the first token.
"""

import time
from collections.abc import Generator, Sequence
from itertools import accumulate

import torch

from .events import Committed, Drafted, Event, Failed, Finished, FinishReason, Started, Verified
from .host import HostExecutor
from .messages import Refused, TranslatableText
from .models.device import torch_threads
from .sampling import SharedNoiseSampler
from .task import CycleResult, Executor, Task
from .text import TextStream
from .types import check_k, Verdict

MAX_DRAFTER_FAILURES = 3
NO_ROOM = TranslatableText(
    "The GPU has no room for this run. Shorten it, choose a smaller pair, or end what else uses the GPU."
)


class Stopwatch:
    """The lane's clock. It runs only inside `with`, so the time of other lanes and of the caller is not counted."""

    elapsed = 0.0

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.elapsed += time.perf_counter() - self._since


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

    def start(self) -> Started:
        task, drafter = self.task, self.task.drafter
        return Started(
            task.lane,
            drafter.name,
            task.depth,
            task.params,
            prompt_tokens=self.prompt_length,
            rule=task.rule.name,
            lossless=task.rule.lossless,
            costs=drafter.costs,
        )

    def add_seconds(self, cycle: CycleResult) -> None:
        self.seconds["draft"] += cycle.draft_s
        self.seconds["verify" if self.cycle else "prefill"] += cycle.verify_s

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

    def finish(self, at: float, eager: str | None = None) -> Finished:
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
        )


def _run(task: Task, executor: Executor) -> Generator[Event, None, None]:
    transcript, watch = Transcript(task), Stopwatch()
    try:
        lane, tokens = task.lane, transcript.tokens
        noise, failures = SharedNoiseSampler(task.params.seed), 0
        yield transcript.start()
        with executor.allocated(transcript.limit):
            while transcript.reason is None:
                number = transcript.cycle
                noise.at(len(tokens))
                # Leave room for the target's own token after the draft.
                k = min(task.depth, transcript.remaining - 1) if number else 0
                start = watch.elapsed
                with watch, torch_threads(task.resources.threads), torch.inference_mode():
                    cycle = executor.cycle(tokens, k)
                transcript.add_seconds(cycle)
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
                times = drafted, verified
                yield Verified(lane, number, details.positions, *times, details.distribution, details.p, details.bonus)
                with watch:
                    committed, readable = transcript.commit(emitted)
                yield transcript.end_cycle(committed, pieces, readable, verdict, watch.elapsed)
    except torch.OutOfMemoryError:
        yield transcript.fail(NO_ROOM, watch.elapsed)
    except Exception as error:
        yield transcript.fail(f"{type(error).__name__}: {error}", watch.elapsed)
    yield transcript.finish(watch.elapsed, executor.eager)
