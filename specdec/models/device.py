"""What an NVIDIA GPU needs: torch's process-wide settings, and the faster order of a matrix in memory."""

from __future__ import annotations

from functools import cache

import torch
from torch import mm, Tensor

ROWS = (1, 5)  # a plain step, and the check of four drafts
WIDEST = 2**15  # outputs; a larger matrix is judged by its first ones


def configure_cuda(device: str) -> None:
    """Set torch's process-wide options, which hold for other libraries' models, too. Every model there calls it."""
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
    return device != "cpu" or bool(torch.cpu._is_avx512_bf16_supported())


def outputs_first(matrix: Tensor) -> bool:
    """Whether products with [out, in] `matrix` are faster than with its copy in [in, out]: never on a CPU.

    cuBLAS's choice depends on shape, type, GPU and release, so both are timed, once for each shape.
    """
    if matrix.device.type != "cuda":
        return False
    return times_faster(min(matrix.shape[0], WIDEST), matrix.shape[1], matrix.dtype, matrix.device)


@cache
def times_faster(outputs: int, inputs: int, dtype: torch.dtype, device: torch.device) -> bool:
    try:
        from triton.testing import do_bench  # it empties the GPU's cache before each product

        stored = torch.randn(outputs, inputs, device=device, dtype=dtype)
        orders = stored.t(), stored.t().contiguous()
        rows = [torch.randn(count, inputs, device=device, dtype=dtype) for count in ROWS]
        first, second = (sum(do_bench(lambda: mm(x, one), 5, 25) for x in rows) for one in orders)  # noqa: B023
    except (ImportError, RuntimeError):  # no Triton, no memory left
        return False
    return bool(first < second)
