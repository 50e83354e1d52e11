"""The method, too, is chosen in every cycle: who drafts next, and how deep, by expected tokens a plain step.

A bandit whose arms are (method, K), plain decoding among them. An arm is worth the tokens that its cycle is expected
to give over what that cycle costs (Leviathan et al., section 3). BanditSpec (arXiv 2505.15141) and MetaSD (2604.05417)
have such arms, too. Acceptance is learned from the text, and fades: of a method that was not used for long little is
known, and the benefit of the doubt makes it tried again (discounted UCB; Garivier and Moulines, arXiv 0805.3415). A
chosen model drafts until it is unsure (`stop.py`).

It chooses by the committed text alone, draws nothing, and never drops a token that was drawn, so the output
distribution is untouched. Copies are no draws: those of all copying methods are looked at in every cycle, and the text
tells what each would have been worth, chosen or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..models.base import common_prefix
from ..sampling import Sampler
from ..types import Costs, Proposal, SamplingParams
from .base import ChainDrafter, Drafter
from .stop import DraftLengthController, Rate, Share

IDLE = 0.97  # of evidence, a cycle: one not used for a while may have become better
PRIOR, WEIGHT = 0.75, 1.0  # a model's acceptance before anything was seen, and how many tokens' evidence that is
COPIED = 2.0  # how many tokens' evidence the prior of a copy is; its length tells its share
DOUBT = 0.5  # standard errors of benefit, for drafts that cost something to try
PATIENCE = 0.7  # with a draft: replayed with 1.0, the bench's prompts are drafted too briefly
EXPECTED = 1.3  # tokens a plain step, before any was seen
STAY = 8  # cycles over which the cost of catching up is spread: who is chosen is rarely chosen once


@dataclass(eq=False)
class Arm:
    """A method. One that `copies` drafts from the text alone, without a draw, and costs nothing to ask."""

    drafter: Drafter
    costs: Costs
    copies: bool = False
    read: int = 0  # tokens of the text when it was last asked
    stop: DraftLengthController | None = None  # ends its drafts where they are unsure, if it drafts token by token
    shares: dict[int, Share] = field(default_factory=dict)

    def kind(self, length: int) -> int:
        """Drafts of one kind are kept alike: copies of about the same length; whatever the length, those of a model."""
        return length.bit_length() if self.copies else 0

    def share(self, length: int) -> Share:
        """What is kept of drafts of that length.

        A copy is twice as long as the text agrees with itself, and two tokens more: after n tokens that held, the next
        one does with a chance of (n + 1)/(n + 2), by the rule of succession.
        """
        kind = self.kind(length)
        if kind not in self.shares:
            agreed = max(1, (length - 2) // 2)
            prior = ((agreed + 1) / (agreed + 2), COPIED) if self.copies else (PRIOR, WEIGHT)
            self.shares[kind] = Share(*prior)
        return self.shares[kind]

    def best(self, most: int, missed: int, doubt: float) -> tuple[float, int]:
        """Tokens a plain step, `doubt` standard errors above what was seen, at the depth that is best; and that depth.

        A draft has at most `most` tokens, and `missed` tokens are still to be read. A copy is right or wrong as a
        whole: the more of it was kept, the likelier is the next token.
        """
        share, costs, behind = self.share(most), self.costs.cycles(most), self.costs.catch_up * missed / STAY
        best, depth, tokens, survival, chance = 0.0, 0, 1.0, 1.0, share.value
        for deeper in range(1, most + 1):
            survival *= chance
            tokens += survival
            if self.copies:
                chance = share.after(deeper)
            if tokens > best * (costs[deeper] + behind):
                best, depth = tokens / (costs[deeper] + behind), deeper
        if doubt and depth:
            chance = share.doubted(doubt)
            best = sum(chance**n for n in range(depth + 1)) / (costs[depth] + behind)
        return best, depth


class AutoDrafter:
    """Chooses among `arms`, which draft chains. `k` is the most that any may draft; a proposal names its drafter."""

    name = "auto"

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.arms = list(arms)
        self.rate = Rate(expected=EXPECTED)
        for arm in self.arms:
            if isinstance(arm.drafter, ChainDrafter):
                arm.drafter.should_stop = arm.stop = DraftLengthController(self.rate, PATIENCE)
        self._length = 0  # of the text, when it was last asked
        self._drafts: dict[Arm, Proposal] = {}  # the draft of then, and the copies beside it
        self._cost = 0.0  # of the cycle since

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if k == 0:  # whoever reads the prompt does so now
            for arm in self.arms:
                arm.costs = arm.costs.at(params.temperature)
                arm.drafter.propose(tokens, 0, params, sampler)
                arm.read = len(tokens)
            return Proposal()
        before = self._length
        self._learn(tokens)
        self._cost = 1.0
        self._drafts = {arm: arm.drafter.propose(tokens, k, params, sampler) for arm in self.arms if arm.copies}
        best, chosen, depth = 1.0, None, 0  # plain decoding's rate: its step is the unit
        for arm in self.arms:
            most = len(self._drafts[arm]) if arm.copies else k
            if not most:
                continue
            rate, deep = arm.best(most, max(0, before - arm.read), 0.0 if arm.copies else DOUBT)
            if rate > best:
                best, chosen, depth = rate, arm, deep
        if chosen is None:
            return Proposal()
        if chosen.copies:
            draft = Proposal.chain(list(self._drafts[chosen].tokens[:depth]))
        else:
            draft = self._drafts[chosen] = self._asked(chosen, tokens, k if chosen.stop else depth, params, sampler)
        self._cost = chosen.costs.cycle(len(draft))
        return replace(draft, drafter=chosen.drafter.name)

    def _asked(self, arm: Arm, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        arm.read = len(tokens)
        if arm.stop is not None:
            arm.stop.begin(arm.costs.cycles(k))
        try:
            return arm.drafter.propose(tokens, k, params, sampler)
        except Exception:
            self.arms.remove(arm)  # the loop tells what broke, and the others go on
            raise

    def _learn(self, tokens: Sequence[int]) -> None:
        """What the text kept of the last draft, and what it would have kept of the copies beside it."""
        grown = tokens[self._length :]
        for arm in self.arms:
            if draft := self._drafts.get(arm):
                kept = common_prefix(draft.tokens, grown)
                judged = min(kept + 1, len(draft), len(grown))
                arm.share(len(draft)).add(kept, judged)
                if arm.stop is not None:
                    arm.stop.learn(kept, judged)
            elif not arm.copies:
                arm.share(0).forget(IDLE)
        if self._cost:
            self.rate.add(len(grown), self._cost)
        self._length, self._drafts, self._cost = len(tokens), {}, 0.0
