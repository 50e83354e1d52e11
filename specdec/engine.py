"""The one loop: draft, verify, commit. Knows protocols only: no model, no method, no tokenizer, no page.

    pending = prompt
    each cycle:  proposal = drafter.propose(text)
                 rows     = target.forward(pending + proposal)
                 verdict  = rule.verify(proposal, rows)
                 keep the accepted path in the cache; commit accepted + the target's own token

Plain decoding is the same loop with a drafter that proposes nothing. Invariant: *the cache holds every
committed token except the last.* Cycle 0 is the prefill; it drafts nothing and gives the first token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from . import describe
from .drafters.base import Drafter, NoDrafter
from .events import Committed, Drafted, Event, Failed, Finished, FinishReason, Started, Verified
from .models.base import LanguageModel
from .sampling import Chooser, probabilities, RandomChooser
from .text import TextStream
from .types import Proposal, SamplingParams
from .verify import RejectionSampling, Rule

MAX_DRAFTER_FAILURES = 3


class PromptError(ValueError):
    """The prompt cannot be run; the message says what to do."""


class DraftError(ValueError):
    """A drafter broke its contract."""


@dataclass
class Task:
    """Everything that defines a run, apart from its randomness."""

    target: LanguageModel
    prompt: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    drafter: Drafter = field(default_factory=NoDrafter)
    k: int = 4
    rule: Rule = field(default_factory=RejectionSampling)
    end_tokens: frozenset[int] = frozenset()
    token_bytes: Callable[[int], bytes] = lambda token: f" {token}".encode()
    piece: Callable[[int], str] = lambda token: f" {token}"
    lane: str = "speculative"
    details: bool = True  # the laws at every position, for people; False is the light form for measurements


class Stopwatch:
    """The lane's clock: runs only inside `with`, so neither a reader of the events nor another lane counts."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._since: float | None = None

    def __enter__(self) -> Stopwatch:
        self._since = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.elapsed, self._since = self.now(), None

    def now(self) -> float:
        return self.elapsed + (time.perf_counter() - self._since if self._since is not None else 0.0)


def generate(task: Task, chooser: Chooser | None = None) -> Generator[Event, None, None]:
    """Run `task`; yield events as they happen. Closing the iterator ends the run.

    PromptError for a prompt that is empty or does not fit the context.
    """
    check_prompt(task)
    return _run(task, chooser or RandomChooser(task.params.seed))


def check_prompt(task: Task) -> None:
    if not task.prompt:
        raise PromptError("The prompt is empty. Type a few words to start from.")
    if len(task.prompt) >= task.target.context:
        raise PromptError(
            f"The prompt has {len(task.prompt)} tokens; the model reads at most {task.target.context - 1}. Shorten it."
        )
    if task.k < 0:
        raise ValueError(f"k must be 0 or more, not {task.k}")


