"""Let lanes take turns: the lane whose clock shows the least time runs the next cycle.

So the clocks advance together, and the events always show the true speed-up. Clocks of waiting lanes stand still.
"""

import contextlib
from collections.abc import Generator, Iterable

from ..events import Committed, Event, Failed, PEER


def interleave(lanes: dict[str, Generator[Event, None, None]]) -> Generator[Event, None, None]:
    """Yield the lanes' events, one whole cycle at a time. Each clock counts from the lane's first token."""
    clocks, first_at = dict.fromkeys(lanes, 0.0), dict[str, float]()
    running = list(lanes)
    with contextlib.ExitStack() as stack:
        for lane in lanes.values():
            stack.enter_context(contextlib.closing(lane))
        while running:
            lane_behind = min(running, key=lambda name: clocks[name])
            for event in lanes[lane_behind]:
                yield event
                if isinstance(event, Committed):
                    clocks[lane_behind] = event.at - first_at.setdefault(lane_behind, event.at)
                    break
            else:
                running.remove(lane_behind)


def broken_off(events: Iterable[Event]) -> Failed | None:
    """Return the error that ended a lane of ours, if any. The peer's does not count: our lanes went on."""
    return next((e for e in events if isinstance(e, Failed) and e.fatal and e.lane != PEER), None)
