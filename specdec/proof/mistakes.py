"""Plant known mistakes on purpose. The tests must notice each of them.

Each mistake changes one part of the shipped code: the verification rule (`wrong_rules.py`), the drafter, or the
target's rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..drafters.base import Drafter
from ..drafters.draft_model import DraftModelDrafter
from ..loop import Task
from ..models.base import Cache, LanguageModel
from ..rules import TypicalAcceptance
from ..sampling import argmax, probabilities, Sampler
from ..types import Proposal, SamplingParams
from ..verify import Rule
from . import wrong_rules as wrong


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
        self.vocabulary, self.context = model.vocabulary, model.context

    def new_cache(self, capacity: int) -> Cache:
        cache: Cache = self._model.new_cache(capacity)
        return cache

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
    Mistake("target_minus_target", wrong.ResidualIsNothing),
    Mistake("from_target", wrong.ResampleFromTarget),
    Mistake("extra_bonus", wrong.BonusAfterRejection, first_token_shows=False),
    Mistake("ratio_swapped", wrong.SwappedRatio),
    Mistake("accept_all", wrong.AcceptEverything),
    Mistake("draft_bonus", wrong.BonusFromDraft, first_token_shows=False),
    Mistake("row_shift", wrong.OffByOneRow),
    Mistake("one_coin", wrong.OneCoin, first_token_shows=False),
    Mistake("argmax_draft", drafter=ArgmaxDraft),
    Mistake("drop_doubtful", drafter=DropsDoubtful),
    Mistake("unwarped", target=Unwarped),
    Mistake("point_kept", wrong.ResidualKeepsToken, drafter=PointMassDraft),
    Mistake("residual_epsilon", wrong.ResidualWithEpsilon),
    Mistake("coarse_ratio", wrong.CoarseRatio),
    Mistake("typical", TypicalAcceptance),
    Mistake("unjudged_fourth", wrong.UnjudgedFromFourth, first_token_shows=False, least_k=4),
    Mistake("block_residual", wrong.TokenResidualAfterBlock, first_token_shows=False, least_k=2),
    Mistake("block_product", wrong.BlockByProduct, least_k=2),
)
MISTAKES = {mistake.key: mistake for mistake in CATALOGUE}
