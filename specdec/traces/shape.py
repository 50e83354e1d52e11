"""What every reader of a trace may rely on: drafts are trees, each is checked whole, no lane is longer than a run.

Only a server's lane may leave tokens unnamed, or p and q untold.
"""

from __future__ import annotations

from collections import Counter

from ..events import Committed, Drafted, Event, Started, UNNAMED, Verified
from ..types import MAX_TOKENS, TranslatableText, Tree

MAX_NODES = 256  # of one draft; the engine stays far below


class Shape:
    """Takes the events of a file in their order. ValueError where they are no run, before anything slow starts."""

    def __init__(self) -> None:
        self.drafted: Counter[str] = Counter()  # nodes that wait for their check, by lane
        self.tokens: Counter[str] = Counter()
        self.servers: set[str] = set()  # lanes that were watched from outside

    def take(self, event: Event) -> None:
        if isinstance(event, Started) and event.server:
            self.servers.add(event.lane)
        elif isinstance(event, Drafted):
            self.named(event)
            if len(event.tokens) > MAX_NODES:
                raise ValueError(TranslatableText("the draft holds more than {limit} tokens", limit=MAX_NODES))
            if not len(event.tokens) == len(event.pieces) == len(event.parents):
                raise ValueError(TranslatableText("the draft has not as many tokens as pieces and parents"))
            Tree(event.parents)
            self.drafted[event.lane] = len(event.tokens)
        elif isinstance(event, Verified):
            if [x.node for x in event.positions] != list(range(self.drafted[event.lane])):
                raise ValueError(TranslatableText("what was checked is not what was drafted"))
            self.told(event)
        elif isinstance(event, Committed):
            self.named(event)
            del self.drafted[event.lane]
            self.tokens[event.lane] += len(event.tokens)
            if len(event.tokens) != len(event.pieces):
                raise ValueError(TranslatableText("as many pieces as tokens must join the text"))
            if self.tokens[event.lane] > MAX_TOKENS:
                raise ValueError(TranslatableText("a lane holds more than {limit} tokens", limit=MAX_TOKENS))

    def named(self, event: Drafted | Committed) -> None:
        if UNNAMED in event.tokens and event.lane not in self.servers:
            raise ValueError(TranslatableText("a token has no name, and the lane is no server's"))

    def told(self, event: Verified) -> None:
        """Of a server p and q may be missing, and its draft is a chain: nothing after a rejection is judged."""
        if event.lane not in self.servers:
            for x in event.positions:
                if x.p is None or x.q is None:
                    raise ValueError(
                        TranslatableText("{name} lacks {field!r}", name="Position", field="p" if x.p is None else "q")
                    )
            return
        statuses = [x.status for x in event.positions]
        kept = next((i for i, status in enumerate(statuses) if status != "accepted"), len(statuses))
        if statuses[kept : kept + 1] == ["discarded"] or any(status != "discarded" for status in statuses[kept + 1 :]):
            raise ValueError(TranslatableText("a server's draft was judged after a rejection"))
