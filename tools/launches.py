"""How many kernels a step launches on a GPU, counted without one: on the device `meta`, whose tensors have no content.

Each operation of torch counts as one, except those that only look at a tensor in another way (none) and those known to
be more. Some may be more on a given GPU, as a sort is, or a product that cuBLAS splits: of these each counts as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from specdec.gpu.cycle import Cycle
from specdec.gpu.drafting import DraftModelSteps
from specdec.gpu.graphs import StaticDecoder
from specdec.models.config import Config
from specdec.models.transformer import tensors_of, Transformer
from specdec.types import SamplingParams

SILENT = {"empty", "new_empty", "empty_like", "lift_fresh", "detach"}  # allocations


class Launches(TorchDispatchMode):
    """Counts by name what runs inside. With `kernels`, Triton's are counted instead of launched."""

    def __init__(self, kernels: bool) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()
        self.kernels = kernels

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in SILENT and not looks(func, args, result):
            self.count[name] += 1 + copies(name, args)
        return result

    def __enter__(self) -> Launches:
        if self.kernels:
            from specdec.gpu import kernels

            self._launch, kernels.launch = kernels.launch, self._started
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self.kernels:
            from specdec.gpu import kernels

            kernels.launch = self._launch

    def _started(self, kernel: Any, grid: tuple[int, ...], *args: Any, **sizes: Any) -> None:
        self.count[kernel.__name__] += 1


def looks(func: Any, args: Any, result: Any) -> bool:
    """Whether the results are the arguments' own memory, and nothing was written there."""
    read = {tensor.untyped_storage()._cdata for tensor in tree_leaves(args) if isinstance(tensor, Tensor)}
    made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, Tensor)]
    return not func._schema.is_mutable and all(tensor.untyped_storage()._cdata in read for tensor in made)


def copies(name: str, args: Any) -> int:
    """What CUDA's version does first: `addmm` copies a matrix that is added, a norm what is not contiguous."""
    if name == "addmm":
        return int(args[0].dim() == 2)
    return int(name == "rms_norm" and not args[0].is_contiguous())


def counted(step: Callable[[], object], kernels: bool) -> Counter[str]:
    with torch.inference_mode(), Launches(kernels) as launches:
        step()
    return launches.count


def hollow(config: Config, dtype: torch.dtype) -> Transformer:
    """A model of that configuration without content."""
    weights = {name: torch.empty(shape, device="meta") for name, shape in tensors_of(config, {}).items()}
    return Transformer(config, weights, dtype, "meta")


def with_kernels(*decoders: StaticDecoder) -> None:
    from specdec.gpu.kernels import Kernels

    for decoder in decoders:
        decoder.ops = Kernels.of(decoder.model)


def of_a_layer(config: Config, dtype: torch.dtype, rows: int, bucket: int, kernels: bool) -> Counter[str]:
    """The launches of one layer of a step over `rows` tokens, by name; `kernels` says whether Triton's are used."""
    decoder = StaticDecoder(hollow(config, dtype), bucket)
    if kernels:
        with_kernels(decoder)
    ids, start = torch.empty(rows, dtype=torch.long, device="meta"), torch.empty(1, dtype=torch.long, device="meta")
    two, one = (counted(partial(decoder.run_layers, ids, start, bucket, 0, last), kernels) for last in (2, 1))
    return two - one


def of_a_cycle(
    target: Config, draft: Config | None, dtype: torch.dtype, k: int, bucket: int, params: SamplingParams, kernels: bool
) -> dict[str, int]:  # fmt: skip
    """The launches of drafting `k` tokens with a draft model, and of their check and the accept step."""
    cycle = Cycle(hollow(target, dtype), hollow(draft, dtype) if draft else None, k, bucket, params)
    if kernels:
        with_kernels(cycle.target, *([cycle.steps.decoder] if isinstance(cycle.steps, DraftModelSteps) else []))
    return {name: counted(step, kernels).total() for (name, *_), step in cycle._plan(bucket, k)}
