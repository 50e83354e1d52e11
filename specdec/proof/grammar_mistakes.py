"""Known mistakes with a grammar, kept on purpose: they show only where a text follows one. The tests catch each.

What is *not* a mistake: to mask p alone (`TARGET_ALONE`). A draft from the whole distribution q, reported as that
distribution, is judged against the masked p like any other; what the grammar forbids has p = 0 and is rejected. The
text keeps its distribution, and α falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..drafters.draft_model import DraftModelDrafter
from ..engine import Task
from ..grammar import Grammar, Guide
from ..models.base import LanguageModel
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from .mistakes import Mistake
from .toys import Unmasked


class DraftAlone(Guide):
    """The drafter proposes what is allowed; the target's rows are left as they are."""

    def mask_target(self, logits: Tensor, proposal: Proposal) -> Tensor:
        return logits


class NotRolledBack(Guide):
    """The state walks along the draft, and stays at its end though a token was rejected. Where the state allows no
    token, it stays where it is.
    """

    _ahead: tuple[int, ...] = ()

    def mask_target(self, logits: Tensor, proposal: Proposal) -> Tensor:
        rows = super().mask_target(logits, proposal)
        self._ahead = self._walked(self.tokens, proposal.tokens)
        return rows

    def advance(self, token: int) -> None:
        at = Guide(self.grammar, self._walked(self._ahead, (token,)))
        self.tokens, self._matcher, self._read = at.tokens, at._matcher, at._read

    def _walked(self, text: tuple[int, ...], tokens: Sequence[int]) -> tuple[int, ...]:
        for token in tokens:
            allowed = Guide(self.grammar, text).allowed()
            text = (*text, token) if allowed is not None and allowed[token] else text
        return text


class UnmaskedReport(DraftModelDrafter):
    """Draws from the masked distribution, reports the whole one: q is too small, so too much is kept."""

    def step(self, pending: list[int]) -> Tensor:
        self._logits = super().step(pending)
        return self._logits

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor]:
        token = sampler.categorical(probabilities(logits, params)[0], ("draft", index))
        return token, probabilities(self._logits, params)[0]


@dataclass(frozen=True)
class GrammarMistake(Mistake):
    guide: Callable[[Grammar], Guide] | None = None

    def apply(self, task: Task, draft: LanguageModel[Any]) -> Task:
        task = super().apply(task, draft)
        if self.guide and task.guide:
            task.guide = self.guide(task.guide.grammar)
        return task


GRAMMAR_MISTAKES = {
    mistake.key: mistake
    for mistake in (
        GrammarMistake(
            "grammar_draft_only", "Mask the draft, not the target", "a grammar given to the drafter alone",
            guide=DraftAlone,
        ),
        GrammarMistake(
            "grammar_unmasked_report", "Draw from the masked q, report the whole", "q kept from before the mask",
            drafter=UnmaskedReport,
        ),
        GrammarMistake(
            "grammar_not_rolled_back", "Leave the grammar at the end of a rejected draft",
            "grammar matchers that advance with each draft", guide=NotRolledBack,
        ),
    )
}  # fmt: skip
TARGET_ALONE = GrammarMistake(
    "grammar_target_only", "Mask the target, not the draft", "drafters that know no grammar", drafter=Unmasked,
    harmless=True,
)  # fmt: skip
PLANTED = GRAMMAR_MISTAKES | {TARGET_ALONE.key: TARGET_ALONE}
