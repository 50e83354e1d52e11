"""Ids, pieces and text: the same id is the same piece everywhere, and the pieces make the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..events import Committed, Drafted, Event, UNNAMED, Verified
from ..types import TranslatableText
from .cycle import AuditedCycle, MAX_NAME

BYTES = re.compile("(<0x[0-9A-F]{2}>)+")  # a part of a character
SILENT = re.compile("<.*>|\\[.*\\]", re.DOTALL)  # perhaps a control token, which adds no text
MAX_WAYS = 64  # to read the same text


class Pieces:
    """The piece that each id has most often in a trace."""

    def __init__(self, events: Iterable[Event]) -> None:
        seen: dict[int, Counter[str]] = {}
        for event in events:
            for token, piece in mentioned(event):
                seen.setdefault(token, Counter())[piece] += 1
        self.pieces = {token: pieces.most_common(1)[0][0] for token, pieces in seen.items()}

    def check(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        for event in (cycle.drafted, cycle.verified, cycle.committed):
            for token, piece in mentioned(event):
                if (other := self.pieces.get(token, piece)) != piece:
                    values = {"token": token, "piece": piece[:MAX_NAME], "other": other[:MAX_NAME]}
                    yield TranslatableText("token {token} is called {piece!r}, and {other!r} elsewhere", **values)
                    return


def mentioned(event: Event | None) -> Iterator[tuple[int, str]]:
    """Ids with their pieces; what a server leaves unnamed is not among them."""
    pairs: list[tuple[int, str]] = []
    if isinstance(event, Drafted | Committed):
        pairs += zip(event.tokens, event.pieces, strict=True)
    elif isinstance(event, Verified):
        distributions = [event.distribution, event.bonus]
        for x in event.positions:
            pairs.append((x.token, x.piece))
            distributions += [x.target, x.draft, x.residual]
        for one in filter(None, distributions):
            pairs += [(it.token, it.piece) for it in (*one.top, *([one.sample] if one.sample else []))]
    return (pair for pair in pairs if pair[0] != UNNAMED)


def first_wrong_text(cycles: Sequence[Committed], stops: bool, ended: bool) -> int | None:
    """The first cycle whose text is not that of its pieces; None where all are.

    Where a piece is half a character, or may be silent, all ways to read it are followed. With `stops`, or halves of
    characters, text may be held back for a later cycle; nothing is once the run `ended`.
    """
    text, ways, length, number = "".join(event.text for event in cycles), {0}, 0, 0
    late = stops or any(BYTES.fullmatch(piece) for event in cycles for piece in event.pieces)
    for event in cycles:
        number, length = event.cycle, length + len(event.text)
        for piece in event.pieces:
            ways = {after for way in ways for after in ends_of(piece, text, way, stops)}
            if len(ways) > MAX_WAYS:
                return None
        if not ways or (length > max(ways) if late else length not in ways):
            return number
    return number if ended and len(text) not in ways else None


def ends_of(piece: str, text: str, at: int, stops: bool) -> Iterator[int]:
    """Where the text may go on after `piece`. A stop string may have cut the last one."""
    if BYTES.fullmatch(piece):
        yield from range(at, min(len(text), at + len(piece) // 6, at + MAX_WAYS) + 1)
    if text.startswith(piece, at):
        yield at + len(piece)
    elif stops and len(text) - at < len(piece) and piece.startswith(text[at:]):
        yield len(text)
    if SILENT.fullmatch(piece):
        yield at
