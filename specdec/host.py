"""The executor of any host: draft, check the proposal, run the target, and judge its rows, one after the other."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from . import describe
from .drafters.base import NoDrafter
from .sampling import probabilities, Sampler
from .task import CycleResult, Task
from .types import is_chain, MAX_DRAFT_TOKENS, Proposal

CHUNK = 128  # tokens; a pass over a smaller chunk costs noticeably more per token
OnRead = Callable[[str, int, int], None]  # lane, tokens read, tokens of the prompt


class DraftError(ValueError):
    """A drafter returned a proposal that breaks the contract in `drafters/base.py`."""


class HostExecutor:
    """Runs a task on a CPU or GPU."""

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
        self.limit = 0  # tokens that the text can have

    @contextlib.contextmanager
    def allocated(self, limit: int) -> Iterator[None]:
        self.cache, self.limit = self.task.target.new_cache(limit + MAX_DRAFT_TOKENS), limit
        yield

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        task, cache, is_prefill = self.task, self.cache, not self.cache.length
        self.sampler.at(len(tokens))
        proposal, draft_s, failure = self.draft(tokens, k) if k else (Proposal(), 0.0, "")
        start = time.perf_counter()
        self.prefill_in_chunks(tokens)
        # One pass reads the tokens that are not cached yet, and the whole draft.
        block = [*tokens[cache.length :], *proposal.tokens]
        logits = task.target.forward(block, cache, proposal.parents, len(proposal) + 1)
        if not math.isfinite(float(logits.amax(-1).sum())):  # a logit of -inf is allowed; it excludes its token
            raise FloatingPointError("the target's logits are not finite")
        rows = probabilities(logits, task.params)
        verdict = task.rule.verify(proposal, rows, self.sampler)
        cache.keep(len(tokens), verdict.path)  # removes drafts off this path
        # Heads read the prompt with the target's states. A draft needs room for it and for the target's own tokens.
        if is_prefill and self.task.k and len(tokens) + 2 < self.limit:
            _, _, failure = attempt(self.drafter.read_prompt, tokens)
        verify_s = time.perf_counter() - start
        details = partial(describe.verification, proposal, rows, verdict, task.piece)
        return CycleResult(proposal, verdict, details, draft_s, verify_s, failure)

    def prefill_in_chunks(self, tokens: Sequence[int]) -> None:
        """Read a long prompt but its last chunk, always in the same chunks, because others can round differently."""
        last = len(tokens) - CHUNK
        if self.cache.length >= last:
            return
        while (read := self.cache.length) < last:
            self.on_read(self.task.lane, read, len(tokens))
            self.task.target.forward(tokens[read : min(read + CHUNK, last)], self.cache)
        self.on_read(self.task.lane, last, len(tokens))

    def draft(self, tokens: Sequence[int], k: int) -> tuple[Proposal, float, str]:
        """Return a checked proposal, which is empty if the drafter failed, its seconds, and the reason of a failure."""
        proposal, seconds, failure = attempt(self.drafter.propose, tokens, k, self.task.params, self.sampler)
        if not failure:
            trees = self.task.rule.trees and not self.task.target.chains_only
            _, _, failure = attempt(check_proposal, proposal, k, self.task.target.vocabulary, trees)
        return Proposal() if failure else proposal, seconds, failure

    def stop_drafting(self) -> None:
        self.drafter = NoDrafter()


def attempt(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float, str]:
    """Call a drafter's method. Return what it returns, its seconds, and the reason of a failure."""
    result, failure, start = None, "", time.perf_counter()
    try:
        result = work(*arguments)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return result, time.perf_counter() - start, failure


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
    if not (trees or is_chain(proposal.parents)):
        raise DraftError("the draft is a tree, and this rule or target takes only chains")
    if proposal.tree.max_depth > k:
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
