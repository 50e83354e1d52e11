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
from typing import Any, Literal

import torch
from torch import Tensor

from . import describe
from .drafters.base import Drafter, Guided, NoDrafter
from .events import Committed, Drafted, Event, Failed, Finished, FinishReason, Started, Verified
from .grammar import Guide
from .models.base import LanguageModel
from .sampling import probabilities, Sampler, SharedNoiseSampler
from .text import TextStream
from .types import MAX_NODES, PromptError, Proposal, SamplingParams, TranslatableText, Verdict
from .verify import RejectionSampling, Rule

MAX_DRAFTER_FAILURES = 3


class DraftError(ValueError):
    """A drafter broke its contract."""


@dataclass
class Task:
    """Everything that defines a run, apart from its randomness. Drafter and guide serve one run."""

    target: LanguageModel[Any]
    prompt: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    drafter: Drafter = field(default_factory=NoDrafter)
    k: int = 4
    rule: Rule = field(default_factory=RejectionSampling)
    end_tokens: frozenset[int] = frozenset()
    token_bytes: Callable[[int], bytes] = lambda token: f" {token}".encode()
    piece: Callable[[int], str] = lambda token: f" {token}"
    lane: str = "speculative"
    guide: Guide | None = None  # by the grammar that the text has to follow
    details: bool = True  # the distributions at every position, for people; False is the light form for measurements

    @property
    def depth(self) -> int:
        """K, or less where the drafter has fewer heads or slots (its `deepest`)."""
        return min(self.k, getattr(self.drafter, "deepest", self.k))


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


def generate(task: Task, sampler: Sampler | None = None) -> Generator[Event, None, None]:
    """Run `task`; yield events as they happen, `Finished` last whatever breaks. Closing the iterator ends the run.

    PromptError for a prompt that is empty or does not fit the context.
    """
    check_prompt(task)
    return _run(task, sampler or task.rule.sampler(task.params.seed))


def check_prompt(task: Task) -> None:
    if not task.prompt:
        raise PromptError(TranslatableText("The prompt is empty. Type a few words to start from."))
    if len(task.prompt) >= task.target.context:
        told = {"n": len(task.prompt), "limit": task.target.context - 1}
        raise PromptError(
            TranslatableText("The prompt has {n} tokens; the model reads at most {limit}. Shorten it.", **told)
        )
    if task.params.grammar is not None and task.guide is None:
        raise ValueError("a task with a grammar needs its guide: Guide(Grammar.of(…)), as in `lanes/race.py`")
    if not 0 <= task.k <= MAX_NODES:
        raise ValueError(f"k must lie between 0 and {MAX_NODES}, not {task.k}")


