"""Compare Triton's kernels with torch before their first use: a GPU can be too small, or their compiler missing."""

import os

import torch
from torch import Tensor

from ..models.folding import Layer
from ..models.transformer import Transformer
from .cuda import IN_PROCESS
from .ops import Operations

SWITCH = "SPECDEC_TRITON"  # environment variable: 0 switches the kernels off
LIMITS = {torch.float32: 1e-4, torch.bfloat16: 0.03}  # the largest allowed `difference`
ROWS = (1, 5, 17)  # new tokens in a pass: with 0, 4 and 16 drafted tokens
CAPACITY = 512  # positions of the cache in the comparison


def operations(model: Transformer) -> Operations:
    """Choose Triton's kernels if they run and compute the right numbers, otherwise torch's, with a `reason`."""
    if torch.device(model.device).type != "cuda":
        return Operations.for_model(model, "there is no CUDA device")
    if os.environ.get(SWITCH) == "0":
        return Operations.for_model(model, f"{SWITCH} is 0")
    try:
        from .kernels import Kernels
    except ImportError:
        return Operations.for_model(model, "Triton is not installed")
    kernels = Kernels.for_model(model)
    reason = unfit(kernels, model)
    return Operations.for_model(model, reason) if reason else kernels


def unfit(kernels: Operations, model: Transformer) -> str:
    """Return why the kernels cannot be used for `model`; "" if they can."""
    if model.dtype not in LIMITS:
        return f"Triton's kernels are not for {str(model.dtype).removeprefix('torch.')}"
    inner, width = model.config.intermediate_size, model.width
    # Layers of one kind run the same kernels.
    kinds = {(layer.qkv_bias is None, layer.head_norm is None, layer.window): layer for layer in model.layers}
    shape = kernels.heads, kernels.kv_heads, kernels.head_dim, inner, width
    key = (shape, frozenset(kinds), model.dtype, model.device)
    if key not in IN_PROCESS.unfit:
        reasons = (reason_against_layer(kernels, model, layer) for layer in kinds.values())
        IN_PROCESS.unfit[key] = next(filter(None, reasons), "")
    return IN_PROCESS.unfit[key]


@torch.inference_mode()
def reason_against_layer(kernels: Operations, model: Transformer, layer: Layer) -> str:
    plain = Operations.for_model(model)
    try:
        for n in ROWS:
            stream = noise(n, model.width, like=model.embedding)
            error = difference(kernels, plain, layer, stream, model.config.intermediate_size, CAPACITY // 2, CAPACITY)
            if not error <= LIMITS[model.dtype]:
                return f"Triton's kernels differ from torch by {error:.2g}"
    except Exception as error:  # Triton, its compiler and the driver raise errors of many classes
        return f"Triton's kernels do not run here: {type(error).__name__}: {error}"
    return ""


def difference(
    kernels: Operations,
    plain: Operations,
    layer: Layer,
    stream: Tensor,
    inner: int,
    start: int,
    bucket: int,
    prenormed: bool = False,
) -> float:
    """Return the largest relative difference between the results of two implementations for one layer.

    `stream` [n, hidden] holds new tokens at `start` in a cache of `bucket` positions. `plain` computes in float32: in
    bfloat16 torch's attention is up to 3 % wrong. With `prenormed`, `rotate` and `gate` do not apply the norm's factor.
    """
    n, size, qkv_heads = len(stream), plain.head_dim, plain.heads + 2 * plain.kv_heads
    inputs = (
        stream,
        noise(n, qkv_heads * size, like=stream),
        noise(n, plain.heads, size, like=stream) * size**-0.5,
        noise(2 * plain.kv_heads, bucket, size, like=stream),
        noise(n, 2 * inner, like=stream),
    )
    angle = noise(n, size // 2, like=stream).float()
    angles, places = torch.polar(torch.ones_like(angle), angle), start + torch.arange(n, device=stream.device)
    results = []
    for ops, dtype in ((kernels, stream.dtype), (plain, torch.float32)):
        stream_copy, product, queries, cache, gate_up = (x.to(dtype, copy=True) for x in inputs)
        written_cache, residual_stream = cache.clone(), None if prenormed else stream_copy
        queries_out = ops.rotate(product, residual_stream, layer, angles, written_cache, places)
        y = ops.attend(queries, cache, ops.sight(places, bucket, layer.window, dtype))
        results.append((queries_out, written_cache, y, ops.gate(gate_up, residual_stream)))
    return float(torch.stack([relative_error(a, b) for a, b in zip(*results, strict=True)]).max())  # NaN if any is NaN


def relative_error(actual: Tensor, expected: Tensor) -> Tensor:
    """Return the largest relative error. An error is divided by |entry| plus the root mean square of all entries."""
    exact = expected.double()
    return ((actual.double() - exact).abs() / (exact.abs() + exact.square().mean().sqrt())).max()


def noise(*shape: int, like: Tensor) -> Tensor:
    """Return normal random numbers, always the same ones for the same shape."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(like)
