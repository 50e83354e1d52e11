"""What every reader of a trace may rely on: drafts are trees, each is checked whole, no lane is longer than a run."""

from __future__ import annotations

from collections import Counter

from ..events import Committed, Drafted, Event, Verified
from ..types import MAX_TOKENS, Said, Tree

MAX_NODES = 256  # of one draft; the engine stays far below


class Shape:
    """Takes the events of a file in their order. ValueError where they are no run, before anything slow starts."""

    def __init__(self) -> None:
        self.drafted: Counter[str] = Counter()  # nodes that wait for their check, by lane
        self.tokens: Counter[str] = Counter()

    def take(self, event: Event) -> None:
        if isinstance(event, Drafted):
            if len(event.tokens) > MAX_NODES:
                raise ValueError(Said("the draft holds more than {limit} tokens", limit=MAX_NODES))
            if not len(event.tokens) == len(event.pieces) == len(event.parents):
                raise ValueError(Said("the draft has not as many tokens as pieces and parents"))
            Tree(event.parents)
            self.drafted[event.lane] = len(event.tokens)
        elif isinstance(event, Verified):
            if [x.node for x in event.positions] != list(range(self.drafted[event.lane])):
                raise ValueError(Said("what was checked is not what was drafted"))
        elif isinstance(event, Committed):
            del self.drafted[event.lane]
            self.tokens[event.lane] += len(event.tokens)
            if len(event.tokens) != len(event.pieces):
                raise ValueError(Said("as many pieces as tokens must join the text"))
            if self.tokens[event.lane] > MAX_TOKENS:
                raise ValueError(Said("a lane holds more than {limit} tokens", limit=MAX_TOKENS))
