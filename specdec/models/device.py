"""torch's settings for an NVIDIA GPU. They hold for the whole process, other libraries' models included."""

from __future__ import annotations

import torch


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
