"""Configure torch for an NVIDIA GPU, and find out which memory layout of a matrix multiplies faster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import mm, Tensor

ROWS = (1, 5)  # rows of input in a plain decoding step, and in the verification of four drafted tokens
WIDEST = 2**15  # a matrix with more outputs than this is timed with only this many


def configure_cuda(device: str) -> None:
    """Set torch's options for the whole process. Every model on a GPU calls this function."""
    if torch.device(device).type != "cuda":
        return
    # cuDNN's attention, torch's default on Hopper and Blackwell, plans for half a second for each new sequence length.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Partial sums in bfloat16 round differently for one row and for five, so greedy texts would differ more often.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@dataclass
class Resources:
    """What the runs of one engine share beside the models."""

    threads: int = 0  # of torch on a CPU while a cycle is computed; 0: as many as the caller has
    idle: dict[Any, Any] = field(default_factory=dict)  # captured cycles of a GPU that wait for another run
    max_idle: int = 4
    peers: dict[Any, Any] = field(default_factory=dict)  # model -> the same checkpoint, loaded by transformers


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch compute with `count` threads inside the `with` (0: as many as before), then with as many as before."""
    before = torch.get_num_threads()
    if count not in (0, before):
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def multiplies_bfloat16(device: str) -> bool:
    """Return whether the device has bfloat16 hardware. Old GPUs (T4) emulate bfloat16, which is slower than float32."""
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device != "cpu" or bool(torch.cpu._is_avx512_bf16_supported())


def outputs_first(matrix: Tensor) -> bool:
    """Return whether products are faster if `matrix` is stored as [out, in] than as [in, out]; False on a CPU.

    The answer depends on shape, dtype, GPU and cuBLAS version, so both layouts are timed, once for each shape. On
    ZeroGPU models are loaded before there is a GPU: torch says `cuda` then, but has not started it.
    """
    if matrix.device.type != "cuda" or not torch.cuda.is_initialized():
        return False
    return outputs_first_is_faster(min(matrix.shape[0], WIDEST), matrix.shape[1], matrix.dtype, matrix.device)


@cache
def outputs_first_is_faster(outputs: int, inputs: int, dtype: torch.dtype, device: torch.device) -> bool:
    try:
        from triton.testing import do_bench  # clears the GPU's cache before each product

        matrix = torch.randn(outputs, inputs, device=device, dtype=dtype)
        layouts = matrix.t(), matrix.t().contiguous()
        batches = [torch.randn(count, inputs, device=device, dtype=dtype) for count in ROWS]
        first, second = (sum(do_bench(lambda: mm(x, y), 5, 25) for x in batches) for y in layouts)  # noqa: B023
    except (ImportError, RuntimeError):  # Triton is missing, or the GPU has no memory left
        return False
    return bool(first < second)
