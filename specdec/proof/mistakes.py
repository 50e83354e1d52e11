"""Known mistakes, kept on purpose: the tests must catch each of them, and the page shows what each does.

Each is a patch of one named seam of the shipped code: the verification rule (accept, residual, own token, row),
the distribution that the drafter draws from or reports, or the warp of the target's rows. `met_in` says where it was
seen in the wild. `first_token_shows` is False for those that leave the first token's distribution intact: a test of one
token cannot see them.
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
from ..rules import BlockVerification, TypicalAcceptance
from ..sampling import probabilities, residual, Sampler
from ..types import Kind, Proposal, SamplingParams, Verdict
from ..verify import RejectionSampling, Rule


class ResidualIsNothing(RejectionSampling):
    name = "target minus target"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - p).clamp(min=0.0)
        return left / left.sum()


class ResampleFromTarget(RejectionSampling):
    name = "resample from the target"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return p


class AbsoluteResidual(RejectionSampling):
    name = "absolute residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).abs()
        return left / left.sum() if float(left.sum()) > 0 else p


class SwappedResidual(RejectionSampling):
    name = "residual the wrong way round"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(point_distribution(p, q, token), p, token)


class ResidualWithEpsilon(RejectionSampling):
    name = "epsilon in the residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).clamp(min=0.0) + 1e-3
        return left / left.sum()


class ResidualWithFloor(RejectionSampling):
    name = "floor under the residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).clamp(min=1e-2)
        return left / left.sum()


class ResidualKeepsToken(RejectionSampling):
    name = "rejected guess stays possible"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(p, None if q is None else q * (torch.arange(len(q)) != token), token) if q is not None else p


class SwappedRatio(RejectionSampling):
    name = "ratio the wrong way round"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(q, p, ("accept", node)) if p > 0.0 else (True, 0.0)


class AcceptEverything(RejectionSampling):
    name = "accept everything"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return True, 0.0


class Lenient(RejectionSampling):
    name = "lenient acceptance"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(1.1 * p, q, ("accept", node))


class RatioWithEpsilon(RejectionSampling):
    name = "epsilon in the ratio"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p + 1e-3 * q, q, ("accept", node))


class CoarseRatio(RejectionSampling):
    name = "ratio in bfloat16"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, float(torch.tensor(q).bfloat16()), ("accept", node))


class LooksAtU(RejectionSampling):
    """`if accepted or u < 0.9`. As a distribution: accept with probability max(p / q, 0.9)."""

    name = "a second look at u"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(max(p, 0.9 * q), q, ("accept", node))


class UnjudgedFromFourth(RejectionSampling):
    name = "the fourth token and later unjudged"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return super().accept(p, q, sampler, node) if node < 3 else (True, 0.0)


class ReusedCoin(RejectionSampling):
    """The coin of the last test serves as the random number of the draw that follows.

    As a distribution: given the answer, that coin is uniform on [p/q, 1] after a rejection and on [0, p/q] otherwise,
    so the draw by the inverse of the cumulative distribution reaches only that part of it.
    """

    name = "accept coin used again"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._coin = 0.0, 1.0
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        accepted, u = super().accept(p, q, sampler, node)
        ratio = min(1.0, p / q)
        self._coin = (0.0, ratio) if accepted else (ratio, 1.0)
        return accepted, u

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        low, high = self._coin
        upper = p.cumsum(0) / p.sum()
        lower = torch.cat([upper.new_zeros(1), upper[:-1]])
        reached = (upper.clamp(max=high) - lower.clamp(min=low)).clamp(min=0.0)
        return sampler.categorical(reached / reached.sum(), ("own", node))


class TokenResidualAfterBlock(BlockVerification):
    name = "block verification with the residual of one token"

    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return super().residual(1.0, p, q, token)


class OffByOneRow(RejectionSampling):
    name = "off-by-one row"

    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[min(node + 2, len(rows) - 1)]


class BonusFromDraft(RejectionSampling):
    name = "bonus from the draft"

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        if proposal.probs is not None and len(proposal) > 0 and node == len(proposal) - 1:
            p = proposal.probs[node]
        return sampler.categorical(p, ("own", node))


class OneCoin(RejectionSampling):
    """One uniform number for the whole block. As a distribution: keep the prefix whose smallest ratio exceeds u."""

    name = "one coin for the whole block"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._passed = 1.0
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        ratio = min(1.0, p / q)
        smallest = min(self._passed, ratio)
        accepted, u = sampler.accept(smallest, self._passed, ("accept", node))
        self._passed = smallest
        return accepted, u


class BonusAfterRejection(RejectionSampling):
    """Counts the resampled token as accepted: after a rejected *last* draft it still adds a bonus."""

    name = "bonus after a rejected last token"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        verdict = super().verify(proposal, rows, sampler)
        if len(proposal) == 0 or verdict.kind == "bonus" or len(verdict.path) != len(proposal) - 1:
            return verdict
        return replace(verdict, extra=(sampler.categorical(rows[-1], ("own", len(proposal))),))


class TopMatch(RejectionSampling):
    name = "accept the target's favourite"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        best = rows.argmax(-1).tolist()
        path: list[int] = []
        while len(path) < len(proposal) and proposal.tokens[len(path)] == best[len(path)]:
            path.append(len(path))
        kind: Kind = "bonus" if len(path) == len(proposal) else "resampled"
        return Verdict(tuple(path), sampler.categorical(rows[len(path)], ("own", len(path))), kind, ())


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


class Unwarped:
    """A target whose rows come out unwarped: its logits are scaled up by what the temperature divides by."""

    def __init__(self, model: LanguageModel[Any], params: SamplingParams) -> None:
        self._model, self._params = model, params
        self.vocabulary, self.context = model.vocabulary, model.context

    def new_cache(self, capacity: int) -> Cache:
        cache: Cache = self._model.new_cache(capacity)
        return cache

    def forward(self, tokens: Sequence[int], cache: Cache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        logits = self._model.forward(tokens, cache, parents, rows)
        return logits * (self._params.temperature or 1.0) if len(parents) > 0 else logits


def point_distribution(p: Tensor, q: Tensor | None, token: int) -> Tensor:
    if q is not None:
        return q
    point = torch.zeros_like(p)
    point[token] = 1.0
    return point


@dataclass(frozen=True)
class Mistake:
    """`apply` plants it in a task whose drafter is the shipped draft model."""

    key: str
    title: str
    met_in: str
    rule: Callable[[], Rule] | None = None
    drafter: Callable[[LanguageModel[Any]], Drafter] | None = None
    unwarped_target: bool = False
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
        if self.unwarped_target:
            changes["target"] = Unwarped(task.target, task.params)
        return replace(task, **changes)  # type: ignore[arg-type]


TUTORIAL = "the tutorial “Speculative Decoding: Faster Inference”"
GUARD = "guards against division by zero"
LETTERS = "swapped letters p and q between papers"
CATALOGUE = (
    Mistake("target_minus_target", "Subtract the target from itself", TUTORIAL, ResidualIsNothing),
    Mistake(
        "from_target", "Resample from the target, not the residual", "many first implementations", ResampleFromTarget
    ),
    Mistake(
        "extra_bonus", "Add a bonus after a rejected last token", TUTORIAL, BonusAfterRejection, first_token_shows=False
    ),
    Mistake("ratio_swapped", "Divide the draft by the target", LETTERS, SwappedRatio),
    Mistake("absolute", "Take |p − q| as the residual", "homework solutions", AbsoluteResidual),
    Mistake("residual_swapped", "Take max(0, q − p) as the residual", LETTERS, SwappedResidual),
    Mistake(
        "accept_all", "Accept everything", "demos that paint drafts green before they are checked", AcceptEverything
    ),
    Mistake(
        "draft_bonus",
        "Draw the bonus from the draft",
        "row mix-ups after full acceptance",
        BonusFromDraft,
        first_token_shows=False,
    ),
    Mistake("row_shift", "Judge against the next row", "openvino.genai issue 4190", OffByOneRow),
    Mistake(
        "one_coin", "One coin for the whole block", "batched verification kernels", OneCoin, first_token_shows=False
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
    Mistake("unwarped", "Warp the draft, not the target", "vLLM issue 10198", unwarped_target=True),
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
        ResidualKeepsToken,
        needs_point_mass=True,
    ),
    Mistake("residual_epsilon", "Add a little to the residual", GUARD, ResidualWithEpsilon),
    Mistake("residual_floor", "Clamp the residual from below", GUARD, ResidualWithFloor),
    Mistake("coarse_ratio", "Compare with a rounded q", "DeepSpec issue 31", CoarseRatio),
    Mistake("lenient", "Accept a little more than allowed", "lenient and ensemble acceptance modes", Lenient),
    Mistake("ratio_epsilon", "Add a little to the ratio", GUARD, RatioWithEpsilon),
    Mistake(
        "top_match",
        "Accept on a top-1 match while sampling",
        "explanations that describe greedy matching only",
        TopMatch,
    ),
    Mistake("typical", "Typical acceptance", "Medusa's default above temperature 0", TypicalAcceptance),
    Mistake("looks_at_u", "Look at u a second time", "verifiers that handle u themselves", LooksAtU),
    Mistake(
        "unjudged_fourth",
        "Leave the fourth token and later unjudged",
        "code that was tested with short drafts only",
        UnjudgedFromFourth,
        first_token_shows=False,
        least_k=4,
    ),
    Mistake("reused_coin", "Use the accept coin again", "samplers that draw one u for each position", ReusedCoin),
    Mistake(
        "block_residual",
        "Block verification with the residual of one token",
        "block verification written from the rule for single tokens",
        TokenResidualAfterBlock,
        first_token_shows=False,
        least_k=2,
    ),
)
MISTAKES = {mistake.key: mistake for mistake in CATALOGUE}
