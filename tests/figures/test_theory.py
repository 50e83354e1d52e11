import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specdec.figures import stats
from specdec.figures.stats import Comparison
from specdec.traces.file import Trace
from specdec.ui.text import strings
from tests import nodejs, toyrun

ASSETS = Path(__file__).resolve().parents[2] / "assets"
HARDWARE = json.loads((ASSETS / "hardware.json").read_text(encoding="utf-8"))
MACHINES, MODELS = ({one["id"]: one for one in HARDWARE[kind]} for kind in ("machines", "models"))


def test_the_tutorials_example() -> None:
    """α = .8, K = 4, c = .1: 3.36 tokens for 1.4 passes; 3.06 if c is read as the cost of all four."""
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert speedup(0.8, 4, 0.1) == pytest.approx(2.401, abs=1e-3)
    assert speedup(0.8, 4, 0.1 / 4) == pytest.approx(3.056, abs=1e-3)


# Of the page alone: its scripts are held against these.


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens per cycle if each draft is accepted with probability α: (1 - α^(k+1)) / (1 - α), equation 1."""
    return float(k + 1) if alpha == 1.0 else (1.0 - alpha ** (k + 1)) / (1.0 - alpha)


def speedup(alpha: float, k: int, c: float, v: float = 1.0, o: float = 0.0) -> float:
    """The speed-up of theorem 3.8, generalised to any v and o: the paper has v = 1 and o = 0."""
    return expected_tokens(alpha, k) / (k * c + v + o)


def expected_accepted(alpha: float, k: int, kept: int = 0) -> float:
    """E_j by recursion: the drafts still to be kept after j = `kept` of k were. E_k = 0, E_j = α (1 + E_{j+1}).

    E_0 = α (1 - α^k) / (1 - α), one less than `expected_tokens`: the target's own token is missing.
    """
    further = 0.0
    for _ in range(k - kept):
        further = alpha * (1.0 + further)
    return further


def throughput(probability: float, n: int, draft_seconds: float, verify_seconds: float) -> float:
    """Tokens per second, (E_0 + 1) / (N T_s + T_v): N drafts of T_s seconds each, one check of T_v seconds."""
    return (expected_accepted(probability, n) + 1.0) / (n * draft_seconds + verify_seconds)


def accepted_distribution(alpha: float, k: int) -> list[float]:
    """The chance that 0, 1, … k drafts of a cycle are kept: α^n (1 - α), and α^k for all of them."""
    return [alpha**n * (1.0 - alpha) for n in range(k)] + [alpha**k]


def growing(v: float, at: int) -> Callable[[int], float]:
    """The cost of a check against its drafts: a straight line from 1 for none through v for `at` of them."""
    return lambda k: 1.0 + (v - 1.0) * k / at


def best_k(alpha: float, c: float, v: float | Callable[[int], float] = 1.0, o: float = 0.0, largest: int = 32) -> int:
    """The k with the greatest speed-up; 0 if speculation does not pay."""
    cost = v if callable(v) else lambda _: v
    best = max(range(1, largest + 1), key=lambda k: speedup(alpha, k, c, cost(k), o))
    return best if speedup(alpha, best, c, cost(best), o) > 1.0 else 0


def break_even(c: float, v: float = 1.0, o: float = 0.0) -> float:
    """The α above which one drafted token pays: 1 + α > c + v + o. For v = 1 and o = 0, corollary 3.9 has α > c."""
    return max(0.0, c + v + o - 1.0)


def test_closed_form_equals_the_recursion() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        assert expected_tokens(alpha, 5) == pytest.approx(1 + expected_accepted(alpha, 5))
        assert expected_accepted(alpha, 5, 2) == pytest.approx(alpha * (1 + expected_accepted(alpha, 5, 3)))
        assert expected_accepted(alpha, 5, 5) == 0


def test_the_chances_of_keeping_so_many_sum_to_one_and_have_the_expected_mean() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        chances = accepted_distribution(alpha, 4)
        assert len(chances) == 5 and sum(chances) == pytest.approx(1)
        assert sum(n * chance for n, chance in enumerate(chances)) == pytest.approx(expected_accepted(alpha, 4))


@pytest.mark.parametrize(("alpha", "c", "k"), [(0.6, 0.08, 3), (0.8, 0.08, 6), (0.8, 0.2, 4), (0.6, 0.78, 0)])
def test_best_k(alpha: float, c: float, k: int) -> None:
    assert best_k(alpha, c) == k


def test_a_check_that_grows_with_k_makes_the_best_draft_shorter() -> None:
    assert 0 < best_k(0.8, 0.1, growing(1.6, 3)) < best_k(0.8, 0.1, 1.6)


@pytest.mark.parametrize(("c", "v", "o"), [(0.1, 1.0, 0.0), (0.11, 1.3, 0.07), (0.0, 1.0, 0.0), (0.5, 1.8, 0.1)])
def test_one_draft_pays_from_the_break_even_on(c: float, v: float, o: float) -> None:
    alpha = break_even(c, v, o)
    if alpha <= 1:
        assert speedup(alpha, 1, c, v, o) == pytest.approx(1)
    else:
        assert speedup(1.0, 1, c, v, o) < 1
    assert break_even(c) == pytest.approx(c)  # checking is free


# The memory wall.


def test_every_constant_has_its_source() -> None:
    sources = strings("theory")["sources"]["machines"]
    assert [one["id"] for one in HARDWARE["machines"]] == list(sources) and all(sources.values()) and HARDWARE["read"]
    assert len(MACHINES) == 8 and len(MODELS) == 7


def worked() -> Iterator[dict[str, Any]]:
    """Wilson's interval, and numbers of the memory wall worked out by hand from hardware.json; the page quotes some.

    A pass over r rows at batch b and context n takes the longer of two times (Williams et al. 2009, CACM 52):
    reading (bytes of the weights it needs + b n cache bytes a token) / bandwidth, and computing
    b r (2 parameters + 4 layers heads head_dim n) / flops. The input table is looked up: neither read nor computed.
    """

    def case(name: str, *args: Any, want: Any) -> dict[str, Any]:
        by_id = MACHINES | MODELS
        return {"name": name, "args": [by_id[arg] if isinstance(arg, str) else arg for arg in args], "want": want}

    # Of 8 experts in 128 chosen by each of r rows, (120 / 128)^r are not read: 27.179e9 / 0.9375 parameters are theirs.
    experts = [30.221e9 - 27.179e9 / 0.9375 * 0.9375**rows for rows in (1, 5, 64, 320)]
    yield case("weightsRead", "llama70", 9, want=70.554e9 - 1.051e9)
    yield case("weightsRead", "qwen05", 9, want=0.494e9)
    yield case("weightsRead", "moe30", 5, want=experts[1])
    # Keys and values, of two bytes each: 2 x 32 layers x 8 heads x 128 x 2 bytes.
    yield case("cacheBytes", "llama8", 3, want=3 * 131_072)
    yield case("memoryBytes", "llama8", "llama1", 4, 2, 1000, want=[4.015e9, 0.618e9, 262_144_000, 65_536_000])
    yield case("passSeconds", "h200", "llama70", 16, 1, 1, 0, want=139.006e9 / 4.8e12)  # bound by reading
    yield case("passSeconds", "a100", "llama8", 16, 256, 5, 256, want=256 * 5 * (15.01e9 + 524_288 * 256) / 312e12)
    # flops x bytes of a parameter / (2 bandwidth) / batch
    yield case("freeRows", "h200", "llama8", 16, 1, 0, want=989e12 * 2 / 9.6e12)
    yield case("freeRows", "h200", "llama8", 4, 32, 0, want=989e12 * 0.5 / 9.6e12 / 32)
    yield case("wilson", 0, 0, want=[0, 1])
    yield case("wilson", 81, 263, want=[0.2552876130636696, 0.36621068405342155])


# The page's own formulas.


def formulas(rng: random.Random) -> Iterator[dict[str, Any]]:
    def case(name: str, *args: Any) -> dict[str, Any]:
        first, *rest = name.split("_")
        home = next(module for module in (stats, sys.modules[__name__]) if hasattr(module, name))
        want = getattr(home, name)(*args)
        return {"name": first + "".join(map(str.capitalize, rest)), "args": list(args), "want": want}

    for i in range(60):
        alpha = (0.0, 1.0)[i] if i < 2 else rng.random()
        k, c, v, o = rng.randint(1, 16), rng.random() * 0.5, 0.8 + rng.random() * 2, rng.random() * 0.3
        mean = rng.random() * 9 + 0.5
        yield case("expected_tokens", alpha, k)
        yield case("expected_accepted", alpha, k, rng.randint(0, k))
        yield case("accepted_distribution", alpha, k)
        yield case("throughput", alpha, k, c * 0.03, v * 0.03)
        yield case("speedup", alpha, k, c, v, o)
        yield case("accounted_speedup", mean, k, c, v, o, rng.random(), 1 + rng.random())
        yield case("best_k", alpha, c, v, o, 16)
        grown = case("best_k", alpha, c, growing(v, k), o, 16)
        yield {**grown, "args": [alpha, c, {"growing": [v, k]}, o, 16]}
        yield case("break_even", c, v, o)


def run_case(trace: Trace) -> dict[str, Any]:
    told = Comparison.from_events(trace.events)
    spec = told.speculative
    want = {
        "alpha": spec.alpha, "tau": spec.tau, "judgedAt": spec.judged_at, "acceptedAt": spec.accepted_at,
        "c": told.draft_cost, "v": told.verify_cost, "o": told.overhead, "share": len(spec.depths) / spec.cycles,
        "measured": told.measured_speedup, "accounted": told.accounted_speedup,
    }  # fmt: skip
    return {"log": trace.dumps(), "want": want}


def test_the_page_reckons_as_these_formulas_do(tmp_path) -> None:
    traces = [toyrun.trace(), toyrun.tree_trace(), *map(Trace.load, sorted((ASSETS / "traces").glob("*.jsonl")))]
    cases = {
        "formulas": list(formulas(random.Random(3))),
        "worked": list(worked()),
        "runs": [run_case(trace) for trace in traces],
    }
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    nodejs.check("python/theory.test.js", CASES=path)
