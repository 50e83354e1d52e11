"""Prove that a rule is lossless on toy models, by walking every random path.

`specdec prove` proves the shipped loop under any of its rules. `specdec prove my_verify.py` judges a file that defines
`verify(tokens, p, q, sampler)`: `tokens` are the K drafted ids; `p` [K + 1, V] and `q` [K, V] are the target's and the
draft's probabilities (float64). `verify` returns the accepted tokens and exactly one more. All randomness must come
from `sampler.categorical(probs, key)` and `sampler.accept(p, q, key)`, which is True with probability min(1, p / q).
Keys are any values.

Whole loops of `toys.py` are walked, and single cycles with deep drafts, large vocabularies or wide trees. Places are a
draft's levels, from 0. At `free` places, the rows of target and draft are random, and `KINDS` lists how they
differ. At `target_only` places, and after the draft, only the target's is. Elsewhere one token is certain.
"""

import contextlib
import functools
import math
import random
import runpy
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from ..messages import Refused
from ..models.base import common_prefix
from ..rules import make_rule, RULES
from ..sampling import Sampler
from ..types import Kind, Proposal, Verdict
from ..verify import Rule
from .enumeration import JointDistribution, output_distribution, paths, Tokens, TooManyPaths, total_variation
from .mistakes import LongVerdict
from .toys import cases, deep_loops, DEEPEST, drafted_tree, LoopCase, run_loop

MAX_VARIATION = 1e-12  # larger than the float64 rounding errors over a few thousand paths
MAX_LOOP_PATHS = 100  # toys with more paths are left out, so that a proof takes about a minute
MAX_CYCLE_PATHS = 100_000  # of a single cycle's draft, and of its verification
SparseRow = dict[int, float]  # token -> probability, without tokens of probability 0
Verify = Callable[[list[int], Tensor, Tensor, Any], Sequence[int]]  # what a user's file defines
KINDS = ("alike", "zeros", "ties", "far apart")  # of pairs of rows: how target and draft differ
SIZES = (100, 1_000, 32_000, 50_257, 65_537, 128_256, 151_936, 262_144)  # most are of published vocabularies
DENSE = 32  # in larger vocabularies, only `SOME` tokens have positive probability
SOME = 5


@dataclass(frozen=True)
class CycleCase:
    """A cycle whose draft has `k` levels of `width` siblings (a chain has one); for `how` see `toys.TreeDrafter`."""

    vocabulary: int
    k: int
    free: tuple[int, ...]
    kind: str = "alike"
    seed: int = 0
    width: int = 1
    how: str = "sampled"
    target_only: tuple[int, ...] = ()

    def dense(self, row: SparseRow) -> Tensor:
        """Convert a row to the probabilities of all tokens.  # [V]"""
        probs = torch.zeros(self.vocabulary, dtype=torch.float64)
        probs[list(row)] = torch.tensor(list(row.values()), dtype=torch.float64)
        return probs

    def propose(self, sampler: Sampler) -> Proposal:
        return drafted_tree(lambda text: self.dense(rows_after(self, text)[1]), self.k, self.width, self.how, sampler)

    def rows(self, proposal: Proposal) -> Tensor:
        """Return the target's rows after the text and after every node.  # [n + 1, V]"""
        texts: list[Tokens] = [()]
        for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
            texts.append((*texts[parent + 1], token))
        return torch.stack([self.dense(rows_after(self, text)[0]) for text in texts])


@functools.lru_cache(10_000)
def rows_after(cycle: CycleCase, text: Tokens) -> tuple[SparseRow, SparseRow]:
    """Return the rows p and q after a text, always the same ones for the same cycle and text."""
    rng, place, size = random.Random(f"{cycle.seed}:{text}"), len(text), cycle.vocabulary
    sure = {rng.randrange(size): 1.0}
    if place < cycle.k and place not in (*cycle.free, *cycle.target_only):
        return sure, sure
    tokens = list(range(size)) if size <= DENSE else rng.sample(range(size), SOME)
    p, q = (
        {token: weight / math.fsum(weights) for token, weight in zip(tokens, weights, strict=True) if weight}
        for weights in weights_of_pair(cycle.kind, len(tokens), rng)
    )
    return p, q if place in cycle.free else sure


def weights_of_pair(kind: str, size: int, rng: random.Random) -> tuple[list[float], list[float]]:
    """Draw random weights of `size` tokens for target and draft. `KINDS` lists how the two can differ."""
    if kind == "far apart":
        p, q = ([2.0 ** rng.uniform(-35.0, 0.0) for _ in range(size)] for _ in range(2))
        return p, q
    p = [math.exp(rng.gauss(0.0, 1.2)) for _ in range(size)]
    if kind == "ties":  # all tokens except two have exactly the same probability in target and draft
        q = list(p)
        a, b = rng.sample(range(size), 2)
        q[a], q[b] = q[b], q[a]
        return p, q
    q = [weight**0.6 * math.exp(rng.gauss(0.0, 0.75)) for weight in p]
    if kind == "zeros":
        a, b = rng.sample(range(size), 2)
        p[a] = q[b] = 0.0
    return p, q


