"""Known mistakes with a grammar, kept on purpose: they show only where a text follows one. The tests catch each.

What is *not* a mistake: to mask p alone (`TARGET_ALONE`). A draft from the whole law q, reported as that law, is judged
against the masked p like any other; what the grammar forbids has p = 0 and is rejected. The text keeps its law, and α
falls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..drafters.draft_model import DraftModelDrafter
from ..engine import Task
from ..grammar import Grammar, Guide
from ..models.base import LanguageModel
from ..sampling import Chooser, probabilities
from ..types import Proposal, SamplingParams
from .mistakes import Mistake
from .toys import Unmasked


class DraftAlone(Guide):
    """The drafter proposes what is allowed; the target's rows are left as they are."""

    def judging(self, logits: Tensor, proposal: Proposal) -> Tensor:
        return logits


class NotRolledBack(Guide):
    """The state walks along the draft, and stays at its end though a token was rejected. Where the state allows no
    token, it stays where it is.
    """

    def __init__(self, grammar: Grammar) -> None:
        super().__init__(grammar)
        self._ahead = self.state

    def judging(self, logits: Tensor, proposal: Proposal) -> Tensor:
        self._ahead = functools.reduce(self._next, proposal.tokens, self.state)
        return super().judging(logits, proposal)

    def take(self, token: int) -> None:
        self.state = self._next(self._ahead, token)

    def _next(self, state: int, token: int) -> int:
        return self.grammar.next(state, token) or state


class UnmaskedReport(DraftModelDrafter):
    """Draws from the masked law, reports the whole one: q is too small, so too much is kept."""

    def step(self, pending: list[int]) -> Tensor:
        self._logits = super().step(pending)
        return self._logits

    def draw(self, logits: Tensor, params: SamplingParams, chooser: Chooser, index: int) -> tuple[int, Tensor]:
        token = chooser.categorical(probabilities(logits, params)[0], ("draft", index))
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
