"""Ids, pieces and text: the same id is the same piece everywhere, and the pieces make the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ..events import Candidate, Committed, Distribution, Drafted, Event, UNNAMED, Verified
from ..types import TranslatableText
from .cycle import AuditedCycle, MAX_SAID, NOTHING

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
        self.of = {token: pieces.most_common(1)[0][0] for token, pieces in seen.items()}

    def check(self, cycle: AuditedCycle) -> TranslatableText:
        for event in (cycle.drafted, cycle.verified, cycle.committed):
            for token, piece in mentioned(event):
                if self.of.get(token, piece) != piece:
                    told = {"token": token, "piece": piece[:MAX_SAID], "other": self.of[token][:MAX_SAID]}
                    return TranslatableText("token {token} is called {piece!r}, and {other!r} elsewhere", **told)
        return NOTHING


def mentioned(event: Event | None) -> Iterator[tuple[int, str]]:
    """Ids with their pieces; what a server leaves unnamed is not among them."""
    return ((token, piece) for token, piece in listed(event) if token != UNNAMED)


def listed(event: Event | None) -> Iterator[tuple[int, str]]:
    if isinstance(event, (Drafted, Committed)):
        yield from zip(event.tokens, event.pieces, strict=True)
    elif isinstance(event, Verified):
        yield from named_in(event.distribution)
        yield from named_in(event.bonus)
        for x in event.positions:
            yield x.token, x.piece
            for distribution in (x.target, x.draft, x.residual):
                yield from named_in(distribution)


def named_in(distribution: Distribution | None) -> Iterator[tuple[int, str]]:
    candidates: Iterable[Candidate] = (
        ()
        if distribution is None
        else (*distribution.top, distribution.sample)
        if distribution.sample
        else distribution.top
    )
    return ((candidate.token, candidate.piece) for candidate in candidates)


class Text:
    """Reads a lane's text by its pieces. Where a piece is half a character, or may be silent, both ways are kept."""

    def __init__(self) -> None:
        self.cycles: list[tuple[int, tuple[str, ...], str]] = []  # number, pieces, text

    def take(self, event: Committed) -> None:
        self.cycles.append((event.cycle, event.pieces, event.text))

    @property
    def written(self) -> str:
        return "".join(text for _, _, text in self.cycles)

    def check(self, stops: bool, ended: bool) -> int | None:
        """The first cycle whose text is not that of its pieces; None where all are.

        With `stops`, or halves of characters, text may be held back for a later cycle; nothing is once it `ended`.
        """
        text, ways, told, number = self.written, {0}, 0, 0
        held = stops or any(BYTES.fullmatch(piece) for _, pieces, _ in self.cycles for piece in pieces)
        for number, pieces, own in self.cycles:
            told += len(own)
            for piece in pieces:
                ways = {after for way in ways for after in reading(text, way, piece, stops)}
                if len(ways) > MAX_WAYS:
                    return None
            if not ways or (told > max(ways) if held else told not in ways):
                return number
        return number if ended and len(text) not in ways else None


def reading(text: str, at: int, piece: str, stops: bool) -> Iterator[int]:
    """Where the text may go on after `piece`. A stop string may have cut the last one."""
    if BYTES.fullmatch(piece):
        yield from range(at, min(len(text), at + len(piece) // 6, at + MAX_WAYS) + 1)
    if text.startswith(piece, at):
        yield at + len(piece)
    elif stops and len(text) - at < len(piece) and piece.startswith(text[at:]):
        yield len(text)
    if SILENT.fullmatch(piece):
        yield at
