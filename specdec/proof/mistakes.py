"""Known mistakes, kept on purpose: the tests must catch each of them, and the page shows what each does.

Each is a patch of one named seam of the shipped code: the verification rule (`wrong_rules.py`), the distribution that
the drafter draws from or reports, or the target's rows. Those of state and of batches are in `scenarios.py`. `met_in`
says where it was seen in the wild. `first_token_shows` is False for those that leave the first token's distribution
intact: a test of one token cannot see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..drafters.base import Drafter
from ..drafters.draft_model import DraftModelDrafter
from ..engine import Task
from ..models.base import Cache, LanguageModel
from ..rules import SampleAndMatch, TypicalAcceptance
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from ..verify import Rule
from . import wrong_rules as wrong


class ArgmaxDraft(DraftModelDrafter):
    """Takes the draft's favourite but reports the softmax it was not drawn from."""

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor]:
        distribution = probabilities(logits, params)[0]
        return int(distribution.argmax()), distribution


class TopKDraft(DraftModelDrafter):
    """Draws from the two most probable tokens, reports the whole distribution."""

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor]:
        narrow = probabilities(logits, replace(params, top_k=2))[0]
        return sampler.categorical(narrow, ("draft", index)), probabilities(logits, params)[0]


class OtherTemperature(DraftModelDrafter):
    """Draws at the temperature asked for, reports the distribution at another one."""

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor]:
        distribution = probabilities(logits, params)[0]
        other = replace(params, temperature=0.8 * params.temperature)
        return sampler.categorical(distribution, ("draft", index)), probabilities(logits, other)[0]


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


