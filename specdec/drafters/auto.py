"""The method, too, is chosen in every cycle: who drafts next, and how deep, by expected tokens a plain step.

A bandit whose arms are (method, K), plain decoding among them. An arm is worth the tokens that its cycle is expected
to give over what that cycle costs (Leviathan et al., section 3). BanditSpec (arXiv 2505.15141) and MetaSD (2604.05417)
have such arms, too. Acceptance is learned by depth from the text, and fades: of a method that was not used for long
little is known, and the benefit of the doubt makes it tried again (discounted UCB; Garivier and Moulines, arXiv
0805.3415). A chosen model drafts until it is unsure (`stop.py`).

It chooses by the committed text alone, draws nothing, and never drops a token that was drawn, so the output law is
untouched. Copies are no draws: those of all copying methods are looked at in every cycle, and the text tells what each
would have been worth, chosen or not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..models.base import common_prefix
from ..sampling import Chooser
from ..types import Costs, Proposal, SamplingParams
from .base import ChainDrafter, Drafter
from .stop import Rate, Stop

MEMORY = 0.97  # of evidence, a judged token: texts change
IDLE = 0.97  # and a cycle: who was not asked for long may have become better
PRIOR, WEIGHT = 0.75, 2.0  # a model's acceptance before anything was seen, and how many tokens' evidence that is
DOUBT = 1.0  # standard errors of benefit, for drafts that cost something to try
PATIENCE = 0.75  # with a draft: replayed with 1.0, the bench's prompts are drafted too briefly
CAUTION = 0.5  # the same against copies: they are judged whether chosen or not, so nothing is learned by a trial
STAY = 8  # cycles over which the cost of catching up is spread: who is chosen is rarely chosen once


class Acceptance:
    """The share of drafted tokens that is kept, by depth. Depths with little evidence lean on the others."""

    def __init__(self, prior: float) -> None:
        self.prior = prior
        self.kept: defaultdict[int, float] = defaultdict(float)
        self.seen: defaultdict[int, float] = defaultdict(float)
        self.weight = 1.0  # of what is in these sums; what joins them weighs more instead

    def add(self, kept: int, judged: int) -> None:
        """Of a draft whose first tokens were judged: how many were kept."""
        self.fade(MEMORY**judged)
        for depth in range(judged):
            self.kept[depth] += (depth < kept) / self.weight
            self.seen[depth] += 1.0 / self.weight

    def fade(self, memory: float) -> None:
        self.weight *= memory

    def expected(self, k: int, doubt: float = 0.0) -> list[float]:
        """Tokens of a cycle by the depth of its draft, `doubt` standard errors above what was seen."""
        prior = WEIGHT / self.weight
        seen = sum(self.seen.values()) + prior
        mean = (sum(self.kept.values()) + prior * self.prior) / seen
        mean = min(1.0, max(0.0, mean + doubt * math.sqrt(mean * (1.0 - mean) / (seen * self.weight))))
        tokens, total, chance = list[float](), 1.0, 1.0
        for depth in range(k):
            chance *= (self.kept[depth] + prior * mean) / (self.seen[depth] + prior)
            total += chance
            tokens.append(total)
        return tokens


@dataclass(eq=False)
class Arm:
    """A method. One that `copies` drafts from the text alone, without a draw, and costs nothing to ask."""

    drafter: Drafter
    costs: Costs
    copies: bool = False
    read: int = 0  # tokens of the text when it was last asked
    stop: Stop | None = None  # ends its drafts where they are unsure, if it drafts token by token
    shares: dict[int, Acceptance] = field(default_factory=dict)

    def share(self, length: int) -> Acceptance:
        """What is known of drafts of that length.

        A copy is twice as long as the text agrees with itself, and two tokens more: after n tokens that held, the next
        one does with a chance of (n + 1)/(n + 2), by the rule of succession. For a model its length does not matter.
        """
        kind = length.bit_length() if self.copies else 0
        if kind not in self.shares:
            agreed = max(1, (length - 2) // 2)
            self.shares[kind] = Acceptance((agreed + 1) / (agreed + 2) if self.copies else PRIOR)
        return self.shares[kind]

    def best(self, k: int, missed: int) -> tuple[float, int]:
        """Tokens a plain step, with the benefit of the doubt, at the depth that is best without it; and that depth.

        `missed` tokens are still to be read.
        """
        share, behind = self.share(k), self.costs.catch_up * missed / STAY
        costs = [self.costs.cycle(depth) + behind for depth in range(1, k + 1)]
        rates = [tokens / cost for tokens, cost in zip(share.expected(k), costs, strict=True)]
        if not rates:
            return 0.0, 0
        best = max(range(k), key=rates.__getitem__)
        doubt = -CAUTION if self.copies else DOUBT
        return share.expected(best + 1, doubt)[best] / costs[best], best + 1


class AutoDrafter:
    """Chooses among `arms`, which draft chains. `k` is the most that any may draft; a proposal names its drafter."""

    name = "auto"

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.arms = list(arms)
        self.rate = Rate()
        for arm in self.arms:
            if isinstance(arm.drafter, ChainDrafter):
                arm.drafter.enough = arm.stop = Stop(self.rate, PATIENCE)
        self._length = 0  # of the text, when it was last asked
        self._drafts: dict[Arm, Proposal] = {}  # the draft of then, and the copies beside it
        self._cost = 0.0  # of the cycle since, as far as it is known

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        before = self._length
        self._learn(tokens)
        if k == 0:  # whoever reads the prompt does so now
            for arm in self.arms:
                arm.costs = arm.costs.at(params.temperature)
                arm.drafter.propose(tokens, 0, params, chooser)
                arm.read = len(tokens)
            return Proposal()
        self._cost = 1.0
        self._drafts = {arm: arm.drafter.propose(tokens, k, params, chooser) for arm in self.arms if arm.copies}
        best, chosen, depth = 1.0, None, 0  # plain decoding's rate: its step is the unit
        for arm in self.arms:
            most = len(self._drafts[arm]) if arm.copies else k
            rate, deep = arm.best(most, max(0, before - arm.read))
            if rate > best:
                best, chosen, depth = rate, arm, deep
        if chosen is None:
            return Proposal()
        if chosen.copies:
            draft = Proposal.chain(list(self._drafts[chosen].tokens[:depth]))
        else:
            draft = self._drafts[chosen] = self._asked(chosen, tokens, k if chosen.stop else depth, params, chooser)
        self._cost = chosen.costs.cycle(len(draft))
        return replace(draft, drafter=chosen.drafter.name)

    def _asked(self, arm: Arm, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        arm.read = len(tokens)
        if arm.stop is not None:
            arm.stop.begin(k, arm.costs)
        try:
            return arm.drafter.propose(tokens, k, params, chooser)
        except Exception:
            self.arms.remove(arm)  # the loop tells what broke, and the others go on
            raise

    def _learn(self, tokens: Sequence[int]) -> None:
        """What the text kept of the last draft, and what it would have kept of the copies beside it."""
        grown = tokens[self._length :]
        for arm in self.arms:
            for share in arm.shares.values():
                share.fade(IDLE)
        for arm, draft in self._drafts.items():
            kept = common_prefix(draft.tokens, grown)
            judged = min(kept + 1, len(draft), len(grown))
            arm.share(len(draft)).add(kept, judged)
            if arm.stop is not None:
                arm.stop.learn(kept, judged)
        if self._cost:
            self.rate.add(len(grown), self._cost)
        self._length, self._drafts, self._cost = len(tokens), {}, 0.0
