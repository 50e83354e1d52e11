"""Turn a server's answers into lanes of events.

An event's time is when its tokens arrived. Lanes run one after the other, because two servers on one machine would slow
each other down. Without counts of drafts, each chunk is one cycle (if the server does not speculate, each token).
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..events import (
    Candidate,
    Committed,
    Distribution,
    Drafted,
    Event,
    Failed,
    Finished,
    PLAIN,
    Position,
    SPECULATIVE,
    Started,
    UNNAMED,
    Verified,
)
from ..lanes.interleave import interleave
from ..types import has_lone_surrogate, Kind, SamplingParams
from . import fields
from .base import Chunk, Ending, ServerError, Token
from .connect import Server
from .steps import make_steps


def race(
    server: Server,
    plain: Server | None,
    prompt: str,
    params: SamplingParams,
    top: int = 5,
    on_text: Callable[[str], object] = lambda text: None,
) -> list[Event]:
    """Run the lanes, and return their events, interleaved by the lanes' clocks.

    `top` is the number of alternatives to request for each token. `on_text` is called with each part of the first
    lane's text as it arrives. Raises ServerError if the prompt is too long, or if the plain server speculates or
    tokenizes the prompt differently. Later errors of a server become `Failed` events of its lane.
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
    """Return a prompt's ids in the chat template. Raises ServerError if it fills the context or has lone surrogates."""
    if has_lone_surrogate(prompt):
        raise ServerError("The prompt holds half of a character (a lone surrogate). Delete it and type it again.")
    ids = server.tokenize_chat(prompt)
    limit = (server.facts.context or math.inf) - 1
    if len(ids) > limit:
        raise ServerError(
            "The prompt has {n} tokens; the model reads at most {limit}. Shorten it.", n=len(ids), limit=int(limit)
        )
    return ids


def watch(
    server: Server, prompt: Sequence[int], params: SamplingParams, lane: str, top: int, on_text: Callable[[str], object]
) -> list[Event]:
    """Request a text, and return the events of its lane."""
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
        raise fields.unreadable("tokens")
    if sum(len(x.tokens) for x in before) + len(chunk.tokens) > most:
        raise ServerError("The server wrote more tokens than it was asked for.")
    if before and chunk.drafted is not None and chunk.accepted is not None:
        in_range = 0 <= chunk.accepted <= chunk.drafted <= fields.MAX_DRAFT
        if not in_range or len(chunk.tokens) > chunk.accepted + 1:
            raise fields.unreadable("counts of drafts")


def cycles(lane: str, steps: Sequence[Chunk]) -> Iterator[Event]:
    """Yield the events of the steps, the first of which is the prefill.

    Servers do not report q, coins and rejected tokens, so these are missing.
    """
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


def position(node: int, accepted: int, tokens: Sequence[Token]) -> Position:
    """Make the `Position` of drafted token `node`: accepted if below `accepted`, rejected if equal, else discarded."""
    token = tokens[node] if node < len(tokens) else None
    row = distribution(token) if token is not None and node <= accepted else None
    if node >= accepted:
        status = "rejected" if node == accepted else "discarded"
        return Position(node, UNNAMED, "", status, None, None, None, target=row)  # type: ignore[arg-type]
    if token is None:
        return Position(node, UNNAMED, "", "accepted", None, None, None)
    return Position(node, id_of(token), token.piece, "accepted", chance(token), None, None, target=row)


def id_of(token: Token) -> int:
    return UNNAMED if token.id is None else token.id


def chance(token: Token | None) -> float | None:
    return None if token is None or token.logprob is None else math.exp(token.logprob)


def distribution(token: Token) -> Distribution | None:
    """Make the target's distribution at `token` from `token.top`, the likeliest tokens; None if the server sent none.

    The entropy is computed as if all other tokens were one token.
    """
    if not token.top:
        return None
    candidates = [
        Candidate(id_of(token) if piece == token.piece else UNNAMED, piece, math.exp(value))
        for piece, value in token.top
    ]
    candidates.sort(key=lambda x: -x.prob)
    rest = max(0.0, 1.0 - sum(x.prob for x in candidates))
    entropy = sum(-p * math.log(p) for p in (*(x.prob for x in candidates), rest) if p > 0.0)
    return Distribution(tuple(candidates), rest, entropy)


def about(server: Server, plain: Server | None = None) -> dict[str, Any]:
    """Return the servers' facts for a trace's header, without addresses and keys."""
    return {"server": asdict(server.facts)} | ({"plain_server": asdict(plain.facts)} if plain is not None else {})