def distance(cycle: CycleCase, rule: Rule) -> tuple[float, int]:
    """Return the total variation of a cycle's output, completed to K + 2 tokens, from the target's, and its paths."""
    distribution, count = defaultdict[Tokens, float](float), 0
    for proposal, chance in paths(cycle.propose, MAX_CYCLE_PATHS):
        verify = functools.partial(rule.verify, proposal, cycle.rows(proposal))
        for verdict, p in paths(verify, MAX_CYCLE_PATHS):
            distribution[tuple(verdict.emitted(proposal)[: cycle.k + 2])] += chance * p
            count += 1
    return completed_distance(cycle, distribution), count


def completed_distance(cycle: CycleCase, distribution: JointDistribution) -> float:
    """Compute the total variation for `distance`. Completed texts that leave the others at one place are one term."""
    length, next_tokens = cycle.k + 2, dict[Tokens, set[int]]()
    for text in distribution:
        for place, token in enumerate(text):
            next_tokens.setdefault(text[:place], set()).add(token)
    total = 0.0
    unfinished: list[tuple[Tokens, float, float]] = [((), distribution.get((), 0.0), 1.0)]
    while unfinished:
        text, emitted, exact = unfinished.pop()
        row, tokens = rows_after(cycle, text)[0] if len(text) < length else {}, next_tokens.get(text, set())
        rest = max(0.0, 1.0 - math.fsum(row.get(token, 0.0) for token in tokens))
        total += abs(emitted - exact) * rest
        for token in tokens:
            longer, chance = (*text, token), row.get(token, 0.0)
            unfinished.append((longer, emitted * chance + distribution.get(longer, 0.0), exact * chance))
    return 1.0 if math.isnan(total) else total / 2.0


