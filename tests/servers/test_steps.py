"""How steps are found in what arrived: by hand, for the cases that recordings may not hold."""

import random
from dataclasses import replace
from typing import Any

import pytest

from specdec.servers.answers import Chunk, Ending, Token
from specdec.servers.lane import align_steps, make_steps


def chunks(*sizes: int) -> list[Chunk]:
    """Of so many tokens each, one a second."""
    made, number = [], 0
    for at, size in enumerate(sizes):
        pieces = [f" {number + i}" for i in range(size)]
        number += size
        made.append(Chunk("".join(pieces), tuple(Token(piece, 7) for piece in pieces), float(at)))
    return made


def shape(told: list[Chunk], ending: Ending, speculates: bool | None = True) -> tuple[list[Any], str | None]:
    steps, how = make_steps(told, ending, speculates)
    assert "".join(step.text for step in steps) == "".join(chunk.text for chunk in told)
    assert all(step.text == "".join(token.piece for token in step.tokens) for step in steps)
    return [(len(step.tokens), step.drafted, step.accepted) for step in steps], how


@pytest.mark.parametrize(
    ("sizes", "drafted", "accepted", "steps", "how"),
    [
        ((1, 3, 1), (4, 4), (2, 0), [(3, 4, 2), (1, 4, 0)], "exact"),
        ((1, 4), (4, 4), (2, 0), [(3, 4, 2), (1, 4, 0)], "merged"),
        ((5,), (4, 4), (2, 0), [(3, 4, 2), (1, 4, 0)], "merged"),  # the first token came with them
        ((1, 1, 3), (4,), (2,), [(1, 0, 0), (3, 4, 2)], "exact"),  # a step without a draft
        ((1, 1, 1, 3), (4, 4), (0, 2), [(1, 4, 0), (1, 0, 0), (3, 4, 2)], "merged"),  # which of two had none?
        ((1, 3, 2), (4, 4), (2, 4), [(3, 4, 2), (2, 4, 4)], "exact"),  # the text ended inside the last step
        ((1, 3, 2), (4, 4), (2, 0), [(3, 4, 2), (1, 4, 0), (1, 0, 0)], "merged"),
        ((1, 3, 2), (4, 4), (4, 4), [(3, None, None), (2, None, None)], "totals"),  # a list of something else
        ((1, 2), (4, 4), (2, 4), [(2, None, None)], "totals"),
        ((1,), (), (), [], "exact"),
    ],
)
def test_a_list_is_laid_over_what_arrived(sizes, drafted, accepted, steps, how) -> None:
    ending = Ending("length", (sum(drafted), sum(accepted)), tuple(zip(drafted, accepted, strict=True)))
    found, said = shape(chunks(*sizes), ending)
    assert found[1:] == steps and found[0][0] == 1
    assert said in (how, None) if not steps else said == how


@pytest.mark.parametrize(
    ("sizes", "speculates", "ending"),
    [((1, 3, 2), False, Ending("length")), ((1, 3), True, Ending("length", (0, 0)))],
)
def test_where_nothing_is_drafted_every_token_is_a_step(sizes, speculates, ending) -> None:
    steps, how = shape(chunks(*sizes), ending, speculates)
    assert [step[0] for step in steps] == [1] * sum(sizes) and how is None


def test_cycles_that_the_server_counts_stay_as_they_are() -> None:
    told = [
        replace(chunk, drafted=drafted, accepted=accepted)
        for chunk, (drafted, accepted) in zip(chunks(1, 3, 1, 2), [(0, 0), (4, 2), (0, 0), (4, 3)], strict=True)
    ]
    assert shape(told, Ending("length")) == ([(1, 0, 0), (3, 4, 2), (1, 0, 0), (2, 4, 3)], "exact")


def test_any_run_is_found_again() -> None:
    chance = random.Random(5)
    for _ in range(500):
        steps = [chance.choice([None, 0, 1, 2, 4]) for _ in range(chance.randint(1, 12))]
        accepted = [step for step in steps if step is not None]
        blocks = [0]
        for step in steps:
            if chance.random() < 0.7 and blocks[-1]:
                blocks.append(0)
            blocks[-1] += (step or 0) + 1
        aligned = align_steps(blocks, accepted)
        for block, places in zip(blocks, aligned, strict=True):
            assert sum(1 if place is None else accepted[place] + 1 for place in places) == block
        assert [place for places in aligned for place in places if place is not None] == list(range(len(accepted)))