class WrongRows:
    """A target whose rows of a verification pass are spoiled; those of plain decoding are not."""

    def __init__(self, model: LanguageModel[Any], params: SamplingParams) -> None:
        self._model, self._params = model, params
        self.vocabulary, self.context = model.vocabulary, model.context

    def new_cache(self, capacity: int) -> Cache:
        cache: Cache = self._model.new_cache(capacity)
        return cache

    def forward(self, tokens: Sequence[int], cache: Cache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        logits = self._model.forward(tokens, cache, parents, rows)
        return self.spoiled(logits) if len(parents) > 0 else logits

    def spoiled(self, logits: Tensor) -> Tensor:
        raise NotImplementedError


class Unwarped(WrongRows):
    """Scaled up by what the temperature divides by."""

    def spoiled(self, logits: Tensor) -> Tensor:
        return logits * (self._params.temperature or 1.0)


class FavouriteOnly(WrongRows):
    """As at temperature 0, or at one of 1e-5."""

    def spoiled(self, logits: Tensor) -> Tensor:
        return torch.full_like(logits, -torch.inf).scatter_(-1, logits.argmax(-1, keepdim=True), 0.0)


class WithoutNorm(WrongRows):
    """A norm divides a state by its size; without it logits are as many times too far apart: by their deviation."""

    def spoiled(self, logits: Tensor) -> Tensor:
        finite = logits.isfinite()
        count = finite.sum(-1, keepdim=True)
        centred = logits - logits.where(finite, 0.0).sum(-1, keepdim=True) / count
        size = (centred.where(finite, 0.0).square().sum(-1, keepdim=True) / count).sqrt()
        return centred * size.clamp(min=1e-9)


@dataclass(frozen=True)
class Mistake:
    """`apply` plants it in a task whose drafter is the shipped draft model."""

    key: str
    title: str
    met_in: str
    rule: Callable[[], Rule] | None = None
    drafter: Callable[[LanguageModel[Any]], Drafter] | None = None
    target: Callable[[LanguageModel[Any], SamplingParams], LanguageModel[Any]] | None = None
    first_token_shows: bool = True
    needs_point_mass: bool = False  # shows only with drafts that were not drawn, such as prompt lookup
    least_k: int = 1  # with shorter drafts every text keeps its probability
    harmless: bool = False  # looks like a mistake, and leaves the distribution alone

    def apply(self, task: Task, draft: LanguageModel[Any]) -> Task:
        changes: dict[str, object] = {}
        if self.rule:
            changes["rule"] = self.rule()
        if self.drafter:
            changes["drafter"] = self.drafter(draft)
        if self.target:
            changes["target"] = self.target(task.target, task.params)
        return replace(task, **changes)  # type: ignore[arg-type]


TUTORIAL = "the tutorial “Speculative Decoding: Faster Inference”"
GUARD = "guards against division by zero"
LETTERS = "swapped letters p and q between papers"
CATALOGUE = (
    Mistake("target_minus_target", "Subtract the target from itself", TUTORIAL, wrong.ResidualIsNothing),
    Mistake(
        "from_target",
        "Resample from the target, not the residual",
        "many first implementations",
        wrong.ResampleFromTarget,
    ),
    Mistake(
        "extra_bonus",
        "Add a bonus after a rejected last token",
        TUTORIAL,
        wrong.BonusAfterRejection,
        first_token_shows=False,
    ),
    Mistake("ratio_swapped", "Divide the draft by the target", LETTERS, wrong.SwappedRatio),
    Mistake("absolute", "Take |p − q| as the residual", "homework solutions", wrong.AbsoluteResidual),
    Mistake("residual_swapped", "Take max(0, q − p) as the residual", LETTERS, wrong.SwappedResidual),
    Mistake(
        "accept_all",
        "Accept everything",
        "demos that paint drafts green before they are checked",
        wrong.AcceptEverything,
    ),
    Mistake(
        "draft_bonus",
        "Draw the bonus from the draft",
        "row mix-ups after full acceptance",
        wrong.BonusFromDraft,
        first_token_shows=False,
    ),
    Mistake("row_shift", "Judge against the next row", "openvino.genai issue 4190", wrong.OffByOneRow),
    Mistake(
        "one_coin",
        "One coin for the whole block",
        "batched verification kernels",
        wrong.OneCoin,
        first_token_shows=False,
    ),
    Mistake(
        "argmax_draft",
        "Draft the favourite, report the softmax",
        "transformers issue 47932, HandsomeSB and others",
        drafter=ArgmaxDraft,
    ),
    Mistake(
        "drop_doubtful",
        "Drop the token that ends the draft",
        "confidence thresholds that look at the dropped token",
        drafter=DropsDoubtful,
    ),
    Mistake(
        "top_k_draft",
        "Draw from the top tokens, report the whole distribution",
        "transformers issue 47932",
        drafter=TopKDraft,
    ),
    Mistake("unwarped", "Warp the draft, not the target", "vLLM issue 10198", target=Unwarped),
    Mistake(
        "other_temperature",
        "Report the draft's distribution at another temperature",
        "dflash issue 74",
        drafter=OtherTemperature,
    ),
    Mistake(
        "point_kept",
        "Leave a rejected guess possible",
        "n-gram drafters under sampling",
        wrong.ResidualKeepsToken,
        needs_point_mass=True,
    ),
    Mistake("residual_epsilon", "Add a little to the residual", GUARD, wrong.ResidualWithEpsilon),
    Mistake("residual_floor", "Clamp the residual from below", GUARD, wrong.ResidualWithFloor),
    Mistake("coarse_ratio", "Compare with a rounded q", "DeepSpec issue 31", wrong.CoarseRatio),
    Mistake("lenient", "Accept a little more than allowed", "lenient and ensemble acceptance modes", wrong.Lenient),
    Mistake("ratio_epsilon", "Add a little to the ratio", GUARD, wrong.RatioWithEpsilon),
    Mistake(
        "top_match",
        "Accept on a top-1 match while sampling",
        "explanations that describe greedy matching only",
        wrong.TopMatch,
    ),
    Mistake("typical", "Typical acceptance", "Medusa's default above temperature 0", TypicalAcceptance),
    Mistake("looks_at_u", "Look at u a second time", "verifiers that handle u themselves", wrong.LooksAtU),
    Mistake(
        "unjudged_fourth",
        "Leave the fourth token and later unjudged",
        "code that was tested with short drafts only",
        wrong.UnjudgedFromFourth,
        first_token_shows=False,
        least_k=4,
    ),
    Mistake("reused_coin", "Use the accept coin again", "samplers that draw one u for each position", wrong.ReusedCoin),
    Mistake(
        "block_residual",
        "Block verification with the residual of one token",
        "block verification written from the rule for single tokens",
        wrong.TokenResidualAfterBlock,
        first_token_shows=False,
        least_k=2,
    ),
    Mistake(
        "favourite",
        "Sample as if the temperature were 0, on the speculative path only",
        "mistral.rs pull request 2424, mlxcel issue 902; TensorRT-LLM pull request 19390 (an unset temperature: 1e-5)",
        target=FavouriteOnly,
    ),
    Mistake("no_norm", "Leave out the last norm in verification", "rMLX pull request 509", target=WithoutNorm),
    Mistake(
        "same_coins",
        "Draft and verify with the same random numbers",
        "llama.cpp pull request 27694",
        wrong.SameCoins,
    ),
    Mistake(
        "block_product",
        "Block verification by the product of ratios alone",
        "vllm-ascend issue 7807",
        wrong.BlockByProduct,
        least_k=2,
    ),
)
MISTAKES = {mistake.key: mistake for mistake in CATALOGUE}
OWN_DRAW = Mistake(
    "own_draw", "Keep only the target's own draw", "called biased in mlx-swift-lm pull request 459, dflash issue 74",
    SampleAndMatch, harmless=True,
)  # fmt: skip
PLANTABLE = MISTAKES | {OWN_DRAW.key: OWN_DRAW}
