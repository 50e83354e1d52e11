"""How often the host waits for a device: counted, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from specdec.bench.measure import Setting
from specdec.events import Event
from specdec.families.zoo import Family
from specdec.figures.stats import LaneStats
from specdec.gpu.lane import generate
from specdec.lanes.race import SPECULATIVE, tasks

# What float(x), x.item(), bool(x) and results of unknown size become. In inference mode `item` stays what it is.
WAITS = {
    "_local_scalar_dense", "item", "is_nonzero", "equal", "allclose", "nonzero", "argwhere", "masked_select",
    "_unique2", "unique_dim", "unique_consecutive", "bincount",
}  # fmt: skip


class HostRead(AssertionError):
    """The host would have to wait here."""


class HostReads(TorchDispatchMode):
    """Counts such operations, or refuses them."""

    def __init__(self, refuse: bool) -> None:
        super().__init__()
        self.refuse, self.count = refuse, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in WAITS:
            self.count += 1
            if self.refuse:
                raise HostRead(f"{func} makes the host wait")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_host_reads() -> Iterator[None]:
    with HostReads(refuse=True):
        yield


def host_reads(body: Callable[[], object]) -> int:
    with HostReads(refuse=False) as watch:
        body()
    return watch.count


def host_syncs(family: Family, setting: Setting, prompt: str, tokens: int) -> float:
    """How often a cycle reads numbers off the device, where a GPU's host has to wait: in captured graphs once."""
    task = tasks(family, prompt, setting.drafter, setting.k, setting.params(tokens, 0), details=False)
    events: list[Event] = []
    reads = host_reads(lambda: events.extend(generate(task[SPECULATIVE])))
    lane = LaneStats.of(events, SPECULATIVE)
    in_graphs = family.target.device.startswith("cuda") and lane.eager is None
    return round(reads / (lane.cycles + 1) + in_graphs, 2)