def groups(trees: bool) -> dict[str, list[CycleCase]]:
    """Return the cycles to enumerate, in groups by name."""
    depths = range(1, DEEPEST + 1)
    k_and_place = [(k, at) for k in depths for at in range(k)]
    rng = random.Random(7)
    shapes = ((3, 2), (3, 3), (3, 4), (2, 4), (2, 5), (2, 6))
    chains = {
        "chains of up to six, every place free": [
            CycleCase(size, k, tuple(range(k)), kind, k) for (size, k), kind in product(shapes, ("alike", "zeros"))
        ],
        "every depth, each pair of neighbouring places free": [
            CycleCase(3, k, (at, at + 1), KINDS[number % len(KINDS)], number)
            for number, (k, at) in enumerate(k_and_place)
        ],
        "every depth, up to eight places where the target is random": [
            CycleCase(size, k, places[:free_count], KINDS[k % len(KINDS)], k, target_only=places)
            for k, (size, free_count) in product(depths, ((2, 4), (4, 2)))
            for places in [tuple(rng.sample(range(k), min(k, 8)))]
        ],
        "every depth, point masses": [
            CycleCase(4, k, (), seed=k, how="top", target_only=(k // 2, k - 1)) for k in depths
        ],
        "vocabularies": [
            CycleCase(size, 2 if size <= 8 else 1, (0, 1), kind, size)
            for size, kind in product((4, 5, 6, 7, 8, 16, DENSE), KINDS)
        ]
        + [CycleCase(size, 2, (0,), kind, size) for size, kind in zip(SIZES, 2 * KINDS, strict=True)],
    }
    return chains | tree_groups() if trees else chains


def tree_groups() -> dict[str, list[CycleCase]]:
    depths, hows = range(1, DEEPEST + 1), ("sampled", "without replacement", "top")
    return {
        "trees, four siblings": [CycleCase(5, 1, (0,), kind, 1, 4, how) for kind in KINDS for how in hows],
        "trees of every depth": [CycleCase(4, k, (k - 1,), KINDS[k % len(KINDS)], k, 3, hows[k % 3]) for k in depths],
        "trees, siblings at two successive levels": [
            CycleCase(3, k, (k - 2, k - 1), kind, k, 2, how) for k in (2, 5) for kind in KINDS for how in hows[1:]
        ],
        "trees of large vocabularies": [
            CycleCase(size, 1, (0,), "alike", size, 2, how) for size in (SIZES[0], SIZES[-1]) for how in hows[1:]
        ],
        "trees, three siblings at each place": [
            CycleCase(4, DEEPEST, (at,), KINDS[at % len(KINDS)], at, 3, how) for at in range(DEEPEST) for how in hows
        ],
    }


class UserRule(Rule):
    """A verifier from a user's file, run by the shipped loop."""

    lossless = True

    def __init__(self, verify: Verify, name: str) -> None:
        self._verify, self.name = verify, name

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        if not proposal.tokens:
            return Verdict((), sampler.categorical(rows[0], ("own", 0)), "bonus", ())
        # It tells no coin's u, because one path stands for all u with the same outcome.
        draws = SimpleNamespace(categorical=sampler.categorical, accept=lambda p, q, key: sampler.accept(p, q, key)[0])
        out = [int(token) for token in self._verify(list(proposal.tokens), rows, proposal.distributions(rows), draws)]
        if not out:
            raise ValueError("verify returned no token")
        accepted = common_prefix(out[:-1], proposal.tokens)
        kind: Kind = "bonus" if accepted == len(proposal) else "resampled"
        return LongVerdict(tuple(range(accepted)), out[accepted], kind, (), extra=tuple(out[accepted + 1 :]))


def prove_verifier(path: Path) -> int:
    """Prove a verifier; return 0 if it is lossless, else 1. Raises Refused if the file cannot be judged."""
    rule = UserRule(load_verifier(path), path.name)
    try:
        return prove("block", rule)  # on chains, like block verification
    except TooManyPaths as error:
        raise Refused(f"{path.name} asks for too many random numbers to walk every path: {error}") from error
    except (Exception, SystemExit) as error:
        raise Refused(f"{path.name} raised {type(error).__name__}: {error}") from error


def describe_scope(loops: Sequence[LoopCase], cycle_groups: dict[str, list[CycleCase]]) -> str:
    all_free = [case for case in loops if case.free is None]
    cycles = [cycle for group in cycle_groups.values() for cycle in group]
    k, size = max(case.k for case in all_free), max(case.vocabulary for case in all_free)
    deepest, largest = max(cycle.k for cycle in cycles), max(cycle.vocabulary for cycle in cycles)
    return (
        "Every random path was walked; nothing was sampled. The proof covers:\n"
        f"  whole loops: V up to {size} with K up to {k}; K up to {max(case.k for case in loops)} where all but two "
        "places of the text allow one token only\n"
        f"  single cycles: K up to {deepest} where all except a few places are certain; V up to {DENSE}, and up to "
        f"{largest:,} where only {SOME} tokens have a probability above 0"
    )


def load_verifier(path: Path) -> Verify:
    """Load the function `verify` from a file. Raises Refused if there is none."""
    if not path.is_file():
        raise Refused(f"cannot read {path}: name a Python file that defines verify(tokens, p, q, sampler)")
    try:
        verify = runpy.run_path(str(path), run_name="verifier").get("verify")
    except (Exception, SystemExit) as error:
        raise Refused(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(verify):
        raise Refused(f"{path} defines no function verify(tokens, p, q, sampler)")
    return verify  # type: ignore[no-any-return]


def prove(key: str = "rejection", rule: Rule | None = None) -> int:
    """Walk every path of this shipped rule, or of `rule`, and print the result. Return 0 if it is lossless, else 1."""
    rule = rule or make_rule(key)
    loops, cycle_groups = [*cases(key), *deep_loops(key)], groups(RULES[key].trees)
    proved, total, worst = list[LoopCase](), 0, 0.0
    for case in tqdm(loops, unit="toy", leave=False):
        exact = case.exact_distribution()
        with contextlib.suppress(TooManyPaths):
            if len(exact) <= MAX_LOOP_PATHS:  # each text has a path of its own, or several
                distribution, count = output_distribution(run_loop(functools.partial(case.task, rule)), MAX_LOOP_PATHS)
                worst, total = max(worst, total_variation(distribution, exact)), total + count
                proved.append(case)
    for name, cycles in cycle_groups.items():
        errors, counts = zip(*(distance(cycle, rule) for cycle in cycles), strict=True)
        worst, total = max(worst, *errors), total + sum(counts)
        summary = f"{sum(counts):,} random paths, largest total variation {max(errors):.2g}"
        print(f"single cycles ({name}): {summary}", flush=True)
    print(
        f"{rule.name}: {'lossless' if worst <= MAX_VARIATION else 'NOT lossless'}. {len(proved)} toys and "
        f"{sum(map(len, cycle_groups.values()))} cycles, {total:,} random paths, largest total variation {worst:.2g} "
        f"({len(loops) - len(proved)} larger toys left out)"
    )
    print(describe_scope(proved, cycle_groups))
    return 0 if worst <= MAX_VARIATION else 1
