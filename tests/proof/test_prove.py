"""The command `prove`: for the shipped loop, and for a user's own verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec.proof import enumeration, prove, toys
from specdec.proof.cycles import Cycle, groups
from specdec.proof.wrong_rules import ResidualIsNothing
from specdec.rules import RULES

RIGHT = """
def verify(tokens, p, q, sampler):
    out = []
    for i, token in enumerate(tokens):
        accepted, u = sampler.accept(float(p[i, token]), float(q[i, token]), i)
        if not accepted:
            left = (p[i] - q[i]).clamp(min=0)
            return out + [sampler.categorical(left / left.sum(), i)]
        out.append(token)
    return out + [sampler.categorical(p[len(tokens)], "bonus")]
"""


def judge(tmp_path: Path, source: str) -> int:
    path = tmp_path / "my_verify.py"
    path.write_text(source)
    return prove.judge(path)


def test_a_right_verifier_is_lossless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(tmp_path, RIGHT) == 0
    told = capsys.readouterr().out
    assert "my_verify.py: lossless" in told and "V up to 5 with K up to 3; K up to 16" in told
    assert "single cycles: K up to 16" in told and "V up to 32, and up to 262,144" in told


def test_a_verifier_with_too_many_paths_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "LOOPS", [])
    source = "def verify(tokens, p, q, sampler):\n    return [sampler.categorical(p[0], 0) for _ in range(40)]"
    monkeypatch.setattr(prove, "output_distribution", lambda run: enumeration.output_distribution(run, 100))
    with pytest.raises(ValueError, match="asks for too many random numbers"):
        judge(tmp_path, source)


def few(trees: bool) -> dict[str, list[Cycle]]:
    return {name: cycles[-1:] for name, cycles in groups(trees).items()}


def test_a_wrong_verifier_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more of them: `test_wrong_verifiers.py`."""
    monkeypatch.setattr(prove, "LOOPS", prove.LOOPS[:1])
    monkeypatch.setattr(prove, "groups", few)
    assert judge(tmp_path, RIGHT.replace("left / left.sum()", "p[i]")) == 1
    assert "NOT lossless" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("x = 1", "defines no function verify"),
        ("def verify(tokens, p, q, sampler):\n    return 1 / 0", "ZeroDivisionError"),
        ("def verify(tokens, p, q, sampler)\n    return tokens", "cannot be run: SyntaxError"),
        ("import nothing_of_this_name", "cannot be run: ModuleNotFoundError"),
        ("verify = 3", "defines no function"),
    ],
)
def test_a_file_that_cannot_be_judged_says_why(tmp_path: Path, source: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        judge(tmp_path, source)


@pytest.mark.parametrize(
    "look",
    [
        "u < 0.9", "0.9 > u", "u == 0", "u", "float(u) < 0.9", "int(u)", "1 - u < 0.1", "u * float(q[i, token]) < 0.5",
        "math.floor(u) == 0", "min(u, 0.9) < 0.9", "round(u, 2) < 0.9",
        "u.hex()", "f'{u:.1f}' < '0.9'",
    ],
)  # fmt: skip
def test_a_verifier_that_looks_at_u_is_refused_with_a_sentence(tmp_path: Path, look: str) -> None:
    """One path stands for every u with that answer, so a second look at u would go unseen."""
    source = "import math\n" + RIGHT.replace("if not accepted:", f"if not (accepted or {look}):")
    with pytest.raises(ValueError, match="use `accepted`"):
        judge(tmp_path, source)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        prove.judge(tmp_path / "none.py")


def test_the_shipped_loop_proves_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A ninth of it; `exactness` of `python -m tests.report` enumerates samples of the same toys."""
    monkeypatch.setattr(prove, "cases", lambda rule: toys.cases(rule)[::9])
    monkeypatch.setattr(prove, "deep_loops", lambda rule: toys.deep_loops(rule)[::9])
    monkeypatch.setattr(prove, "groups", few)
    assert prove.prove_rule(paths=12) == 0
    assert "largest error" in capsys.readouterr().out


def test_a_distribution_that_is_none_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "rejection", ResidualIsNothing)
    monkeypatch.setattr(prove, "cases", lambda rule: [toys.Case(3, 1, 1)])
    monkeypatch.setattr(prove, "deep_loops", lambda rule: [])
    monkeypatch.setattr(prove, "groups", few)
    assert prove.prove_rule() == 1


def test_nothing_tried_is_nothing_proved() -> None:
    with pytest.raises(ValueError, match="nothing was proved"):
        prove.prove_rule(paths=0)


def test_paths_have_all_the_probability() -> None:
    case = toys.Case(3, 2, 3)
    total = sum(chance for _, chance in enumeration.paths(toys.run_loop(case.task), 1000))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_too_many_paths_are_refused_not_cut() -> None:
    with pytest.raises(enumeration.TooManyPaths):
        list(enumeration.paths(toys.run_loop(toys.Case(3, 2, 3).task), 5))