def _run(task: Task, chooser: Chooser) -> Generator[Event, None, None]:
    target, params, lane = task.target, task.params, task.lane
    tokens, watch, drafter = list(task.prompt), Stopwatch(), task.drafter
    limit = min(target.context, len(tokens) + params.max_tokens)
    stream = TextStream(task.token_bytes, params.stop)
    cache = target.new_cache(min(target.context, limit + 1))
    written: list[str] = []
    spent = {"prefill": 0.0, "draft": 0.0, "verify": 0.0}
    at_limit: FinishReason = "length" if len(tokens) + params.max_tokens <= target.context else "context"
    reason: FinishReason | None = None if len(tokens) < limit else at_limit
    cycle = failures = 0
    yield Started(lane, drafter.name, task.k, params, len(tokens), task.rule.name if task.rule.lossless else "")

    while reason is None:
        # Draft. Never more than is still wanted, less the token that the target adds itself.
        with watch:
            start = watch.now()
            k = min(task.k, limit - len(tokens) - 1) if cycle else 0
            try:
                # At the prefill the drafter, too, may read the prompt: k is 0 then.
                proposal = drafter.propose(tokens, k, params, chooser) if k > 0 or cycle == 0 else Proposal()
                check_proposal(proposal, k, target.vocabulary)
                failure = None
            except Exception as error:  # a broken drafter costs its cycle, never the text
                proposal, failure = Proposal(), f"{type(error).__name__}: {error}"
            drafted = watch.now()
        spent["draft" if cycle else "prefill"] += drafted - start
        if failure is not None:
            failures += 1
            if failures == MAX_DRAFTER_FAILURES:
                drafter, failure = NoDrafter(), f"{failure} (drafter switched off)"
            yield Failed(lane, cycle, "drafter", failure, False, drafted)
        elif k > 0:
            failures = 0
        if proposal.tokens:
            pieces = tuple(map(task.piece, proposal.tokens))
            yield Drafted(
                lane, cycle, proposal.tokens, pieces, proposal.parents, start, drafted, running(start, proposal.seconds)
            )

        # Verify: one pass over what the cache lacks and the whole draft.
        with watch:
            start = watch.now()
            pending = tokens[cache.length :]
            base = len(tokens)
            try:
                block = [*pending, *proposal.tokens]
                logits = target.forward(block, cache, proposal.parents, len(proposal) + 1)
                check_logits(logits)
                failure = None
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
            verified = watch.now()
            if failure is None:
                rows = probabilities(logits, params)
                verdict = task.rule.verify(proposal, rows, chooser)
                cache.keep(base, verdict.path)
                # Commit, token by token: whichever end comes first decides.
                emitted, text = verdict.emitted(proposal), ""
                for count, token in enumerate(emitted, start=1):
                    tokens.append(token)
                    ends = token in task.end_tokens and not params.ignore_end
                    text += "" if ends else stream.push(token)
                    if stream.stopped or ends or len(tokens) >= limit:
                        reason = "stop" if stream.stopped else "end" if ends else at_limit
                        emitted = emitted[:count]
                        break
                if reason is not None:
                    text += stream.flush()
                written.append(text)
        spent["verify" if cycle else "prefill"] += verified - start
        if failure is not None:
            yield Failed(lane, cycle, "target", failure, True, verified)
            reason = "failed"
            break
        yield Verified(
            lane,
            cycle,
            describe.positions(proposal, rows, verdict, task.piece, task.details),
            start,
            verified,
            describe.law(describe.own_law(proposal, rows, verdict), task.piece) if task.details else None,
            float(rows[verdict.path[-1] + 1 if verdict.path else 0][verdict.token]) if task.details else None,
        )
        yield Committed(
            lane,
            cycle,
            tuple(emitted),
            tuple(map(task.piece, emitted)),
            min(len(verdict.path), len(emitted)),
            verdict.kind,
            text,
            len(tokens) - len(task.prompt),
            watch.elapsed,
        )
        cycle += 1

    if reason == "failed":
        written.append(stream.flush())
    other = watch.elapsed - sum(spent.values())
    yield Finished(
        lane, reason, len(tokens) - len(task.prompt), "".join(written), watch.elapsed, **spent, other=max(0.0, other)
    )


def running(start: float, seconds: Sequence[float]) -> tuple[float, ...]:
    ends = []
    for duration in seconds:
        start += duration
        ends.append(start)
    return tuple(ends)


def check_proposal(proposal: Proposal, k: int, vocabulary: int) -> None:
    """DraftError where a proposal would corrupt the text: nothing in it is taken on trust."""
    n = len(proposal.tokens)
    if n == 0:
        return
    if len(proposal.parents) != n or any(not -1 <= parent < node for node, parent in enumerate(proposal.parents)):
        raise DraftError("the draft's parents are no tree")
    if max(map(proposal.depth, range(n))) > k:
        raise DraftError(f"the draft is deeper than the {k} tokens asked for")
    if not all(0 <= token < vocabulary for token in proposal.tokens):
        raise DraftError("the draft holds a token outside the vocabulary")
    if proposal.probs is not None:
        if tuple(proposal.probs.shape) != (n, vocabulary):
            raise DraftError(f"the draft's probabilities have shape {tuple(proposal.probs.shape)}")
        if not abs(float(proposal.probs.sum()) / n - 1.0) < 1e-3:
            raise DraftError("the draft's probabilities do not sum to one")
        if not all(float(proposal.probs[i, token]) > 0.0 for i, token in enumerate(proposal.tokens)):
            raise DraftError("the draft holds a token that its own law excludes")


def check_logits(logits: Tensor) -> None:
    total = float(logits.sum())
    if total != total or total == float("inf"):
        raise FloatingPointError("the target's logits are not finite")
