"""Reconstruct a server's steps from the chunks that arrived and the counts that the server reports."""

from collections.abc import Sequence
from dataclasses import replace

from ..events import Counted
from .base import Chunk, Ending


def make_steps(chunks: Sequence[Chunk], ending: Ending, speculates: bool | None) -> tuple[list[Chunk], Counted | None]:
    """Return all steps, the prefill first, and how they were counted (None: nothing was drafted)."""
    blocks = blocks_of(chunks)
    if not blocks:
        return [], None
    first, rest = blocks[0], blocks[1:]
    if all(chunk.drafted is not None for chunk in chunks) and speculates is not False:
        return blocks, "exact"
    accepted = [count for _, count in ending.steps or ()]
    aligned = None if ending.steps is None else align_steps([len(block.tokens) for block in rest], accepted)
    if ending.steps is not None and aligned is not None:
        steps = [first]
        for block, indices in zip(rest, aligned, strict=True):
            sizes = [1 if index is None else accepted[index] + 1 for index in indices]
            sizes[-1] = len(block.tokens) - sum(sizes[:-1])  # the text can end inside its last step
            for part, index in zip(cut(block, sizes), indices, strict=True):
                drafted, kept = (0, 0) if index is None else ending.steps[index]
                steps.append(replace(part, drafted=drafted, accepted=kept))
        one_each = all(len(indices) == 1 for indices in aligned)
        # A step without a draft and a step that accepts nothing both write one token, and cannot be told apart.
        unambiguous = 0 not in accepted or not any(None in indices for indices in aligned)
        return steps, "exact" if one_each and unambiguous else "merged"
    if speculates is False or (ending.counts and not ending.counts[0]):
        return [first, *(step for block in rest for step in cut(block, [1] * len(block.tokens)))], None
    return [first, *rest], "totals"


def blocks_of(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Give the first token a block of its own, and join text without a token to the block before."""
    blocks = list[Chunk]()
    for chunk in chunks:
        if chunk.tokens:
            whole = blocks or len(chunk.tokens) == 1
            blocks += [chunk] if whole else cut(chunk, [1, len(chunk.tokens) - 1])
        elif blocks:
            blocks[-1] = replace(blocks[-1], text=blocks[-1].text + chunk.text)
    return blocks


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


def cut(block: Chunk, parts: Sequence[int]) -> list[Chunk]:
    """Cut a block into parts of these sizes. A part's text is its pieces, joined, or "" if the block's text differs."""
    steps, text, start = list[Chunk](), block.text, 0
    for number, size in enumerate(parts):
        tokens = block.tokens[start : start + size]
        pieces = "".join(token.piece for token in tokens)
        last = number == len(parts) - 1  # the last part gets all text that remains
        part_text = text if last else pieces if text.startswith(pieces) else ""
        steps.append(Chunk(part_text, tokens, block.at))
        text, start = text[len(part_text) :], start + size
    return steps
