"""Prove that a rule is lossless on toy models, by walking every random path.

`specdec prove` proves the shipped loop under any of its rules. `specdec prove my_verify.py` judges a file that defines
`verify(tokens, p, q, sampler)`: `tokens` are the K drafted ids; `p` [K + 1, V] and `q` [K, V] are the target's and the
draft's probabilities (float64). `verify` returns the accepted tokens and exactly one more. All randomness must come
from `sampler.categorical(probs, key)` and `sampler.accept(p, q, key) -> (accepted, u)`, with any key. `verify` cannot
read u: the sampler has already compared it with p / q.
"""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor
from tqdm import tqdm

from ..messages import Refused
from ..rules import make_rule, RULES
from ..sampling import Sampler
from ..types import Kind, Proposal, Verdict
from ..verify import Rule
from .cycles import CycleCase, DENSE, distance, groups, SOME
from .enumeration import output_distribution, TooManyPaths, total_variation
from .toys import Case, cases, deep_loops, PARAMS, run_loop, shipped_error

EXACT = 1e-12  # larger than the float64 rounding errors over a few thousand paths
PATHS = 100  # toys with more paths are left out, so that a proof takes about a minute
LOOPS = ((3, 1, 1), (3, 2, 2), (3, 2, 3), (2, 3, 3), (2, 3, 4), (5, 2, 2))  # V, K, length: loops for a user's verifier


class HiddenCoin:
    """Stands for the number u of a coin. It has no value, because one path stands for all u with the same outcome."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError("u cannot be read: sampler.accept has already compared it with p/q, so use `accepted`")

    __bool__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __hash__ = _refuse  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse


class HidesCoins(Sampler):
    def __init__(self, inner: Sampler) -> None:
        self._inner = inner

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        return self._inner.categorical(probs, key)

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, Any]:
        return self._inner.accept(p, q, key)[0], HiddenCoin()

    def at(self, place: int) -> None:
        self._inner.at(place)


class UserRule(Rule):
    """A verifier from a user's file, run by the shipped loop."""

    lossless = True

    def __init__(self, verify: Callable[[list[int], Tensor, Tensor, Sampler], Sequence[int]], name: str) -> None:
        self._verify, self.name = verify, name

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        if not proposal.tokens:
            return Verdict((), sampler.categorical(rows[0], ("own", -1)), "bonus", ())
        q = proposal.distributions(rows)
        out = [int(token) for token in self._verify(list(proposal.tokens), rows, q, HidesCoins(sampler))]
        if not out:
            raise ValueError("verify returned no token")
        accepted = 0
        while accepted < min(len(out) - 1, len(proposal)) and out[accepted] == proposal.tokens[accepted]:
            accepted += 1
        kind: Kind = "bonus" if accepted == len(proposal) else "resampled"
        return Verdict(tuple(range(accepted)), out[accepted], kind, (), tuple(out[accepted + 1 :]))


def judge(path: Path) -> int:
    """Print how far a verifier's output distribution is from the target's. Return 0 if it is lossless, else 1.

    Raises Refused if the file cannot be judged.
    """
    rule, worst = UserRule(load(path), path.name), 0.0
    print(f"{'V':>2} {'K':>2} {'length':>6} {'temperature':>11} {'paths':>7}  exact total variation")
    try:
        for line, tv in judge_chains(rule):
            print(f"{line}  {tv:.3g}", flush=True)
            worst = max(worst, tv)
    except TooManyPaths as error:
        raise Refused(f"{path.name} asks for too many random numbers to walk every path: {error}") from error
    except (Exception, SystemExit) as error:
        raise Refused(f"{path.name} raised {type(error).__name__}: {error}") from error
    verdict = "lossless" if worst <= EXACT else "NOT lossless"
    print(f"{path.name}: {verdict}; largest total variation {worst:.3g}")
    print(describe_scope(loops_of_chains(), groups(trees=False)))
    return 0 if worst <= EXACT else 1


def loops_of_chains() -> list[Case]:
    """Return the loops on which a verifier is judged. Some are greedy or have top-k or top-p, so that p has zeros."""
    warps = (PARAMS[0], PARAMS[1], PARAMS[4], PARAMS[5])
    loops = [Case(*shape, params, seed=seed) for seed, (shape, params) in enumerate(product(LOOPS, warps))]
    return loops + deep_loops("block")[::4]  # those made for block verification are all chains


def judge_chains(rule: Rule) -> Iterator[tuple[str, float]]:
    """Judge a rule for chains. Yield a line and the total variation for each loop and each group of single cycles.

    Loops cover several cycles in a row; single cycles cover deep drafts and large vocabularies.
    """
    for case in loops_of_chains():
        distribution, count = output_distribution(run_loop(partial(case.task, rule)))
        line = f"{case.vocabulary:>2} {case.k:>2} {case.length:>6} {case.params.temperature:>11} {count:>7}"
        yield line, total_variation(distribution, case.exact_distribution())
    for name, error, count in single_cycles(rule, groups(trees=False)):
        yield f"single cycles ({name}): {count:,} paths", error


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


def load(path: Path) -> Callable[[list[int], Tensor, Tensor, Sampler], Sequence[int]]:
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


def prove_rule(rule: str = "rejection") -> int:
    """Prove the shipped rule of this key in `RULES`; print the result. Return 0 if it is lossless, else 1."""
    loops, cycle_groups = [*cases(rule), *deep_loops(rule)], groups(RULES[rule].trees)
    proved, total, worst = list[Case](), 0, 0.0
    for case in tqdm(loops, unit="toy", leave=False):
        with contextlib.suppress(TooManyPaths):
            if len(case.exact_distribution()) <= PATHS:  # each text has a path of its own, or several
                error, count = shipped_error(case, PATHS, rule)
                worst, total = max(worst, error), total + count
                proved.append(case)
    for name, error, count in single_cycles(make_rule(rule), cycle_groups):
        worst, total = max(worst, error), total + count
        print(f"single cycles ({name}): {count:,} random paths, largest total variation {error:.2g}", flush=True)
    print(
        f"{RULES[rule].name}: {len(proved)} toys and {sum(map(len, cycle_groups.values()))} cycles, "
        f"{total:,} random paths, largest total variation {worst:.2g} ({len(loops) - len(proved)} larger toys left out)"
    )
    print(describe_scope(proved, cycle_groups))
    return 0 if worst <= EXACT else 1


def single_cycles(rule: Rule, cycle_groups: dict[str, list[CycleCase]]) -> Iterator[tuple[str, float, int]]:
    """Yield each group's name, its largest total variation, and its number of random paths."""
    for name, cycles in cycle_groups.items():
        distances, counts = zip(*(distance(cycle, rule) for cycle in cycles), strict=True)
        yield name, max(distances), sum(counts)
