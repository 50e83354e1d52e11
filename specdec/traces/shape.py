"""Check the structure on which readers of a trace rely: drafts are trees, and a verification lists every drafted token.

Only a server's lane may have tokens without an id, or positions without p and q.
"""

from collections import Counter

from ..events import Committed, Drafted, Event, Started, UNNAMED, Verified
from ..messages import TranslatableText
from ..types import Tree

MAX_TRACE_DRAFT = 256  # most tokens of one draft in a file


class ShapeCheck:
    """Checks the events of a file one after the other. Raises ValueError if they cannot be a run."""

    def __init__(self) -> None:
        self.drafted: Counter[str] = Counter()  # lane -> tokens drafted in its current cycle
        self.servers: set[str] = set()  # lanes of servers

    def check(self, event: Event) -> None:
        server = event.lane in self.servers
        if isinstance(event, Drafted | Committed):
            if UNNAMED in event.tokens and not server:
                raise ValueError(TranslatableText("a token is unnamed, though the lane is not a server's"))
            if len(event.tokens) != len(event.pieces):
                raise ValueError(TranslatableText("tokens and pieces differ in number"))
        if isinstance(event, Started) and event.server:
            self.servers.add(event.lane)
        elif isinstance(event, Drafted):
            if len(event.tokens) > MAX_TRACE_DRAFT:
                raise ValueError(TranslatableText("the draft holds more than {limit} tokens", limit=MAX_TRACE_DRAFT))
            if len(Tree(event.parents).parents) != len(event.tokens):
                raise ValueError(TranslatableText("the draft's parents do not form a tree"))
            self.drafted[event.lane] = len(event.tokens)
        elif isinstance(event, Verified):
            if [x.node for x in event.positions] != list(range(self.drafted[event.lane])):
                raise ValueError(TranslatableText("the verified tokens are not the drafted tokens"))
            if not server and any(x.p is None or x.q is None for x in event.positions):
                raise ValueError(TranslatableText("a draft lacks p or q, though the lane is not a server's"))
        elif isinstance(event, Committed):
            del self.drafted[event.lane]