class Transcript:
    """A lane's text as it grows, why it ended, and where its time went.

    Tokens join one by one: whichever end comes first decides.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tokens = list(task.prompt)
        self.prompt_length = len(self.tokens)
        self.limit = min(task.target.context, self.prompt_length + task.params.max_tokens)
        self._at_limit: FinishReason = (
            "length" if self.prompt_length + task.params.max_tokens <= task.target.context else "context"
        )
        self._ends = frozenset() if task.params.ignore_end else task.end_tokens
        self._stream = TextStream(task.token_bytes, task.params.stop)
        self.text = ""
        self.cycle = 0  # the one that is running
        self.spent = {"prefill": 0.0, "draft": 0.0, "verify": 0.0}  # seconds
        self._guide = task.guide
        self.reason: FinishReason | None = (
            self._at_limit if self.wanted <= 0 else "end" if self._guide and self._guide.done else None
        )

    @property
    def wanted(self) -> int:
        return self.limit - len(self.tokens)

    @property
    def count(self) -> int:
        return len(self.tokens) - self.prompt_length

    def spend(self, work: Literal["draft", "verify"], seconds: float) -> None:
        """Whatever cycle 0 does is prefill."""
        self.spent[work if self.cycle else "prefill"] += seconds

    def commit(self, emitted: Sequence[int]) -> tuple[tuple[int, ...], str]:
        """The tokens that found a place, and the text that became readable. None of them if one cannot be read."""
        before, readable = len(self.tokens), ""
        try:
            for token in emitted:
                self.tokens.append(token)
                ends = token in self._ends
                readable += "" if ends else self._stream.push(token)
                if self._guide:
                    self._guide.advance(token)
                    ends = ends or self._guide.done
                if self._stream.stopped or ends or self.wanted == 0:
                    self.reason = "stop" if self._stream.stopped else "end" if ends else self._at_limit
                    readable += self._stream.flush()
                    break
        except Exception:
            del self.tokens[before:]
            raise
        self.text += readable
        return tuple(self.tokens[before:]), readable

    def committed(
        self, tokens: tuple[int, ...], pieces: Sequence[str], readable: str, verdict: Verdict, at: float
    ) -> Committed:
        """The event of what `commit` gave, which ends the cycle."""
        event = Committed(
            self.task.lane, self.cycle, tokens, tuple(pieces[: len(tokens)]), min(len(verdict.path), len(tokens)),
            verdict.kind, readable, self.count, at,
        )  # fmt: skip
        self.cycle += 1
        return event

    def fail(self, error: Exception, at: float) -> Failed:
        """The text so far stays good."""
        self.reason = "failed"
        self.text += self._stream.flush()
        return Failed(self.task.lane, self.cycle, "target", f"{type(error).__name__}: {error}", True, at)

    def finished(self, at: float, eager: str | None = None) -> Finished:
        other = max(0.0, at - sum(self.spent.values()))
        return Finished(
            self.task.lane, self.reason or "failed", self.count, self.text, at, self.spent["prefill"],
            self.spent["draft"], self.spent["verify"], other, eager,
        )  # fmt: skip


def _run(task: Task, sampler: Sampler) -> Generator[Event, None, None]:
    transcript, watch = Transcript(task), Stopwatch()
    try:
        yield from _cycles(task, sampler, transcript, watch)
    except Exception as error:
        yield transcript.fail(error, watch.elapsed)
    yield transcript.finished(watch.elapsed)


def _cycles(task: Task, sampler: Sampler, transcript: Transcript, watch: Stopwatch) -> Generator[Event, None, None]:
    target, params, lane, drafter = task.target, task.params, task.lane, task.drafter
    tokens, noise, failures = transcript.tokens, SharedNoiseSampler(params.seed), 0
    if task.guide:
        guide_drafter(drafter, task.guide)
    costs = getattr(drafter, "costs", None)
    yield Started(lane, drafter.name, task.depth, params, len(tokens), task.rule.name, task.rule.lossless, costs)

    cache = target.new_cache(transcript.limit + MAX_NODES)
    while transcript.reason is None:
        cycle = transcript.cycle
        sampler.at(len(tokens))
        noise.at(len(tokens))
        # Draft: at most what is still wanted, minus the token that the target adds.
        k = min(task.k, transcript.wanted - 1) if cycle else 0
        with watch, torch.inference_mode():
            start = watch.now()
            proposal, failure = draft(drafter, tokens, k, task, sampler) if k or not cycle else (Proposal(), None)
            drafted = watch.now()
        transcript.spend("draft", drafted - start)
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
            own, who = proposal.own or None, proposal.drafter or None
            yield Drafted(lane, cycle, proposal.tokens, pieces, proposal.parents, start, drafted, ends, own, who)

        # Verify: one pass over what the cache lacks and the whole draft; then judge and keep.
        with watch, torch.inference_mode():
            start = watch.now()
            block = [*tokens[cache.length :], *proposal.tokens]
            logits = target.forward(block, cache, proposal.parents, len(proposal) + 1)
            check_logits(logits)
            verified = watch.now()
            rows = probabilities(task.guide.mask_target(logits, proposal) if task.guide else logits, params)
            verdict = task.rule.verify(proposal, rows, sampler)
            cache.keep(len(tokens), verdict.path)  # rolls back what was rejected
        transcript.spend("verify", verified - start)
        # Describe first, off the clock: if that fails, nothing joins the text.
        details = describe.verification(proposal, rows, verdict, task.piece, noise if task.details else None)
        emitted = verdict.emitted(proposal)
        pieces = tuple(map(task.piece, emitted))
        yield Verified(lane, cycle, start=start, end=verified, **details)
        with watch:
            committed, readable = transcript.commit(emitted)
        yield transcript.committed(committed, pieces, readable, verdict, watch.elapsed)


def draft(drafter: Drafter, tokens: Sequence[int], k: int, task: Task, sampler: Sampler) -> tuple[Proposal, str | None]:
    """A sound proposal, or none and the reason: a broken drafter costs its cycle, never the text."""
    try:
        proposal = drafter.propose(tokens, k, task.params, sampler)
        check_proposal(proposal, k, task.target.vocabulary)
    except Exception as error:
        return Proposal(), f"{type(error).__name__}: {error}"
    return proposal, None


def guide_drafter(drafter: Drafter, guide: Guide) -> None:
    """Have it draft what the grammar allows, where it can."""
    arms = [arm.drafter for arm in getattr(drafter, "arms", ())]
    for one in (getattr(drafter, "inner", drafter), *arms):
        if isinstance(one, Guided):
            one.guide = guide


def check_proposal(proposal: Proposal, k: int, vocabulary: int) -> None:
    """DraftError where a proposal would corrupt the text: everything in it is checked."""
    n = len(proposal.tokens)
    if n == 0:
        return
    if n > MAX_NODES:
        raise DraftError(f"the draft holds more than {MAX_NODES} tokens")
    if not all(type(number) is int for number in (*proposal.tokens, *proposal.parents)):
        raise DraftError("the draft holds ids or parents that are no whole numbers of Python")
    if not all(0.0 <= seconds < math.inf for seconds in proposal.seconds):
        raise DraftError("the draft's times are no seconds")
    if not all(isinstance(piece, str) for pieces in proposal.own for piece in pieces):
        raise DraftError("the draft's own pieces are no text")
    if len(proposal.parents) != n or any(not -1 <= parent < node for node, parent in enumerate(proposal.parents)):
        raise DraftError("the draft's parents do not form a tree")
    if proposal.levels > k:
        raise DraftError(f"the draft is deeper than the {k} tokens asked for")
    if not all(0 <= token < vocabulary for token in proposal.tokens):
        raise DraftError("the draft holds a token outside the vocabulary")
    if proposal.probs is not None:
        if tuple(proposal.probs.shape) != (n, vocabulary):
            raise DraftError(f"the draft's probabilities have shape {tuple(proposal.probs.shape)}")
        if not float(proposal.probs.min()) >= 0.0:
            raise DraftError("the draft holds a negative probability")
        if not float((proposal.probs.sum(-1) - 1.0).abs().max()) < 1e-3:
            raise DraftError("the draft's probabilities do not sum to one")
        if not all(float(proposal.probs[i, token]) > 0.0 for i, token in enumerate(proposal.tokens)):
            raise DraftError("the draft holds a token that its own distribution excludes")


def check_logits(logits: Tensor) -> None:
    """-inf is a way to exclude a token; a row without any finite maximum is broken."""
    if not math.isfinite(float(logits.amax(-1).sum())):
        raise FloatingPointError("the target's logits are not finite")
