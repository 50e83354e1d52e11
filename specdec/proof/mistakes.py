"""Plant known mistakes in the verification rule, the drafter or the target's rows. The tests must notice each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..drafters.base import Drafter
from ..drafters.draft_model import DraftModelDrafter
from ..models.base import Cache, LanguageModel
from ..rules import BlockVerification, TypicalAcceptance
from ..sampling import argmax, probabilities, residual, Sampler
from ..task import Task
from ..types import Proposal, SamplingParams, Verdict
from ..verify import RejectionSampling, Rule


def wrong(rule: type[Rule] = RejectionSampling, **methods: Callable[..., Any]) -> type[Rule]:
    """Make a rule with one of its methods replaced."""
    return type("WrongRule", (rule,), methods)


class ResidualWithEpsilon(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        point = torch.zeros_like(p).index_fill(0, torch.tensor([token]), 1.0)
        difference = (p - (point if q is None else q)).clamp(min=0.0) + 1e-3
        return difference / difference.sum()


class ResidualKeepsToken(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return p if q is None else residual(p, q * (torch.arange(len(q)) != token), token)


class SwappedRatio(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(q, p, ("accept", node)) if p > 0.0 else (True, 0.0)


class CoarseRatio(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, float(torch.tensor(q).bfloat16()), ("accept", node))


class UnjudgedFromFourth(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return super().accept(p, q, sampler, node) if node < 3 else (True, 0.0)


class TokenResidualAfterBlock(BlockVerification):
    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return super().residual(1.0, p, q, token)


class BonusFromDraft(RejectionSampling):
    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        if proposal.probs is not None and len(proposal) > 0 and node == len(proposal) - 1:
            p = proposal.probs[node]
        return sampler.categorical(p, ("own", node + 1))


class OneCoin(RejectionSampling):
    """Uses one uniform number u for the whole block: accepts the longest prefix whose ratios p/q all exceed u."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._passed = 1.0
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        smallest = min(self._passed, p / q)
        accepted, u = sampler.accept(smallest, self._passed, ("accept", node))
        self._passed = smallest
        return accepted, u


@dataclass(frozen=True, slots=True)
class LongVerdict(Verdict):
    """Emits tokens after the target's own, which no lossless rule does."""

    extra: tuple[int, ...] = ()

    def emitted(self, proposal: Proposal) -> list[int]:
        return [*Verdict.emitted(self, proposal), *self.extra]


class BonusAfterRejection(RejectionSampling):
    """Adds a bonus token even after the draft's last token was rejected."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        verdict = super().verify(proposal, rows, sampler)
        if len(proposal) == 0 or verdict.kind == "bonus" or len(verdict.path) != len(proposal) - 1:
            return verdict
        bonus = sampler.categorical(rows[-1], ("own", len(proposal) + 1))
        facts = verdict.path, verdict.token, verdict.kind, verdict.trials, verdict.distribution, verdict.weights
        return LongVerdict(*facts, extra=(bonus,))


class ArgmaxDraft(DraftModelDrafter):
    """Drafts the argmax, but reports the softmax as q, as if the token had been drawn from it."""

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor]:
        distribution = probabilities(logits, params)[0]
        return int(distribution.argmax()), distribution


class PointMassDraft(DraftModelDrafter):
    """Drafts the argmax as a point mass (q is None), which is lossless: mistakes about point masses need it."""

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor | None]:
        return int(argmax(logits)), None


class DropsDoubtful(DraftModelDrafter):
    """Ends the draft at a token of low confidence, and drops that token."""

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        proposal = super().propose(tokens, k, params, sampler)
        if proposal.probs is None:
            return proposal
        confident = 0
        while confident < len(proposal) and float(proposal.probs[confident, proposal.tokens[confident]]) >= 0.35:
            confident += 1
        return Proposal.chain(list(proposal.tokens[:confident]), proposal.probs[:confident])


class Unwarped:
    """A target that ignores the temperature in verification passes."""

    chains_only = False

    def __init__(self, model: LanguageModel[Any], params: SamplingParams) -> None:
        self._model, self._params = model, params
        self.vocabulary, self.context, self.new_cache = model.vocabulary, model.context, model.new_cache

    def forward(self, tokens: Sequence[int], cache: Cache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        logits = self._model.forward(tokens, cache, parents, rows)
        return logits * (self._params.temperature or 1.0) if len(parents) > 0 else logits


@dataclass(frozen=True)
class Mistake:
    """Describes a mistake. `apply` plants it in a task that drafts with the model `draft`."""

    key: str
    rule: Callable[[], Rule] | None = None
    drafter: Callable[[LanguageModel[Any]], Drafter] | None = None
    target: Callable[[LanguageModel[Any], SamplingParams], LanguageModel[Any]] | None = None
    first_token_shows: bool = True  # whether even a cycle's first token has a wrong distribution
    least_k: int = 1  # with a smaller K, the output distribution is still right

    def apply(self, task: Task, draft: LanguageModel[Any]) -> Task:
        return replace(
            task,
            rule=self.rule() if self.rule else task.rule,
            drafter=self.drafter(draft) if self.drafter else task.drafter,
            target=self.target(task.target, task.params) if self.target else task.target,
        )


CATALOGUE = (  # `met` in `assets/text/en/lossless.json` says where most of them were found
    Mistake("target_minus_target", wrong(residual=lambda rule, p, q, token: (p - p) / (p - p).sum())),
    Mistake("from_target", wrong(residual=lambda rule, p, q, token: p)),
    Mistake("extra_bonus", BonusAfterRejection, first_token_shows=False),
    Mistake("ratio_swapped", SwappedRatio),
    Mistake("accept_all", wrong(accept=lambda rule, p, q, sampler, node: (True, 0.0))),
    Mistake("draft_bonus", BonusFromDraft, first_token_shows=False),
    Mistake("row_shift", wrong(row=lambda rule, rows, node: rows[min(node + 2, len(rows) - 1)])),
    Mistake("one_coin", OneCoin, first_token_shows=False),
    Mistake("argmax_draft", drafter=ArgmaxDraft),
    Mistake("drop_doubtful", drafter=DropsDoubtful),
    Mistake("unwarped", target=Unwarped),
    Mistake("point_kept", ResidualKeepsToken, drafter=PointMassDraft),
    Mistake("residual_epsilon", ResidualWithEpsilon),
    Mistake("coarse_ratio", CoarseRatio),
    Mistake("typical", TypicalAcceptance),
    Mistake("unjudged_fourth", UnjudgedFromFourth, first_token_shows=False, least_k=4),
    Mistake("block_residual", TokenResidualAfterBlock, first_token_shows=False, least_k=2),
    # Accepts each prefix with probability w, which is right only for the whole block.
    Mistake("block_product", wrong(BlockVerification, pass_chance=lambda rule, w, p, q: w), least_k=2),
)
MISTAKES = {mistake.key: mistake for mistake in CATALOGUE}
