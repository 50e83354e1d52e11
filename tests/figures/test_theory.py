from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nodejs
import pytest
import toyrun

from specdec.figures import theory
from specdec.figures.stats import Comparison
from specdec.figures.theory import best_k, break_even, expected_tokens, speedup
from specdec.traces.file import Trace
from specdec.ui.text import strings
from tools import roofline

ASSETS = Path(__file__).resolve().parents[2] / "assets"
HARDWARE = json.loads((ASSETS / "hardware.json").read_text(encoding="utf-8"))
SHAPE = ("layers", "heads", "kv_heads", "head_dim", "experts", "chosen")
MACHINES = {
    one["id"]: roofline.Machine(one["tflops"] * 1e12, one["gbps"] * 1e9, one["mib"] * 2**20)
    for one in HARDWARE["machines"]
}
MODELS = {
    one["id"]: roofline.Model(
        one["parameters"] * 1e9,
        one.get("active", one["parameters"]) * 1e9,
        **{name: one[name] for name in SHAPE if name in one},
        embedding=one.get("embedding", 0.0) * 1e9,
    )
    for one in HARDWARE["models"]
}


def test_the_tutorials_example() -> None:
    """α = .8, K = 4, c = .1: 3.36 tokens for 1.4 passes; 3.06 if c is read as the cost of all four."""
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert speedup(0.8, 4, 0.1) == pytest.approx(2.401, abs=1e-3)
    assert speedup(0.8, 4, 0.1 / 4) == pytest.approx(3.056, abs=1e-3)


# Of the page alone: its scripts are held against these.


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


def test_closed_form_equals_the_recursion() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        assert expected_tokens(alpha, 5) == pytest.approx(1 + expected_accepted(alpha, 5))
        assert expected_accepted(alpha, 5, 2) == pytest.approx(alpha * (1 + expected_accepted(alpha, 5, 3)))
        assert expected_accepted(alpha, 5, 5) == 0


def test_the_chances_of_keeping_so_many_sum_to_one_and_have_the_expected_mean() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        chances = theory.accepted_distribution(alpha, 4)
        assert len(chances) == 5 and sum(chances) == pytest.approx(1)
        assert sum(n * chance for n, chance in enumerate(chances)) == pytest.approx(expected_accepted(alpha, 4))


def test_throughput_over_plain_decoding_is_the_speedup() -> None:
    step = 0.03
    assert throughput(0.8, 4, 0.1 * step, step) * step == pytest.approx(speedup(0.8, 4, 0.1))


def test_expected_tokens_is_what_coins_give() -> None:
    rng = random.Random(0)
    total = 0
    for _ in range(20_000):
        kept = 0
        while kept < 4 and rng.random() < 0.6:
            kept += 1
        total += kept + 1
    assert total / 20_000 == pytest.approx(expected_tokens(0.6, 4), abs=0.03)


@pytest.mark.parametrize(("alpha", "c", "k"), [(0.6, 0.08, 3), (0.8, 0.08, 6), (0.8, 0.2, 4), (0.6, 0.78, 0)])
def test_best_k(alpha: float, c: float, k: int) -> None:
    assert best_k(alpha, c) == k


def test_a_check_that_grows_with_k_makes_the_best_draft_shorter() -> None:
    grows = theory.growing(1.6, 3)
    assert grows(0) == 1 and grows(3) == pytest.approx(1.6) and grows(6) == pytest.approx(2.2)
    assert 0 < best_k(0.8, 0.1, grows) < best_k(0.8, 0.1, 1.6)


def test_speculation_pays_only_if_acceptance_beats_cost() -> None:
    for alpha in (0.2, 0.5, 0.8):
        assert best_k(alpha, c=alpha + 0.01) == 0
        assert best_k(alpha, c=alpha - 0.05) > 0


@pytest.mark.parametrize(("c", "v", "o"), [(0.1, 1.0, 0.0), (0.11, 1.3, 0.07), (0.0, 1.0, 0.0), (0.5, 1.8, 0.1)])
def test_one_draft_pays_from_the_break_even_on(c: float, v: float, o: float) -> None:
    alpha = break_even(c, v, o)
    if alpha <= 1:
        assert speedup(alpha, 1, c, v, o) == pytest.approx(1)
    else:
        assert speedup(1.0, 1, c, v, o) < 1
    assert break_even(c) == pytest.approx(c)  # checking is free


def test_bad_alpha_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        expected_tokens(1.1, 4)


