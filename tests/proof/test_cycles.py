"""Single cycles: deep drafts, large vocabularies and wide trees, by every random path."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from torch import Tensor

from specdec.exposure import TABLE
from specdec.proof.mistakes import MISTAKES
from specdec.proof.prove import CycleCase, distance, groups, KINDS, MAX_VARIATION, rows_after, tree_groups
from specdec.proof.toys import DEEPEST
from specdec.rules import RULES, SampleAndMatch, SharedNoise
from specdec.sampling import residual, Sampler
from specdec.types import Proposal, Verdict
from specdec.verify import RejectionSampling, Rule


def test_the_deepest_draft_is_the_pages() -> None:
    assert max(row.k for row in TABLE.values()) == DEEPEST


def test_the_ways_to_differ_are_what_they_are_called() -> None:
    tables = {kind: rows_after(CycleCase(5, 2, (0, 1), kind, seed=3), ()) for kind in KINDS}
    assert all(sum(row.values()) == pytest.approx(1.0, abs=1e-15) for rows in tables.values() for row in rows)
    p, q = tables["ties"]
    assert sum(p[token] == q[token] for token in p) == 3
    p, q = tables["zeros"]
    assert len(p) == len(q) == 4 and p.keys() != q.keys()
    p, q = tables["far apart"]
    assert max(q[token] / p[token] for token in p) > 1e3


def tried(cycles: Iterable[CycleCase], rule: Rule) -> Iterator[float]:
    return (distance(cycle, rule)[0] for cycle in cycles)


@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule in ("rejection", "block", "match") for name in groups(RULES[rule].trees)]
)
@pytest.mark.parametrize("every", [16, pytest.param(5, marks=pytest.mark.long)])
def test_deep_large_and_wide_cycles_give_the_targets_distribution(rule: str, name: str, every: int) -> None:
    assert max(tried(groups(RULES[rule].trees)[name][::every], RULES[rule]())) <= MAX_VARIATION


def test_shared_noise_judges_as_sample_and_match_does() -> None:
    """Both give the same proof, so what is proved of one holds for the other."""
    assert SharedNoise.verify is SampleAndMatch.verify


class ThirdUnjudged(RejectionSampling):
    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._proposal = proposal
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        third = self._proposal.tree.children(self._proposal.parents[node]).index(node) == 2
        return (True, 0.0) if third else super().accept(p, q, sampler, node)


class OneResidual(RejectionSampling):
    """A wrong rule: the second rejected sibling does not change p."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._rejected = 0
        return super().verify(proposal, rows, sampler)

    def row(self, rows: Tensor, node: int) -> Tensor:
        self._rejected = 0
        return super().row(rows, node)

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        self._rejected += 1
        return p if self._rejected == 2 else residual(p, q, token)


class DepthAsNode(RejectionSampling):
    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._depths = proposal.tree.depths()
        return super().verify(proposal, rows, sampler)

    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[self._depths[node] if node >= 0 else 0]


class LastMatch(SampleAndMatch):
    """Among equal siblings any may be taken, but the row must be that one's."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        shifted = rows.clone()
        if len(proposal) > 12:
            shifted[13:] = rows[12:-1]
        return super().verify(proposal, shifted, sampler)


@pytest.mark.parametrize(
    "wrong", [ThirdUnjudged, OneResidual, DepthAsNode, pytest.param(LastMatch, marks=pytest.mark.long)]
)
def test_a_rule_that_is_wrong_in_trees_alone_is_found_out(wrong: Any) -> None:
    assert any(error > MAX_VARIATION for cycles in tree_groups().values() for error in tried(cycles, wrong()))


@pytest.mark.parametrize("key", [key for key, mistake in MISTAKES.items() if mistake.rule])
def test_every_known_mistake_of_a_rule_shows_in_single_cycles(key: str) -> None:
    rule = MISTAKES[key].rule
    assert any(not error <= MAX_VARIATION for cycles in groups(trees=False).values() for error in tried(cycles, rule()))
