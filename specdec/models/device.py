"""Configure torch for an NVIDIA GPU, and choose the faster order of a matrix in memory."""

from __future__ import annotations

from functools import cache

import torch
from torch import mm, Tensor

ROWS = (1, 5)  # rows of a plain step, and of the verification of four drafts
WIDEST = 2**15  # outputs; of a larger matrix only so many are timed


def configure_cuda(device: str) -> None:
    """Set torch's options, which apply to the whole process. Every model on a GPU calls this."""
    if torch.device(device).type != "cuda":
        return
    # cuDNN's attention, torch's default on Hopper and Blackwell, takes half a second to plan for every new length.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # The rounding of bfloat16 partial sums depends on the number of rows, so greedy texts would differ more often.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def multiplies_bfloat16(device: str) -> bool:
    """Whether the device multiplies bfloat16 in hardware. A T4 and older cards emulate it, slower than float32."""
    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device != "cpu" or bool(torch.cpu._is_avx512_bf16_supported())


def outputs_first(matrix: Tensor) -> bool:
    """Whether products are faster with `matrix` in the order [out, in] than [in, out]; False on a CPU.

    This depends on shape, type, GPU and cuBLAS release, so both are timed, once for each shape.
    """
    if matrix.device.type != "cuda":
        return False
    return outputs_first_is_faster(min(matrix.shape[0], WIDEST), matrix.shape[1], matrix.dtype, matrix.device)


@cache
def outputs_first_is_faster(outputs: int, inputs: int, dtype: torch.dtype, device: torch.device) -> bool:
    try:
        from triton.testing import do_bench  # clears the GPU's cache before each product

        stored = torch.randn(outputs, inputs, device=device, dtype=dtype)
        orders = stored.t(), stored.t().contiguous()
        rows = [torch.randn(count, inputs, device=device, dtype=dtype) for count in ROWS]
        first, second = (sum(do_bench(lambda: mm(x, order), 5, 25) for x in rows) for order in orders)  # noqa: B023
    except (ImportError, RuntimeError):  # Triton is missing, or memory
        return False
    return bool(first < second)
