"""Every way to judge a draft, by name: rejection sampling (`verify.py`), and four others on the same draft.

Greedy decoding needs no rule: where p is one-hot, each rule keeps exactly the target's likeliest tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from .sampling import block_chance, entropy, residual, Sampler, SharedNoiseSampler
from .types import Kind, Proposal, Trial, TYPICAL_DELTA, TYPICAL_EPSILON, Verdict
from .verify import RejectionSampling, Rule


class SampleAndMatch(Rule):
    """The target draws its own token at every node; a child is kept while it is that very token.

    The text is the target's samples and nothing else, so it is lossless for any drafter, and q is not needed: what
    engines do that are not told it. A token drawn from q is kept with probability Σ p·q, one that was chosen outright
    with p(x); rejection sampling keeps Σ min(p, q) and p(x). "Naive sampling" in SpecInfer (arXiv 2305.09781, 4.3).
    """

    name = "sample and match"
    lossless = True

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        node, path = -1, list[int]()
        while True:
            token = sampler.categorical(rows[node + 1], ("own", len(path) - 1))
            same = [child for child in proposal.children(node) if proposal.tokens[child] == token]
            if not same:
                return without_coins(proposal, rows, path, token)
            node = same[0]
            path.append(node)


class SharedNoise(SampleAndMatch):
    """Sample and match, where drafter and target draw with the same Gumbel noise (`SharedNoiseSampler`).

    On a chain a token is kept with probability Σ_x 1 / Σ_y max(p_y/p_x, q_y/q_x), at least (1 - TV) / (1 + TV):
    Daliri, Musco and Suresh 2024 (arXiv 2408.07978). The text is token for token that of plain decoding with this
    seed, for any drafter and any K.
    """

    name = "shared noise"

    def sampler(self, seed: int) -> Sampler:
        return SharedNoiseSampler(seed)


class BlockVerification(Rule):
    """Judges the draft as one block: never fewer tokens kept in expectation than token by token.

    Sun et al. 2024 (arXiv 2403.10444), for chains. A prefix of i tokens has weight w_0 = 1,
    w_i = min(1, w_{i-1} p/q), and is long enough with probability h_i; the longest such prefix is kept. After it
    the target draws from max(0, w_i p - q), normalised.
    """

    name = "block verification"
    lossless = True
    trees = False

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        n, tokens = len(proposal), proposal.tokens
        if not proposal.is_chain:
            raise ValueError("Block verification judges chains only, and this draft is a tree. Choose another rule.")
        distributions = proposal.distributions(rows)
        p = [float(rows[i, token]) for i, token in enumerate(tokens)]
        q = [float(distributions[i, token]) for i, token in enumerate(tokens)]
        weights = [1.0]
        for p_x, q_x in zip(p, q, strict=True):
            weights.append(self.weight(weights[-1], p_x, q_x))
        h = [self.enough(weights[i], rows[i], distributions[i]) for i in range(1, n)] + weights[n:]
        # The longest that passes its coin is accepted, so coins are tossed from the end until one succeeds.
        length, coins = n, dict[int, float]()
        while length > 0:
            passed, coins[length - 1] = sampler.accept(h[length - 1], 1.0, ("accept", length - 1))
            if passed:
                break
            length -= 1
        if length == n:
            distribution = rows[n]
        else:
            distribution = self.residual(weights[length], rows[length], distributions[length], tokens[length])
        kind: Kind = "bonus" if length == n else "resampled"
        trials = (Trial(i, tokens[i], p[i], q[i], coins.get(i), i < length, h[i]) for i in range(n))
        token = sampler.categorical(distribution, ("own", length - 1))
        return Verdict(tuple(range(length)), token, kind, tuple(trials), distribution=distribution)

    def weight(self, before: float, p: float, q: float) -> float:
        return min(1.0, before * p / q)

    def enough(self, weight: float, p: Tensor, q: Tensor) -> float:
        return block_chance(weight, p, q)

    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return residual(weight * p, q, token)


class TypicalAcceptance(Rule):
    """Keeps what the target finds plausible: p(x) ≥ min(ε, δ·exp(-H(p))); of a tree the longest such path.

    Medusa, Cai et al. 2024 (arXiv 2401.10774). Lossy: the text no longer follows the target's distribution.
    """

    name = "typical acceptance"
    lossless = False
    epsilon, delta = TYPICAL_EPSILON, TYPICAL_DELTA

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        plausible = [-1]
        for node, parent in enumerate(proposal.parents):
            if parent in plausible and self.plausible(proposal, rows, node):
                plausible.append(node)
        last = max(plausible, key=proposal.depth)
        path = proposal.tree.path(last)
        return without_coins(proposal, rows, path, sampler.categorical(rows[last + 1], ("own", len(path) - 1)))

    def plausible(self, proposal: Proposal, rows: Tensor, node: int) -> bool:
        p = rows[proposal.parents[node] + 1]
        return float(p[proposal.tokens[node]]) >= min(self.epsilon, self.delta * math.exp(-entropy(p)))


def without_coins(proposal: Proposal, rows: Tensor, path: Sequence[int], token: int) -> Verdict:
    """The path was accepted; the children at its end, if any, were rejected; `token` is from the target's row."""
    last = path[-1] if path else -1
    trials = []
    for node, (drafted, parent) in enumerate(zip(proposal.tokens, proposal.parents, strict=True)):
        if node in path or parent == last:
            q = 1.0 if proposal.probs is None else float(proposal.probs[node, drafted])
            trials.append(Trial(node, drafted, float(rows[parent + 1, drafted]), q, None, node in path))
    kind: Kind = "resampled" if proposal.children(last) else "bonus"
    return Verdict(tuple(path), token, kind, tuple(trials))


RULES: dict[str, type[Rule]] = {
    "rejection": RejectionSampling,
    "match": SampleAndMatch,
    "shared_noise": SharedNoise,
    "block": BlockVerification,
    "typical": TypicalAcceptance,
}


def named(key: str) -> Rule:
    """ValueError names the choices."""
    if key not in RULES:
        raise ValueError(f"there is no rule {key!r}; choose from {', '.join(RULES)}")
    return RULES[key]()
