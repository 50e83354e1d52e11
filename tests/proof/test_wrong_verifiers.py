"""Verifiers that are wrong in a corner only, and some that are right in an unusual way: `prove` judges each."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_prove import RIGHT

from specdec.proof.cycles import distance, groups
from specdec.proof.prove import EXACT, load, looks, UserRule

JUDGE, BONUS = "        if not accepted:", "p[len(tokens)]"
LEFT, NORMAL, P, Q = "(p[i] - q[i]).clamp(min=0)", "left / left.sum()", "float(p[i, token])", "float(q[i, token])"
K, V = "len(tokens)", "p.shape[1]"


def deeper(n: int) -> tuple[str, str]:
    return JUDGE, f"        if not accepted and i < {n}:"


def larger(n: int) -> tuple[str, str]:
    return NORMAL, f"p[i] if {V} >= {n} else left / left.sum()"


WRONG: dict[str, tuple[str, str]] = {
    **{f"draft {n + 1} and later are not judged": deeper(n) for n in (3, 5, 6, 8, 11, 15)},
    **{f"draft {n} alone is not judged": (JUDGE, f"        if not accepted and i != {n - 1}:") for n in (7, 16)},
    **{f"from the target where V >= {n}": larger(n) for n in (4, 6, 20, 100, 65_536, 200_000)},
    "the last token's residual is the target": (NORMAL, f"(p[i] if i == {K} - 1 else left / left.sum())"),
    "the last token's residual is not normalised": (NORMAL, f"(left if i == {K} - 1 else left / left.sum())"),
    "the residual one place too early from the eighth on": (LEFT, "(p[i - (i > 6)] - q[i - (i > 6)]).clamp(min=0)"),
    "the residual of the next draft": (LEFT, f"(p[i] - q[min(i + 1, {K} - 1)]).clamp(min=0)"),
    "the bonus of sixteen drafts one row too early": (BONUS, f"p[{K} - ({K} == 16)]"),
    "the bonus of nine drafts from the draft": (BONUS, f"(q[-1] if {K} == 9 else p[{K}])"),
    "a tie is rejected": (P, f"({P} if {P} != {Q} else 0.0)"),
    "a tie is as likely as not": (P, f"({P} if {P} != {Q} else 0.5 * {Q})"),
    "what the target excludes is kept": (JUDGE, "        if not accepted and p[i, token] > 0:"),
    "what the draft excludes is never resampled": (LEFT, f"({LEFT} * (q[i] > 0) + 1e-300)"),
    "the ratio in float32": (P, f"float(p[i, token].float() / q[i, token].float()) * {Q}"),
    "a small ratio is none": (P, f"({P} if {P} > 1e-6 * {Q} else 0.0)"),
    "a large ratio is cut at the wrong place": (P, f"({P} if {P} < 1e6 * {Q} else 0.999 * {Q})"),
    "the residual of the twenty likeliest": (LEFT, f"{LEFT} * (p[i] >= p[i].topk(min(20, {V})).values[-1])"),
    "the residual's likeliest from the tenth on": (NORMAL, f"(left == left.max()).double() if i > 8 else {NORMAL}"),
    "ids of 16 bits": ("out.append(token)", "out.append(token & 65535)"),
    "ids of 17 bits where one is resampled": (f"({NORMAL}, i)", f"({NORMAL}, i) % 131072"),
    "the bonus twice after ten": ('"bonus")]', '"bonus")] * (1 + (len(tokens) == 10))'),
    "a tenth of a per cent too lenient": (P, f"1.001 * {P}"),
    "a tenth too lenient": (P, f"1.1 * {P}"),
    "a token too many after a rejection": (f"({NORMAL}, i)]", f"({NORMAL}, i), 0]"),
    "always from the target": (NORMAL, "p[i]"),
    "always the bonus of the draft": (BONUS, "q[-1]"),
    "only the first is judged": (JUDGE, "        if not accepted and i == 0:"),
}  # fmt: skip

COINS_FIRST = """
def verify(tokens, p, q, sampler):
    coins = [sampler.accept(float(p[i, t]), float(q[i, t]), i)[0] for i, t in enumerate(tokens)]
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


def rule_of(tmp_path: Path, source: str) -> UserRule:
    path = tmp_path / "my_verify.py"
    path.write_text(source)
    return UserRule(load(path), path.name)


SEVEN = RIGHT.replace("enumerate(tokens)", "enumerate(tokens[:7])").replace(BONUS, "p[min(7, len(tokens))]")


@pytest.mark.parametrize("name", WRONG)
def test_a_verifier_that_is_wrong_in_a_corner_is_found_out(tmp_path: Path, name: str) -> None:
    """Single cycles first: they are the quickest of what `prove` looks at."""
    right, wrong = WRONG[name]
    assert right in RIGHT
    rule = rule_of(tmp_path, RIGHT.replace(right, wrong))
    single = (distance(cycle, rule)[0] > EXACT for cycles in groups(trees=False).values() for cycle in cycles)
    assert any(single) or any(found > EXACT for _, found in looks(rule))


@pytest.mark.long
@pytest.mark.parametrize(
    "source", [COINS_FIRST, MATCHES, SEVEN], ids=["all coins first", "sample and match", "seven drafts at most"]
)
def test_a_verifier_that_is_right_in_its_own_way_is_not(tmp_path: Path, source: str) -> None:
    assert all(found <= EXACT for _, found in looks(rule_of(tmp_path, source)))