def test_wilsons_interval() -> None:
    assert theory.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert theory.wilson(0, 0) == (0.0, 1.0)
    assert theory.wilson(10, 10)[1] == 1.0 and theory.wilson(0, 10)[0] == 0.0


# The memory wall.


def test_every_constant_has_its_source() -> None:
    sources = strings("theory")["sources"]["machines"]
    assert [one["id"] for one in HARDWARE["machines"]] == list(sources) and all(sources.values()) and HARDWARE["read"]
    assert len(MACHINES) == 8 and len(MODELS) == 7


def test_a_70b_target_reads_139_of_its_141_gb_for_every_token() -> None:
    """Its table of input embeddings, 128,256 × 8,192, is looked up, not read; the H200 keeps some room beside it."""
    model, machine = MODELS["llama70"], MACHINES["h200"]
    assert model.parameters * 2 == pytest.approx(141.1e9, rel=1e-3)
    seconds = roofline.pass_seconds(machine, model, 16, 1, 1, 0)
    assert seconds * machine.bandwidth == pytest.approx(model.parameters * 2 - 2 * 128_256 * 8192, rel=1e-4)
    assert 5e9 < machine.memory - model.parameters * 2 < 15e9


def test_computing_leaves_the_input_embeddings_out() -> None:
    model = MODELS["llama8"]
    read = model.parameters - model.embedding
    bare = replace(model, parameters=read, active=read, embedding=0.0)
    assert model.embedding / model.parameters == pytest.approx(0.065, abs=1e-3)
    times = [roofline.computing_seconds(MACHINES["h100"], one, 64, 9, 0) for one in (model, bare)]
    assert times[0] == pytest.approx(times[1])


def test_rows_are_free_until_computing_takes_as_long_as_reading() -> None:
    machine, model = MACHINES["h200"], MODELS["llama8"]
    free = roofline.free_rows(machine, model, 16, 1, 0)
    assert free == pytest.approx(machine.flops * 2 / (2 * machine.bandwidth))  # 206
    step = roofline.pass_seconds(machine, model, 16, 1, 1, 0)
    assert roofline.pass_seconds(machine, model, 16, 1, free * 0.99, 0) == step
    assert roofline.pass_seconds(machine, model, 16, 1, free * 2, 0) == pytest.approx(2 * step)
    assert roofline.free_rows(machine, model, 16, 32, 0) == pytest.approx(free / 32)
    assert roofline.free_rows(machine, model, 4, 1, 0) == pytest.approx(free / 4)  # read faster, computed no faster


def test_a_mixture_wakes_its_active_part_for_one_row_and_all_of_it_for_many() -> None:
    model = MODELS["moe30"]
    assert roofline.weights_read(model, 1) == pytest.approx(model.active - model.embedding)
    assert roofline.weights_read(model, 2) > 1.5 * roofline.weights_read(model, 1)
    assert roofline.weights_read(model, 5000) == pytest.approx(model.parameters - model.embedding)
    assert roofline.weights_read(MODELS["llama8"], 1) == MODELS["llama8"].parameters - MODELS["llama8"].embedding
    assert roofline.weights_read(MODELS["qwen05"], 1) == MODELS["qwen05"].parameters  # its table is the output matrix


def test_with_experts_the_gain_is_not_monotone_in_the_batch() -> None:
    """A small batch wakes further experts with each row, a large one has woken them all (arXiv 2505.19645)."""

    def gains(machine: str, draft: str, alpha: float, k: int, context: int) -> list[float]:
        pair = MACHINES[machine], MODELS["moe30"], MODELS[draft]
        return [roofline.batch_speedup(*pair, 16, alpha, k, batch, context) for batch in batches]

    batches = [2 ** (i / 8) for i in range(73)]
    large = gains("h100", "llama1", 0.8, 4, 512)
    (wins,) = roofline.crossings(large)
    assert large[0] < 0.8 and 4 < batches[wins] < 5 and max(large) > 2.7 > 2.3 > large[-1] > 1
    small = gains("cpu", "qwen05", 0.5, 1, 256)
    wins, loses = roofline.crossings(small)
    assert small[wins] >= 1 > small[loses]
    assert roofline.crossings([2.0, 1.0, 0.9, 0.5, 1.2]) == [2, 4] and roofline.crossings([1.5, 1.0]) == []


def gains(
    target: roofline.Model, draft: str, context: int, read: int | None = None, machine: str = "a100"
) -> list[float]:
    """At α = .8 and K = 4, for batches of 1, 2, 4, … 512."""
    pair = MACHINES[machine], target, MODELS[draft]
    return [roofline.batch_speedup(*pair, 16, 0.8, 4, 2**i, context, read) for i in range(10)]


