"""The verification rules by name: rejection sampling (`verify.py`) and four others.

Under greedy decoding all rules agree: p is one-hot, and each accepts exactly the target's likeliest tokens.
"""

import math
from collections.abc import Sequence

from torch import Tensor

from .methods import RULE_FACTS, rule_facts
from .sampling import block_chance, entropy, residual, Sampler, SharedNoiseSampler
from .types import is_chain, Kind, Proposal, Trial, TYPICAL_DELTA, TYPICAL_EPSILON, Verdict
from .verify import RejectionSampling, Rule


class SampleAndMatch(Rule, facts=RULE_FACTS["match"]):
    """Samples the target's token after each accepted prefix, and accepts a drafted token that equals it.

    The text consists only of the target's samples, so the rule is lossless for any drafter and does not need q. It
    accepts a token drawn from q with probability Σ p·q; rejection sampling accepts it with Σ min(p, q). SpecInfer
    (arXiv 2305.09781, section 4.3) calls this rule naive sampling.
    """

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        node, path = -1, list[int]()
        while True:
            token = sampler.categorical(rows[node + 1], ("own", len(path)))
            matching = [child for child in proposal.tree.children(node) if proposal.tokens[child] == token]
            if not matching:
                return verdict_without_coins(proposal, rows, path, token)
            node = matching[0]
            path.append(node)


class SharedNoise(SampleAndMatch, facts=RULE_FACTS["shared_noise"]):
    """Sample and match, where drafter and target draw with the same Gumbel noise (`SharedNoiseSampler`).

    On a chain, the chance of acceptance is Σ_x [1 / Σ_y max(p_y/p_x, q_y/q_x)]. It is at least (1 - TV) / (1 + TV),
    where TV is the total variation of p and q (Daliri, Musco and Suresh 2024, arXiv 2408.07978). For any drafter and
    any K, the text is token for token the one that plain decoding gives with the same seed.
    """

    def sampler(self, seed: int) -> Sampler:
        return SharedNoiseSampler(seed)


class BlockVerification(Rule, facts=RULE_FACTS["block"]):
    """Judges a chain as one block. In expectation it accepts at least as many tokens as rejection sampling.

    From Sun et al. 2024 (arXiv 2403.10444). The first i of n drafted tokens have the weight w_i = min(1, w_{i-1} p/q),
    with w_0 = 1, and pass with probability h_i: h_n is w_n, and for i < n, h_i is `block_chance`. The longest prefix
    that passes, of i tokens, is accepted. The next token is drawn from norm(max(0, w_i p - q)), or from p if i = n.
    """

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        n, tokens = len(proposal), proposal.tokens
        if not is_chain(proposal.parents):
            raise ValueError("Block verification judges chains only, and this draft is a tree. Choose another rule.")
        distributions, (weights, chances) = proposal.distributions(rows), self.weigh(proposal, rows)
        p, q = (probs[range(n), tokens].tolist() for probs in (rows, distributions))
        length, coins = n, dict[int, float]()
        while length > 0:
            passed, coins[length - 1] = sampler.accept(chances[length - 1], 1.0, ("accept", length - 1))
            if passed:
                break
            length -= 1
        if length == n:
            distribution = rows[n]
        else:
            distribution = self.residual(weights[length], rows[length], distributions[length], tokens[length])
        kind: Kind = "bonus" if length == n else "resampled"
        trials = (Trial(i, tokens[i], p[i], q[i], coins.get(i), i < length, chances[i]) for i in range(n))
        token = sampler.categorical(distribution, ("own", length))
        return Verdict(tuple(range(length)), token, kind, tuple(trials), distribution, tuple(weights[:n]))

    def weigh(self, proposal: Proposal, rows: Tensor) -> tuple[list[float], list[float]]:
        """Return the weights w_0 … w_n of a chain's beginnings, and their chances h_1 … h_n."""
        n, weights, distributions = len(proposal), [1.0], proposal.distributions(rows)
        for i, token in enumerate(proposal.tokens):
            weights.append(min(1.0, weights[i] * float(rows[i, token]) / float(distributions[i, token])))
        return weights, [self.pass_chance(weights[i], rows[i], distributions[i]) for i in range(1, n)] + weights[n:]

    def pass_chance(self, weight: float, p: Tensor, q: Tensor) -> float:
        return block_chance(weight, p, q)

    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return residual(weight * p, q, token)


class TypicalAcceptance(Rule, facts=RULE_FACTS["typical"]):
    """Accepts the longest path whose tokens x are all plausible: p(x) ≥ min(ε, δ·exp(-H(p))).

    From Medusa, Cai et al. 2024 (arXiv 2401.10774). Lossy: the text does not follow the target's distribution.
    """

    epsilon, delta = TYPICAL_EPSILON, TYPICAL_DELTA

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        plausible = [-1]
        for node, parent in enumerate(proposal.parents):
            if parent in plausible and self.is_plausible(proposal, rows, node):
                plausible.append(node)
        last = max(plausible, key=proposal.tree.depth)
        path = proposal.tree.path(last)
        token = sampler.categorical(rows[last + 1], ("own", len(path)))
        return verdict_without_coins(proposal, rows, path, token)

    def is_plausible(self, proposal: Proposal, rows: Tensor, node: int) -> bool:
        p = rows[proposal.parents[node] + 1]
        return float(p[proposal.tokens[node]]) >= min(self.epsilon, self.delta * math.exp(-entropy(p)))


def verdict_without_coins(proposal: Proposal, rows: Tensor, path: Sequence[int], token: int) -> Verdict:
    """Make the verdict of a rule without coins: `path` is accepted, and the children of its last node are rejected.

    `token` is the target's own token, drawn from its row after the path.
    """
    last = path[-1] if path else -1
    trials = []
    for node, (drafted, parent) in enumerate(zip(proposal.tokens, proposal.parents, strict=True)):
        if node in path or parent == last:
            p = float(rows[parent + 1, drafted])
            trials.append(Trial(node, drafted, p, proposal.q_of(node), None, node in path))
    kind: Kind = "resampled" if proposal.tree.children(last) else "bonus"
    return Verdict(tuple(path), token, kind, tuple(trials))


RULES: dict[str, type[Rule]] = {
    "rejection": RejectionSampling,
    "match": SampleAndMatch,
    "shared_noise": SharedNoise,
    "block": BlockVerification,
    "typical": TypicalAcceptance,
}


def make_rule(key: str) -> Rule:
    """Make the rule of this key. Raises Refused as `rule_facts` does."""
    rule_facts(key)
    return RULES[key]()
