"""What every reader of a trace may rely on: drafts are trees, each is checked whole, no lane is longer than a run.

Only a server's lane may leave tokens unnamed, or p and q out.
"""

from __future__ import annotations

import re
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
        server = event.lane in self.servers
        if isinstance(event, Drafted | Committed):
            if UNNAMED in event.tokens and not server:
                raise ValueError(TranslatableText("a token is unnamed, and the lane is not a server's"))
            if len(event.tokens) != len(event.pieces):
                raise ValueError(TranslatableText("tokens and pieces differ in number"))
        if isinstance(event, Started) and event.server:
            self.servers.add(event.lane)
        elif isinstance(event, Drafted):
            if len(event.tokens) > MAX_NODES:
                raise ValueError(TranslatableText("the draft holds more than {limit} tokens", limit=MAX_NODES))
            if len(Tree(event.parents).parents) != len(event.tokens):
                raise ValueError(TranslatableText("the draft's parents do not form a tree"))
            self.drafted[event.lane] = len(event.tokens)
        elif isinstance(event, Verified):
            if [x.node for x in event.positions] != list(range(self.drafted[event.lane])):
                raise ValueError(TranslatableText("what was checked is not what was drafted"))
            check_server(event) if server else check_own(event)
        elif isinstance(event, Committed):
            del self.drafted[event.lane]
            self.tokens[event.lane] += len(event.tokens)
            if self.tokens[event.lane] > MAX_TOKENS:
                raise ValueError(TranslatableText("a lane holds more than {limit} tokens", limit=MAX_TOKENS))


def check_own(event: Verified) -> None:
    for x in event.positions:
        if x.p is None or x.q is None:
            field = "p" if x.p is None else "q"
            raise ValueError(TranslatableText("{name} lacks {field!r}", name="Position", field=field))


def check_server(event: Verified) -> None:
    """A server's draft is a chain: nothing after a rejection is judged."""
    fates = "".join(x.status[0] for x in event.positions)  # a, r or d
    if not re.fullmatch("a*(rd*)?", fates):
        raise ValueError(TranslatableText("a server's draft was judged after a rejection"))
