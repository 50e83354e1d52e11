"""What an NVIDIA GPU is asked for: torch's settings, which hold for the whole process, other libraries' models too,
and how a matrix lies in memory. cuBLAS reads a few rows' product with one order faster than with the other. Which one
depends on the shape, the type, the GPU and the release, so it is measured, once for each shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import mm, Tensor

ROWS = (1, 5)  # a plain step, and the check of four drafts
WIDEST = 2**15  # outputs; a larger matrix is judged by its first ones
BEYOND_CACHE = 2**27  # bytes to go through, lest a GPU's cache holds the matrix
PRODUCTS = 20
ASIDE = 4_000_000  # clock ticks of a GPU, some ms: it waits meanwhile, so that no launch is timed

Seconds = Callable[[Tensor, list[Tensor]], float]


def settle(device: str) -> None:
    """Called by every model that is made there."""
    if torch.device(device).type != "cuda":
        return
    # cuDNN's attention, torch's first choice on Hopper and Blackwell, plans anew for every length: half a second each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Partial sums in bfloat16 round by how many rows there are: greedy texts would part more often.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def multiplies_bfloat16(device: str) -> bool:
    """In hardware. A T4 and older cards emulate it, far slower than float32."""
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu":
        return True
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def outputs_first(matrix: Tensor) -> bool:
    """Whether [out, in] `matrix` should stay in that order: not on a CPU, and not where it cannot be measured.

    On ZeroGPU models are loaded before there is a GPU: torch says `cuda` then, but has not started it.
    """
    if matrix.device.type != "cuda" or not torch.cuda.is_initialized():
        return False
    return measured(min(matrix.shape[0], WIDEST), matrix.shape[1], matrix.dtype, matrix.device)


@cache
def measured(outputs: int, inputs: int, dtype: torch.dtype, device: torch.device) -> bool:
    return faster(outputs, inputs, dtype, device, cuda_seconds)


def faster(
    outputs: int, inputs: int, dtype: torch.dtype, device: torch.device, seconds: Seconds
) -> bool:  # fmt: skip
    """Whether products with [out, in] take less time than with [in, out], by `seconds(x, matrices)`."""
    count = max(1, -(-BEYOND_CACHE // (outputs * inputs * dtype.itemsize)))
    try:
        numbers = torch.empty(count, outputs, inputs, device=device, dtype=dtype).normal_()
        with torch.inference_mode():
            stored = list(numbers.transpose(1, 2)), list(numbers.view(count, inputs, outputs))
            first, second = (sum(seconds(numbers[0, :rows].clone(), matrices) for rows in ROWS) for matrices in stored)
    except RuntimeError:  # no memory left, say
        return False
    return first < second


def cuda_seconds(x: Tensor, matrices: list[Tensor]) -> float:
    """Of `PRODUCTS` products, after a round of warming up."""
    for _ in range(2):
        torch.cuda._sleep(ASIDE)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for i in range(PRODUCTS):
            mm(x, matrices[i % len(matrices)])
        end.record()
        end.synchronize()
    return float(start.elapsed_time(end)) / 1000.0
