"""What is asked of Triton's kernels, in a process that interprets them (see `test_kernels.py`)."""

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from specdec.gpu.graphs import StaticDecoder
from specdec.gpu.ops import Operations
from specdec.gpu.trial import difference, noise
from specdec.models.config import Config
from specdec.models.folding import Layer, RMSNorm
from specdec.models.transformer import Transformer

EPS = 0.1  # of the norms: so much that a norm without it is another


def set_up(cache: str) -> None:
    """Triton asks while it is imported whether it is to interpret."""
    os.environ |= {"TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    dtype: torch.dtype = torch.float32
    heads: int = 4
    kv_heads: int = 2
    size: int = 16
    rows: int = 3
    start: int = 40
    bucket: int = 64
    window: int | None = None
    bias: bool = False
    norm: bool = True
    prenormed: bool = False  # before the products, not after them
    by_length: bool = True  # as on a CPU
    width: int = 96
    inner: int = 80

    def layer(self) -> Layer:
        like, none = torch.zeros(1, dtype=self.dtype), torch.zeros(0)
        bias = noise((self.heads + 2 * self.kv_heads) * self.size, like=like) if self.bias else None
        norm = noise(self.heads + self.kv_heads, 1, self.size, like=like) if self.norm else None
        return Layer(none, bias, none, None, norm, none, none, self.window)

    def operations(self, kind: type[Operations]) -> Operations:
        norms = (RMSNorm(width, EPS, self.by_length) for width in (self.width, self.size))
        return kind(self.heads, self.kv_heads, self.size, *norms)


@lru_cache
def kernels() -> Any:
    import triton.language as tl
    from triton.runtime import interpreter

    from specdec.gpu import kernels

    builder, convert = type(interpreter.interpreter_builder), interpreter._convert_float
    multiply = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return multiply(self, widened(a), widened(b), *rest)

    def convert_float(data: Any, given: Any, wanted: Any, mode: Any) -> Any:
        if (given, wanted) != (tl.float32, tl.bfloat16):
            return convert(data, given, wanted, mode)
        # To the nearest as a GPU rounds, where the interpreter would cut bits off.
        return torch.from_numpy(np.array(data)).bfloat16().view(torch.uint16).numpy()

    builder.create_dot, interpreter._convert_float = create_dot, convert_float
    return kernels


def widened(handle: Any) -> Any:
    """bfloat16 as float32, where the interpreter would multiply its bits as whole numbers."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    if handle.dtype.scalar != tl.bfloat16:
        return handle
    return TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)


@torch.inference_mode()
def distance(case: Case) -> float:
    stream = noise(case.rows, case.width, like=torch.zeros(1, dtype=case.dtype))
    pair = case.operations(kernels().Kernels), case.operations(Operations)
    return difference(*pair, case.layer(), stream, case.inner, case.start, case.bucket, case.prenormed)


@torch.inference_mode()
def unseen_and_broken() -> tuple[bool, bool]:
    """Whether attention is the same with NaN after the text, and whether a query of NaN gives NaN."""
    case, module = Case(start=20), kernels()
    ops = case.operations(module.Kernels)
    queries, stored = torch.randn(case.rows, case.heads, case.size), torch.randn(2 * case.kv_heads, 64, case.size)
    sight = ops.sight(20 + torch.arange(case.rows), 64, None, case.dtype)
    expected = ops.attend(queries, stored, sight)
    stored[:, 20 + case.rows :] = float("nan")
    same = torch.equal(ops.attend(queries, stored, sight), expected)
    queries[1] = float("nan")
    told = ops.attend(queries, stored, sight).isnan().all(1).tolist()
    return same, told == [False, True, False]


@torch.inference_mode()
def logits_apart(config: Config, weights: dict[str, torch.Tensor], text: list[int]) -> float:
    """How far the logits of a model are from its own: several rows, one, rolled back, in the last bucket."""
    whole, worst = Transformer(config, weights, torch.float32), 0.0
    decoder, cache = StaticDecoder(whole, 64), whole.new_cache(64)
    decoder.ops = kernels().Kernels.for_model(whole)
    decoder.prefill(text[:20])
    whole.forward(text[:20], cache)
    for start, tokens, bucket in ((20, text[20:24], 32), (22, text[5:6], 32), (23, text[7:9], 64)):
        cache.keep(start)
        expected = whole.forward(tokens, cache, rows=len(tokens))
        found = decoder.forward(torch.tensor(tokens), torch.tensor([start]), bucket)
        worst = max(worst, float((found - expected).abs().max()))
    return worst
