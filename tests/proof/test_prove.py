"""Test the command `prove` on the shipped loop and on users' verifiers, which are right, or wrong in rare cases."""

from pathlib import Path

import pytest

from specdec.proof import enumeration, prove, toys
from specdec.proof.mistakes import MISTAKES
from specdec.proof.prove import CycleCase, distance, groups, load_verifier, MAX_VARIATION, UserRule
from specdec.rules import RULES

RIGHT = """
def verify(tokens, p, q, sampler):
    out = []
    for i, token in enumerate(tokens):
        if not sampler.accept(float(p[i, token]), float(q[i, token]), i):
            left = (p[i] - q[i]).clamp(min=0)
            return out + [sampler.categorical(left / left.sum(), i)]
        out.append(token)
    return out + [sampler.categorical(p[len(tokens)], "bonus")]
"""


def written(tmp_path, source: str) -> Path:
    path = tmp_path / "my_verify.py"
    path.write_text(source)
    return path


def few(trees: bool) -> dict[str, list[CycleCase]]:
    return {name: group[-1:] for name, group in groups(trees).items()}


@pytest.fixture
def some(monkeypatch) -> None:
    monkeypatch.setattr(prove, "cases", lambda rule: toys.cases(rule)[::9])
    monkeypatch.setattr(prove, "deep_loops", lambda rule: toys.deep_loops(rule)[::9])
    monkeypatch.setattr(prove, "groups", few)
    monkeypatch.setattr(prove, "MAX_LOOP_PATHS", 12)


def test_a_right_verifier_is_lossless_and_a_lossy_one_is_not(tmp_path, capsys, some) -> None:
    assert prove.prove_verifier(written(tmp_path, RIGHT)) == 0
    out = capsys.readouterr().out
    assert "my_verify.py: lossless. " in out and "K up to 16" in out
    assert "single cycles: K up to 16" in out and "V up to 32, and up to 262,144" in out
    assert prove.prove_verifier(written(tmp_path, RIGHT.replace("left / left.sum()", "p[i]"))) == 1
    assert "my_verify.py: NOT lossless" in capsys.readouterr().out


