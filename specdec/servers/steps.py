"""Find a server's steps from the chunks that arrived and the counts that it reports at the end."""

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


def counted(chunks: Sequence[Chunk], ending: Ending, speculates: bool | None) -> tuple[list[Step], Counted | None]:
    """Return the prefill's step and all others, and how they were counted; None if nothing is drafted."""
    blocks = blocks_of(chunks)
    if not blocks:
        return [], None
    first, rest = blocks[0], blocks[1:]
    if all(chunk.drafted is not None for chunk in chunks) and speculates is not False:
        return [first, *running(chunks)], "exact"
    accepted = [taken for _, taken in ending.steps or ()]
    aligned = None if ending.steps is None else align_steps([len(block.tokens) for block in rest], accepted)
    if ending.steps is not None and aligned is not None:
        steps = [first]
        for block, places in zip(rest, aligned, strict=True):
            for part, place in zip(cut(block, sizes(block, places, accepted)), places, strict=True):
                counts = (0, 0) if place is None else ending.steps[place]
                steps.append(Step(part.tokens, part.text, part.at, *counts))
        alone = all(len(places) == 1 for places in aligned)
        sure = 0 not in accepted or not any(None in places for places in aligned)
        return steps, "exact" if alone and sure else "merged"
    if speculates is False or ending.drafted == 0:
        return [first, *(one for block in rest for one in cut(block, [1] * len(block.tokens)))], None
    return [first, *rest], "totals"


def blocks_of(chunks: Sequence[Chunk]) -> list[Step]:
    """Group what arrived together, the first token apart. Text without a token joins the block before it."""
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


def running(chunks: Sequence[Chunk]) -> list[Step]:
    """Make the steps from the running sums in each chunk."""
    steps, before = list[Step](), (0, 0)
    for place, chunk in enumerate(chunk for chunk in chunks if chunk.tokens):
        sums = chunk.drafted or 0, chunk.accepted or 0
        if place:
            steps.append(Step(chunk.tokens, chunk.text, chunk.at, sums[0] - before[0], sums[1] - before[1]))
        before = sums
    return steps


def align_steps(blocks: Sequence[int], accepted: Sequence[int]) -> list[list[int | None]] | None:
    """Assign listed steps to blocks (sizes in tokens): for each block places in the list, or None for a token that no
    listed step wrote.

    Each listed step writes its accepted tokens and one more. Greedy from the left: no other way uses more of the list.
    None if the list does not fit what arrived.
    """
    aligned, place = list[list[int | None]](), 0
    for number, left in enumerate(blocks):
        here = list[int | None]()
        while left:
            if place < len(accepted) and accepted[place] < left:
                here.append(place)
                left -= accepted[place] + 1
                place += 1
            elif place == len(accepted) - 1 and number == len(blocks) - 1:  # the text ended inside its last step
                here.append(place)
                left, place = 0, place + 1
            else:
                here.append(None)
                left -= 1
        aligned.append(here)
    return aligned if place == len(accepted) else None


def sizes(block: Step, places: Sequence[int | None], accepted: Sequence[int]) -> list[int]:
    wanted = [1 if place is None else accepted[place] + 1 for place in places]
    wanted[-1] = len(block.tokens) - sum(wanted[:-1])
    return wanted


def cut(block: Step, parts: Sequence[int]) -> list[Step]:
    """Cut a block into parts of these sizes. Each part has the text of its pieces; if they do not match, the last has
    all of it.
    """
    steps, text, start = list[Step](), block.text, 0
    for number, size in enumerate(parts):
        tokens = block.tokens[start : start + size]
        own = "".join(token.piece for token in tokens)
        last = number == len(parts) - 1
        own_text = text if last else own if text.startswith(own) else ""
        steps.append(Step(tokens, own_text, block.at))
        text, start = text[len(own_text) :], start + size
    return steps
