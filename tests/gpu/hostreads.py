"""Refuse or count the operations at which a GPU's host would wait for the device."""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

# What float(x), x.item(), bool(x) and results of unknown size become.
WAITS = {
    "_local_scalar_dense", "item", "is_nonzero", "equal", "allclose", "nonzero", "argwhere", "masked_select",
    "_unique2", "unique_dim", "unique_consecutive", "bincount",
}  # fmt: skip


class HostReads(TorchDispatchMode):
    def __init__(self, refuse: bool = True) -> None:
        super().__init__()
        self.refuse, self.count = refuse, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in WAITS:
            self.count += 1
            if self.refuse:
                raise AssertionError(f"{func} makes the host wait")
        return func(*args, **(kwargs or {}))


def host_reads(body: Callable[[], object]) -> int:
    with HostReads(refuse=False) as watch:
        body()
    return watch.count