def test_a_verifier_with_too_many_paths_is_refused(tmp_path, some, monkeypatch) -> None:
    monkeypatch.setattr(prove, "MAX_CYCLE_PATHS", 100)
    source = "def verify(tokens, p, q, sampler):\n    return [sampler.categorical(p[0], 0) for _ in range(40)]"
    with pytest.raises(ValueError, match="asks for too many random numbers"):
        prove.prove_verifier(written(tmp_path, source))


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("x = 1", "defines no function verify"),
        ("def verify(tokens, p, q, sampler):\n    return 1 / 0", "ZeroDivisionError"),
        ("def verify(tokens, p, q, sampler)\n    return tokens", "cannot be run: SyntaxError"),
        ("import nothing_of_this_name", "cannot be run: ModuleNotFoundError"),
        ("def verify(tokens, p, q, sampler):\n    exit()", "SystemExit"),
    ],
)
def test_a_file_that_cannot_be_judged_says_why(tmp_path, source: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        prove.prove_verifier(written(tmp_path, source))


JUDGE, BONUS = "        if not sampler.accept(float(p[i, token]), float(q[i, token]), i):", "p[len(tokens)]"
LEFT, NORMAL, P, Q = "(p[i] - q[i]).clamp(min=0)", "left / left.sum()", "float(p[i, token])", "float(q[i, token])"
K, V = "len(tokens)", "p.shape[1]"
WRONG: dict[str, tuple[str, str]] = {
    **{f"draft {n + 1} and later are not judged": (JUDGE, f"{JUDGE[:-1]} and i < {n}:") for n in (1, 3, 15)},
    "draft 7 alone is not judged": (JUDGE, f"{JUDGE[:-1]} and i != 6:"),
    **{f"from the target where V >= {n}": (NORMAL, f"p[i] if {V} >= {n} else {NORMAL}") for n in (4, 100, 200_000)},
    "the last token's residual is not normalised": (NORMAL, f"(left if i == {K} - 1 else left / left.sum())"),
    "the residual one place too early from the eighth on": (LEFT, "(p[i - (i > 6)] - q[i - (i > 6)]).clamp(min=0)"),
    "the residual of the next draft": (LEFT, f"(p[i] - q[min(i + 1, {K} - 1)]).clamp(min=0)"),
    "the bonus of sixteen drafts one row too early": (BONUS, f"p[{K} - ({K} == 16)]"),
    "the bonus of nine drafts from the draft": (BONUS, f"(q[-1] if {K} == 9 else p[{K}])"),
    "a tie is rejected": (P, f"({P} if {P} != {Q} else 0.0)"),
    "what the target excludes is kept": (JUDGE, f"{JUDGE[:-1]} and p[i, token] > 0:"),
    "what the draft excludes is never resampled": (LEFT, f"({LEFT} * (q[i] > 0) + 1e-300)"),
    "the ratio in float32": (P, f"float(p[i, token].float() / q[i, token].float()) * {Q}"),
    "a small ratio is none": (P, f"({P} if {P} > 1e-6 * {Q} else 0.0)"),
    "a large ratio is cut at the wrong place": (P, f"({P} if {P} < 1e6 * {Q} else 0.999 * {Q})"),
    "the residual of the twenty likeliest": (LEFT, f"{LEFT} * (p[i] >= p[i].topk(min(20, {V})).values[-1])"),
    "ids of 17 bits where one is resampled": (f"({NORMAL}, i)", f"({NORMAL}, i) % 131072"),
    "the bonus twice after ten": ('"bonus")]', '"bonus")] * (1 + (len(tokens) == 10))'),
    "a token too many after a rejection": (f"({NORMAL}, i)]", f"({NORMAL}, i), 0]"),
    "a tenth of a per cent too lenient": (P, f"1.001 * {P}"),
}
COINS_FIRST = """
def verify(tokens, p, q, sampler):
    coins = [sampler.accept(float(p[i, t]), float(q[i, t]), i) for i, t in enumerate(tokens)]
    n = coins.index(False) if False in coins else len(tokens)
    left = (p[n] - q[n]).clamp(min=0) if n < len(tokens) else p[n]
    return [*tokens[:n], sampler.categorical(left / left.sum(), n)]
"""
MATCHES = """
def verify(tokens, p, q, sampler):
    out = []
    for i, row in enumerate(p):
        out.append(sampler.categorical(row, i))
        if i == len(tokens) or out[-1] != tokens[i]:
            return out
"""
SEVEN = RIGHT.replace("enumerate(tokens)", "enumerate(tokens[:7])").replace(BONUS, "p[min(7, len(tokens))]")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name == "the residual of the twenty likeliest" else ())
        for name in WRONG
    ],
)
def test_a_verifier_that_is_wrong_in_a_corner_is_found_out(tmp_path, name: str) -> None:
    right, wrong = WRONG[name]
    assert right in RIGHT
    rule = UserRule(load_verifier(written(tmp_path, RIGHT.replace(right, wrong))), "my_verify.py")
    all_groups = groups(trees=False).values()
    picked = [cycle for group in all_groups for cycle in (group[0], group[-1])]
    picked += [cycle for group in all_groups for cycle in group[1:-1]]
    assert any(distance(cycle, rule)[0] > MAX_VARIATION for cycle in picked)


@pytest.mark.long
@pytest.mark.parametrize(
    "source", [COINS_FIRST, MATCHES, SEVEN], ids=["all coins first", "sample and match", "seven drafts at most"]
)
def test_a_verifier_that_is_right_in_its_own_way_is_not(tmp_path, source: str, some, monkeypatch) -> None:
    monkeypatch.setattr(prove, "groups", lambda trees: {name: some[::18] for name, some in groups(trees).items()})
    assert prove.prove_verifier(written(tmp_path, source)) == 0


def test_the_shipped_loop_proves_itself(capsys, some) -> None:
    assert prove.prove() == 0
    out = capsys.readouterr().out
    assert "single cycles (vocabularies)" in out
    assert "larger toys left out" in out.splitlines()[-4]


def test_a_distribution_that_is_none_is_no_proof(monkeypatch) -> None:
    monkeypatch.setitem(RULES, "rejection", MISTAKES["target_minus_target"].rule)
    monkeypatch.setattr(prove, "cases", lambda rule: [toys.LoopCase(3, 1, 1)])
    monkeypatch.setattr(prove, "deep_loops", lambda rule: [])
    monkeypatch.setattr(prove, "groups", few)
    assert prove.prove() == 1


def test_paths_have_all_the_probability_and_too_many_are_refused_not_cut() -> None:
    case = toys.LoopCase(3, 2, 3)
    total = sum(chance for _, chance in enumeration.paths(toys.run_loop(case.task), 1000))
    assert total == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(enumeration.TooManyPaths):
        list(enumeration.paths(toys.run_loop(case.task), 5))
