"""Reconstruct a server's steps from the chunks that arrived and the counts that the server reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Counted
from .base import Chunk, Ending, Token


@dataclass(frozen=True, slots=True)
class Step:
    """One cycle or, if the cycles are unknown, tokens that arrived together."""

    tokens: tuple[Token, ...]
    text: str
    at: float  # seconds since the request was sent
    drafted: int | None = None  # None if the server does not report it
    accepted: int | None = None


def make_steps(chunks: Sequence[Chunk], ending: Ending, speculates: bool | None) -> tuple[list[Step], Counted | None]:
    """Return all steps, the prefill first, and how they were counted (None: nothing was drafted)."""
    blocks = blocks_of(chunks)
    if not blocks:
        return [], None
    first, rest = blocks[0], blocks[1:]
    if all(chunk.drafted is not None for chunk in chunks) and speculates is not False:
        return [first, *steps_from_sums(chunks)], "exact"
    accepted = [count for _, count in ending.steps or ()]
    aligned = None if ending.steps is None else align_steps([len(block.tokens) for block in rest], accepted)
    if ending.steps is not None and aligned is not None:
        steps = [first]
        for block, indices in zip(rest, aligned, strict=True):
            sizes = [1 if index is None else accepted[index] + 1 for index in indices]
            sizes[-1] = len(block.tokens) - sum(sizes[:-1])  # the text can end inside its last step
            for part, index in zip(cut(block, sizes), indices, strict=True):
                counts = (0, 0) if index is None else ending.steps[index]
                steps.append(Step(part.tokens, part.text, part.at, *counts))
        one_each = all(len(indices) == 1 for indices in aligned)
        # A step without a draft and a step that accepts nothing both write one token, and cannot be told apart.
        unambiguous = 0 not in accepted or not any(None in indices for indices in aligned)
        return steps, "exact" if one_each and unambiguous else "merged"
    if speculates is False or ending.drafted == 0:
        return [first, *(step for block in rest for step in cut(block, [1] * len(block.tokens)))], None
    return [first, *rest], "totals"


def blocks_of(chunks: Sequence[Chunk]) -> list[Step]:
    """Make a block of each chunk. The first token gets its own block; text without a token joins the block before."""
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
    """Make the steps after the prefill from the running totals of drafted and accepted tokens in each chunk."""
    steps, before = list[Step](), (0, 0)
    for number, chunk in enumerate(chunk for chunk in chunks if chunk.tokens):
        sums = chunk.drafted or 0, chunk.accepted or 0
        if number:  # 0 is the prefill
            steps.append(Step(chunk.tokens, chunk.text, chunk.at, sums[0] - before[0], sums[1] - before[1]))
        before = sums
    return steps


def align_steps(blocks: Sequence[int], accepted: Sequence[int]) -> list[list[int | None]] | None:
    """Assign the steps that the server lists to the blocks in which their tokens arrived.

    `blocks` counts the tokens of each block, and `accepted` counts the accepted tokens of each listed step. A listed
    step wrote its accepted tokens and one more. It is assigned to the first block with room for these. All other tokens
    come from steps without a draft, which the server does not list. Return for each block the indices of its steps
    (None: not listed). Return None if the steps do not fit the blocks.
    """
    aligned, index = list[list[int | None]](), 0
    for number, remaining in enumerate(blocks):
        steps = list[int | None]()
        while remaining:
            if index < len(accepted) and accepted[index] < remaining:
                steps.append(index)
                remaining -= accepted[index] + 1
                index += 1
            elif index == len(accepted) - 1 and number == len(blocks) - 1:  # the text ended inside its last step
                steps.append(index)
                remaining, index = 0, index + 1
            else:
                steps.append(None)
                remaining -= 1
        aligned.append(steps)
    return aligned if index == len(accepted) else None


def cut(block: Step, parts: Sequence[int]) -> list[Step]:
    """Cut a block into parts of these sizes. A part's text is its pieces, joined, or "" if the block's text differs."""
    steps, text, start = list[Step](), block.text, 0
    for number, size in enumerate(parts):
        tokens = block.tokens[start : start + size]
        pieces = "".join(token.piece for token in tokens)
        last = number == len(parts) - 1  # the last part gets all text that remains
        part_text = text if last else pieces if text.startswith(pieces) else ""
        steps.append(Step(tokens, part_text, block.at))
        text, start = text[len(part_text) :], start + size
    return steps
