"""Reconstruct a server's steps from the chunks that arrived and the counts that it reports at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Counted
from .base import Chunk, Ending, Token


@dataclass(frozen=True, slots=True)
class Step:
    """One cycle: its tokens, and how many were drafted and accepted; None if the server does not report that.

    If the text ended inside the cycle, there are fewer tokens than were accepted.
    """

    tokens: tuple[Token, ...]
    text: str
    at: float
    drafted: int | None = None
    accepted: int | None = None


def make_steps(chunks: Sequence[Chunk], ending: Ending, speculates: bool | None) -> tuple[list[Step], Counted | None]:
    """Return all steps, the prefill first, and how they were counted; None if nothing was drafted."""
    blocks = blocks_of(chunks)
    if not blocks:
        return [], None
    first, rest = blocks[0], blocks[1:]
    if all(chunk.drafted is not None for chunk in chunks) and speculates is not False:
        return [first, *steps_from_sums(chunks)], "exact"
    accepted = [taken for _, taken in ending.steps or ()]
    aligned = None if ending.steps is None else align_steps([len(block.tokens) for block in rest], accepted)
    if ending.steps is not None and aligned is not None:
        steps = [first]
        for block, places in zip(rest, aligned, strict=True):
            for part, place in zip(cut(block, sizes(block, places, accepted)), places, strict=True):
                counts = (0, 0) if place is None else ending.steps[place]
                steps.append(Step(part.tokens, part.text, part.at, *counts))
        one_each = all(len(places) == 1 for places in aligned)
        unambiguous = 0 not in accepted or not any(None in places for places in aligned)  # both are one token
        return steps, "exact" if one_each and unambiguous else "merged"
    if speculates is False or ending.drafted == 0:
        return [first, *(step for block in rest for step in cut(block, [1] * len(block.tokens)))], None
    return [first, *rest], "totals"


def blocks_of(chunks: Sequence[Chunk]) -> list[Step]:
    """Make a block of each chunk. The first token is a block by itself; text without a token joins the block before."""
    blocks = list[Step]()
    for chunk in chunks:
        block = Step(chunk.tokens, chunk.text, chunk.at)
        if not block.tokens:
            if blocks:
                blocks[-1] = Step(blocks[-1].tokens, blocks[-1].text + block.text, blocks[-1].at)
        elif blocks or len(block.tokens) == 1:
            blocks.append(block)
        else:
            blocks += cut(block, [1, len(block.tokens) - 1])
    return blocks


def steps_from_sums(chunks: Sequence[Chunk]) -> list[Step]:
    """Make the steps from the running sums in each chunk."""
    steps, before = list[Step](), (0, 0)
    for place, chunk in enumerate(chunk for chunk in chunks if chunk.tokens):
        sums = chunk.drafted or 0, chunk.accepted or 0
        if place:
            steps.append(Step(chunk.tokens, chunk.text, chunk.at, sums[0] - before[0], sums[1] - before[1]))
        before = sums
    return steps


def align_steps(blocks: Sequence[int], accepted: Sequence[int]) -> list[list[int | None]] | None:
    """Assign the server's listed steps to blocks, given the size of each block in tokens.

    Return for each block the indices of its steps in the list; None stands for a token that no listed step wrote. Each
    listed step writes its accepted tokens and one more. Each step is assigned as far left as it fits, so that as
    many as possible fit. Returns None if the list does not fit the blocks.
    """
    aligned, place = list[list[int | None]](), 0
    for number, remaining in enumerate(blocks):
        steps = list[int | None]()
        while remaining:
            if place < len(accepted) and accepted[place] < remaining:
                steps.append(place)
                remaining -= accepted[place] + 1
                place += 1
            elif place == len(accepted) - 1 and number == len(blocks) - 1:  # the text ended inside its last step
                steps.append(place)
                remaining, place = 0, place + 1
            else:
                steps.append(None)
                remaining -= 1
        aligned.append(steps)
    return aligned if place == len(accepted) else None


def sizes(block: Step, places: Sequence[int | None], accepted: Sequence[int]) -> list[int]:
    """Return how many tokens each step of a block wrote."""
    counts = [1 if place is None else accepted[place] + 1 for place in places]
    counts[-1] = len(block.tokens) - sum(counts[:-1])
    return counts


def cut(block: Step, parts: Sequence[int]) -> list[Step]:
    """Cut a block into parts of these sizes. A part's text is its pieces; if they do not match, the last has it all."""
    steps, text, start = list[Step](), block.text, 0
    for number, size in enumerate(parts):
        tokens = block.tokens[start : start + size]
        own = "".join(token.piece for token in tokens)
        last = number == len(parts) - 1
        own_text = text if last else own if text.startswith(own) else ""
        steps.append(Step(tokens, own_text, block.at))
        text, start = text[len(own_text) :], start + size
    return steps
