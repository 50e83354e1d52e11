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

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from . import describe
from .drafters.base import Drafter, NoDrafter
from .events import Committed, Drafted, Event, Failed, Finished, FinishReason, Started, Verified
from .models.base import LanguageModel
from .sampling import Chooser, probabilities, SharedNoiseChooser
from .text import TextStream
from .types import Proposal, Said, SamplingParams
from .verify import RejectionSampling, Rule

MAX_DRAFTER_FAILURES = 3
MAX_NODES = 64  # of a draft; a tree may hold more tokens than it is deep


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
    return _run(task, chooser or task.rule.chooser(task.params.seed))


def check_prompt(task: Task) -> None:
    if not task.prompt:
        raise PromptError(Said("The prompt is empty. Type a few words to start from."))
    if len(task.prompt) >= task.target.context:
        told = {"n": len(task.prompt), "limit": task.target.context - 1}
        raise PromptError(Said("The prompt has {n} tokens; the model reads at most {limit}. Shorten it.", **told))
    if not 0 <= task.k <= MAX_NODES:
        raise ValueError(f"k must lie between 0 and {MAX_NODES}, not {task.k}")


class Transcript:
    """The text as it grows, and why it ended. Tokens join one by one: whichever end comes first decides."""

    def __init__(self, task: Task) -> None:
        self.tokens = list(task.prompt)
        self.prompt_length = len(self.tokens)
        self.limit = min(task.target.context, self.prompt_length + task.params.max_tokens)
        self._at_limit: FinishReason = (
            "length" if self.prompt_length + task.params.max_tokens <= task.target.context else "context"
        )
        self._ends = frozenset() if task.params.ignore_end else task.end_tokens
        self._stream = TextStream(task.token_bytes, task.params.stop)
        self.text = ""
        self.reason: FinishReason | None = None if self.wanted > 0 else self._at_limit

    @property
    def wanted(self) -> int:
        return self.limit - len(self.tokens)

    @property
    def count(self) -> int:
        return len(self.tokens) - self.prompt_length

    def commit(self, emitted: Sequence[int]) -> tuple[tuple[int, ...], str]:
        """The tokens that found a place, and the text that became readable."""
        before, readable = len(self.tokens), ""
        for token in emitted:
            self.tokens.append(token)
            ends = token in self._ends
            readable += "" if ends else self._stream.push(token)
            if self._stream.stopped or ends or self.wanted == 0:
                self.reason = "stop" if self._stream.stopped else "end" if ends else self._at_limit
                readable += self._stream.flush()
                break
        self.text += readable
        return tuple(self.tokens[before:]), readable

    def fail(self) -> None:
        self.reason = "failed"
        self.text += self._stream.flush()


def _run(task: Task, chooser: Chooser) -> Generator[Event, None, None]:
    target, params, lane, drafter = task.target, task.params, task.lane, task.drafter
    transcript, watch = Transcript(task), Stopwatch()
    tokens = transcript.tokens
    cache = target.new_cache(transcript.limit + MAX_NODES)
    spent = {"prefill": 0.0, "draft": 0.0, "verify": 0.0}
    cycle = failures = 0
    noise = SharedNoiseChooser(params.seed)
    costs = getattr(drafter, "costs", None)
    yield Started(lane, drafter.name, task.k, params, len(tokens), task.rule.name, task.rule.lossless, costs)

    while transcript.reason is None:
        chooser.at(len(tokens))
        noise.at(len(tokens))
        # Draft: never more than is still wanted, less the token that the target adds itself.
        k = min(task.k, transcript.wanted - 1) if cycle else 0
        with watch, torch.inference_mode():
            start = watch.now()
            proposal, failure = draft(drafter, tokens, k, task, chooser) if k or not cycle else (Proposal(), None)
            drafted = watch.now()
        spent["draft" if cycle else "prefill"] += drafted - start
        if failure:
            failures += 1
            if failures == MAX_DRAFTER_FAILURES:
                drafter, failure = NoDrafter(), f"{failure} (drafter switched off)"
            yield Failed(lane, cycle, "drafter", failure, False, drafted)
        elif k:
            failures = 0
        if proposal.tokens:
            pieces = tuple(map(task.piece, proposal.tokens))
            ends = tuple(accumulate(proposal.seconds, initial=start))[1:]
            yield Drafted(lane, cycle, proposal.tokens, pieces, proposal.parents, start, drafted, ends)

        # Verify: one pass over what the cache lacks and the whole draft; then judge, keep, commit.
        with watch, torch.inference_mode():
            start = watch.now()
            try:
                block = [*tokens[cache.length :], *proposal.tokens]
                logits = target.forward(block, cache, proposal.parents, len(proposal) + 1)
                check_logits(logits)
                verified = watch.now()
                rows = probabilities(logits, params)
                verdict = task.rule.verify(proposal, rows, chooser)
                cache.keep(len(tokens), verdict.path)
                committed, readable = transcript.commit(verdict.emitted(proposal))
            except Exception as error:  # the text so far stays good
                failure, verified = f"{type(error).__name__}: {error}", watch.now()
                transcript.fail()
        spent["verify" if cycle else "prefill"] += verified - start
        if transcript.reason == "failed":
            yield Failed(lane, cycle, "target", str(failure), True, verified)
            break
        details = describe.verification(proposal, rows, verdict, task.piece, noise if task.details else None)
        yield Verified(lane, cycle, start=start, end=verified, **details)
        yield Committed(
            lane, cycle, committed, tuple(map(task.piece, committed)), min(len(verdict.path), len(committed)),
            verdict.kind, readable, transcript.count, watch.elapsed,
        )  # fmt: skip
        cycle += 1

    other = max(0.0, watch.elapsed - sum(spent.values()))
    yield Finished(
        lane, transcript.reason or "failed", transcript.count, transcript.text, watch.elapsed,
        spent["prefill"], spent["draft"], spent["verify"], other,
    )  # fmt: skip


def draft(drafter: Drafter, tokens: Sequence[int], k: int, task: Task, chooser: Chooser) -> tuple[Proposal, str | None]:
    """A sound proposal, or none and the reason: a broken drafter costs its cycle, never the text."""
    try:
        proposal = drafter.propose(tokens, k, task.params, chooser)
        check_proposal(proposal, k, task.target.vocabulary)
    except Exception as error:
        return Proposal(), f"{type(error).__name__}: {error}"
    return proposal, None


def check_proposal(proposal: Proposal, k: int, vocabulary: int) -> None:
    """DraftError where a proposal would corrupt the text: nothing in it is taken on trust."""
    n = len(proposal.tokens)
    if n == 0:
        return
    if n > MAX_NODES:
        raise DraftError(f"the draft holds more than {MAX_NODES} tokens")
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
    """-inf is a way to exclude a token; a row without any finite maximum is broken."""
    if not math.isfinite(float(logits.amax(-1).sum())):
        raise FloatingPointError("the target's logits are not finite")