def test_with_long_texts_the_gain_stays_and_with_a_windowed_draft_it_grows() -> None:
    """arXiv 2408.11049: the target’s caches bound its pass; a draft that reads little of its own costs ever less."""
    llama = MODELS["llama8"]
    short, long, windowed = (
        gains(llama, "llama1", context, read) for context, read in ((512, None), (32_768, None), (32_768, 512))
    )
    assert windowed == sorted(windowed) and windowed[-1] > 1.4 * windowed[0]
    assert long == sorted(long, reverse=True) and long[-1] > 1.5 > 1 > short[-1]
    assert gains(llama, "llama1", 256, 512) == gains(llama, "llama1", 256)  # a window is never longer than the text


# The page's own formulas.


def formulas(rng: random.Random) -> Iterator[dict[str, Any]]:
    def case(name: str, *args: Any) -> dict[str, Any]:
        first, *rest = name.split("_")
        plain = [asdict(arg) if isinstance(arg, roofline.Machine | roofline.Model) else arg for arg in args]
        home = next(known for known in (roofline, theory, sys.modules[__name__]) if hasattr(known, name))
        want = getattr(home, name)(*args)
        return {"name": first + "".join(map(str.capitalize, rest)), "args": plain, "want": want}

    for i in range(60):
        alpha = (0.0, 1.0)[i] if i < 2 else rng.random()
        k, c, v, o = rng.randint(1, 16), rng.random() * 0.5, 0.8 + rng.random() * 2, rng.random() * 0.3
        alphas, mean = [rng.random() for _ in range(rng.randint(0, 8))], rng.random() * 9 + 0.5
        machine, target, draft = (rng.choice(list(those.values())) for those in (MACHINES, MODELS, MODELS))
        bits, batch, context = rng.choice((4, 8, 16)), 2 ** rng.randint(0, 9), 2 ** rng.randint(8, 17)
        judged = rng.randint(0, 90)
        yield case("expected_tokens", alpha, k)
        yield case("expected_accepted", alpha, k, rng.randint(0, k))
        yield case("accepted_distribution", alpha, k)
        yield case("throughput", alpha, k, c * 0.03, v * 0.03)
        yield case("tokens_by_position", alphas, mean)
        yield case("speedup", alpha, k, c, v, o)
        yield case("accounted_speedup", mean, k, c, v, o, rng.random(), 1 + rng.random())
        yield case("best_k", alpha, c, v, o, 16)
        grown = case("best_k", alpha, c, theory.growing(v, k), o, 16)
        yield {**grown, "args": [alpha, c, {"growing": [v, k]}, o, 16]}
        yield case("break_even", c, v, o)
        yield case("wilson", rng.randint(0, judged), judged)
        yield case("weights_read", target, batch)
        yield case("cache_bytes", target, context)
        yield case("pass_seconds", machine, target, bits, batch, k + 1, context)
        yield case("free_rows", machine, target, bits, batch, context)
        yield case("batch_speedup", machine, target, draft, bits, alpha, k, batch, context)
        yield case("batch_speedup", machine, target, draft, bits, alpha, k, batch, context, 512)
        yield case("batch_rates", machine, target, draft, bits, alpha, k, batch, context)
        yield case("memory_bytes", target, draft, bits, batch, context)
        yield case("crossings", [0.6 + rng.random() for _ in range(judged)])


def run_case(trace: Trace) -> dict[str, Any]:
    told = Comparison.of(trace.events)
    spec = told.speculative
    want = {
        "alpha": spec.alpha, "tau": spec.tau, "judgedAt": spec.judged_at, "acceptedAt": spec.accepted_at,
        "c": told.draft_cost, "v": told.verify_cost, "o": told.overhead, "share": spec.drafting_cycles / spec.cycles,
        "measured": told.measured_speedup, "accounted": told.accounted_speedup,
    }  # fmt: skip
    return {"log": trace.dumps(), "want": want}


def test_the_page_reckons_as_these_formulas_do(tmp_path: Path) -> None:
    from specdec.ui.tabs.theory import measurements

    traces = [toyrun.trace(), toyrun.tree_trace(), *map(Trace.load, sorted((ASSETS / "traces").glob("*.jsonl")))]
    cases = {
        "formulas": list(formulas(random.Random(3))),
        "runs": [run_case(trace) for trace in traces],
        "reports": [report for report in measurements() if report["rows"]],
    }
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    nodejs.check("python/theory.test.js", CASES=path)
