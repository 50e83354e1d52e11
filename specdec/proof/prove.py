"""Prove that a rule is lossless on toy models, by walking every random path.

`specdec prove` proves the shipped loop under any of its rules. `specdec prove my_verify.py` judges a file that defines
`verify(tokens, p, q, sampler)`: `tokens` are the K drafted ids; `p` [K + 1, V] and `q` [K, V] are the target's and the
draft's probabilities (float64). `verify` returns the accepted tokens and exactly one more. All randomness must come
from `sampler.categorical(probs, key)` and `sampler.accept(p, q, key)`, which is True with probability min(1, p / q).
Keys are any values.
"""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from tqdm import tqdm

from ..messages import Refused
from ..rules import make_rule, RULES
from ..sampling import Sampler
from ..types import Kind, Proposal, Verdict
from ..verify import Rule
from .cycles import CycleCase, DENSE, distance, groups, SOME
from .enumeration import output_distribution, TooManyPaths, total_variation
from .toys import Case, cases, deep_loops, run_loop

EXACT = 1e-12  # larger than the float64 rounding errors over a few thousand paths
PATHS = 100  # toys with more paths are left out, so that a proof takes about a minute


class UserSampler:
    """Draws for a user's verifier. It tells no coin's u, because one path stands for all u with the same outcome."""

    def __init__(self, inner: Sampler) -> None:
        self._inner = inner

    def categorical(self, probs: Tensor, key: Any) -> int:
        return self._inner.categorical(probs, key)

    def accept(self, p: float, q: float, key: Any) -> bool:
        return self._inner.accept(p, q, key)[0]


Verify = Callable[[list[int], Tensor, Tensor, UserSampler], Sequence[int]]


class UserRule(Rule):
    """A verifier from a user's file, run by the shipped loop."""

    lossless = True

    def __init__(self, verify: Verify, name: str) -> None:
        self._verify, self.name = verify, name

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        if not proposal.tokens:
            return Verdict((), sampler.categorical(rows[0], ("own", -1)), "bonus", ())
        q = proposal.distributions(rows)
        out = [int(token) for token in self._verify(list(proposal.tokens), rows, q, UserSampler(sampler))]
        if not out:
            raise ValueError("verify returned no token")
        accepted = 0
        while accepted < min(len(out) - 1, len(proposal)) and out[accepted] == proposal.tokens[accepted]:
            accepted += 1
        kind: Kind = "bonus" if accepted == len(proposal) else "resampled"
        return Verdict(tuple(range(accepted)), out[accepted], kind, (), tuple(out[accepted + 1 :]))


def judge(path: Path) -> int:
    """Prove a verifier; return 0 if it is lossless, else 1. Raises Refused if the file cannot be judged."""
    rule = UserRule(load(path), path.name)
    try:
        return prove(rule, "block")  # on chains, like block verification
    except TooManyPaths as error:
        raise Refused(f"{path.name} asks for too many random numbers to walk every path: {error}") from error
    except (Exception, SystemExit) as error:
        raise Refused(f"{path.name} raised {type(error).__name__}: {error}") from error


def describe_scope(loops: Sequence[Case], cycle_groups: dict[str, list[CycleCase]]) -> str:
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


def load(path: Path) -> Verify:
    """Load the function `verify` from a file. Raises Refused if there is none."""
    spec = importlib.util.spec_from_file_location("verifier", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise Refused(f"cannot read {path}: name a Python file that defines verify(tokens, p, q, sampler)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Refused(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    verify = getattr(module, "verify", None)
    if not callable(verify):
        raise Refused(f"{path} defines no function verify(tokens, p, q, sampler)")
    return verify  # type: ignore[no-any-return]


def prove_rule(key: str = "rejection") -> int:
    """Prove the shipped rule of this key in `RULES`; return 0 if it is lossless, else 1."""
    return prove(make_rule(key), key)


def prove(rule: Rule, key: str) -> int:
    """Walk every path of `rule` on the toys and cycles for rules like `RULES[key]`; print the result."""
    loops, cycle_groups = [*cases(key), *deep_loops(key)], groups(RULES[key].trees)
    proved, total, worst = list[Case](), 0, 0.0
    for case in tqdm(loops, unit="toy", leave=False):
        exact = case.exact_distribution()
        with contextlib.suppress(TooManyPaths):
            if len(exact) <= PATHS:  # each text has a path of its own, or several
                distribution, count = output_distribution(run_loop(partial(case.task, rule)), PATHS)
                worst, total = max(worst, total_variation(distribution, exact)), total + count
                proved.append(case)
    for name, error, count in single_cycles(rule, cycle_groups):
        worst, total = max(worst, error), total + count
        print(f"single cycles ({name}): {count:,} random paths, largest total variation {error:.2g}", flush=True)
    print(
        f"{rule.name}: {'lossless' if worst <= EXACT else 'NOT lossless'}. {len(proved)} toys and "
        f"{sum(map(len, cycle_groups.values()))} cycles, {total:,} random paths, largest total variation {worst:.2g} "
        f"({len(loops) - len(proved)} larger toys left out)"
    )
    print(describe_scope(proved, cycle_groups))
    return 0 if worst <= EXACT else 1


def single_cycles(rule: Rule, cycle_groups: dict[str, list[CycleCase]]) -> Iterator[tuple[str, float, int]]:
    """Yield each group's name, its largest total variation, and its number of random paths."""
    for name, cycles in cycle_groups.items():
        distances, counts = zip(*(distance(cycle, rule) for cycle in cycles), strict=True)
        yield name, max(distances), sum(counts)
