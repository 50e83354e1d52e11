"""Turn a server's answers into its steps, and these into lanes of events.

An event's time is when its tokens arrived. Lanes run one after the other, as servers on one machine slow each other
down. Without counts of drafts, each chunk is one cycle (if the server does not speculate, each token).
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..events import Committed, Counted, Drafted, Event, Failed, Finished, PLAIN, SPECULATIVE, Started, Verified
from ..lanes.interleave import interleave
from ..types import has_lone_surrogate, Kind, SamplingParams
from . import answers
from .answers import chance, Chunk, distribution, Ending, id_of, position, ServerError
from .connect import Server


def race(
    server: Server,
    plain: Server | None,
    prompt: str,
    params: SamplingParams,
    top: int = 5,
    on_text: Callable[[str], object] = lambda text: None,
) -> list[Event]:
    """Run the lanes; return their events, interleaved by the lanes' clocks. `on_text` gets the first lane's text.

    Raises ServerError for a prompt or plain server that cannot be used; later errors become a lane's `Failed` events.
    """
    if plain is not None and plain.facts.speculates:
        raise ServerError("The plain server speculates, too. A baseline is the same model served without speculation.")
    ids = tokens(server, prompt)
    if plain is not None and tokens(plain, prompt) != ids:
        raise ServerError("The two servers read the prompt differently: they do not serve the same model.")
    lanes = {SPECULATIVE: watch(server, ids, params, SPECULATIVE, top, on_text)}
    if plain is not None:
        lanes[PLAIN] = watch(plain, ids, params, PLAIN, top, lambda text: None)
    return list(interleave({lane: (event for event in events) for lane, events in lanes.items()}))


def tokens(server: Server, prompt: str) -> tuple[int, ...]:
    """Return a prompt's ids in the chat template. Raises ServerError for one that cannot be read."""
    if has_lone_surrogate(prompt):
        raise ServerError("The prompt holds half of a character (a lone surrogate). Delete it and type it again.")
    ids = server.tokenize_chat(prompt)
    limit = (server.facts.context or math.inf) - 1
    if len(ids) > limit:
        raise ServerError(f"The prompt has {len(ids)} tokens; the model reads at most {limit}. Shorten it.")
    return ids


def watch(
    server: Server, prompt: Sequence[int], params: SamplingParams, lane: str, top: int, on_text: Callable[[str], object]
) -> list[Event]:
    facts = server.facts
    max_tokens = min(params.max_tokens, facts.context - len(prompt) if facts.context else params.max_tokens)
    k = facts.k or 0 if facts.speculates is not False else 0
    started = Started(lane, "", k, params, len(prompt), server=f"{facts.kind} {facts.version}".strip())
    chunks, ending, error = list[Chunk](), None, None
    try:
        with contextlib.closing(server.stream(prompt, replace(params, max_tokens=max_tokens), top)) as stream:
            for item in stream:
                if isinstance(item, Ending):
                    ending = item
                    continue
                check(item, chunks, max_tokens)
                chunks.append(item)
                on_text(item.text)
        if ending and ending.reason == "end" and not any(chunk.text for chunk in chunks):
            raise ServerError(
                "The server wrote only an end token. Give a chat model its chat template, and any other model a text "
                "to continue."
            )
        if ending is None or not any(chunk.tokens for chunk in chunks):
            raise ServerError("The server wrote nothing.")
        if ending.reason == "length" and max_tokens < params.max_tokens:
            ending = replace(ending, reason="context")
    except ServerError as failure:
        ending, error = Ending("failed"), failure
    steps, counted = make_steps(chunks, ending, facts.speculates)
    events, text = list(cycles(lane, steps)), "".join(chunk.text for chunk in chunks)
    first, last = (steps[0].at, steps[-1].at) if steps else (0.0, 0.0)
    total = sum(len(step.tokens) for step in steps)
    # All time after the first token counts as the target's: servers do not report the time of drafting.
    finished = Finished(lane, ending.reason, total, text, last, first, 0.0, last - first, 0.0)
    if error is not None:
        failed = Failed(lane, len(steps), "engine", error.sentence, True, last)
        return [started, *events, failed, finished]
    drafted, accepted = (counted == "totals" and ending.counts) or (None, None)
    return [started, *events, replace(finished, counted=counted, drafted=drafted, accepted=accepted)]


def check(chunk: Chunk, before: Sequence[Chunk], most: int) -> None:
    """Raise ServerError for text before the first token, more than `most` tokens, or impossible counts of drafts."""
    if chunk.text and not chunk.tokens and not before:
        raise answers.unreadable("tokens")
    if sum(len(x.tokens) for x in before) + len(chunk.tokens) > most:
        raise ServerError("The server wrote more tokens than it was asked for.")
    if before and chunk.drafted is not None and chunk.accepted is not None:
        in_range = 0 <= chunk.accepted <= chunk.drafted <= answers.MAX_DRAFT
        if not in_range or len(chunk.tokens) > chunk.accepted + 1:
            raise answers.unreadable("counts of drafts")


def cycles(lane: str, steps: Sequence[Chunk]) -> Iterator[Event]:
    """Yield the events of the steps, the prefill first. Servers tell no q, coins or rejected drafts."""
    at, total = 0.0, 0
    for cycle, step in enumerate(steps):
        last = len(step.tokens) - 1
        accepted = (last if step.accepted is None else step.accepted) if cycle else 0
        drafted = (accepted if step.drafted is None else step.drafted) if cycle else 0
        positions = tuple(position(node, accepted, step.tokens) for node in range(drafted))
        target_token = step.tokens[accepted] if accepted <= last else None
        all_accepted = drafted == accepted  # if so, the target's token comes from p, otherwise from the residual
        row = distribution(target_token) if target_token and all_accepted else None
        if positions:
            ids, pieces = tuple(x.token for x in positions), tuple(x.piece for x in positions)
            yield Drafted(lane, cycle, ids, pieces, tuple(range(-1, drafted - 1)), at, at)
        bonus = row if positions else None
        yield Verified(lane, cycle, positions, at, step.at, row, chance(target_token), bonus=bonus)
        at, total = step.at, total + len(step.tokens)
        ids, pieces = tuple(map(id_of, step.tokens)), tuple(x.piece for x in step.tokens)
        kind: Kind = "bonus" if all_accepted else "resampled"
        yield Committed(lane, cycle, ids, pieces, min(accepted, len(ids)), kind, step.text, total, at)


def about(server: Server, plain: Server | None = None) -> dict[str, Any]:
    """Return the servers' facts for a trace's header, without addresses and keys."""
    return {"server": asdict(server.facts)} | ({"plain_server": asdict(plain.facts)} if plain is not None else {})


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
    """Assign the steps that the server lists to the blocks in which their tokens arrived: indices, by block.

    A listed step wrote `accepted` tokens and one more, in the first block with room for it. All other tokens come from
    steps without a draft, which are not listed (None). Return None if the steps do not fit the blocks.
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
