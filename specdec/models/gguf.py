"""Read a GGUF file like a checkpoint: derive a config.json from its header, and read its tensors one by one.

Tensor names, header fields and the row order of queries and keys follow llama.cpp's `convert_hf_to_gguf.py`. The
package `gguf` dequantises.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from .gguf_header import ARCHITECTURES, Header
from .grouped import GROUP, Grouped

CHUNK = 2**20  # weights that are dequantised at once
IN_LAYERS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTSIDE_LAYERS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
DIVISORS = "rope_freqs.weight"  # the divisors of Llama 3's rotary frequencies
BLOCKS = {"Q4_0": (4, 8, 1), "Q4_1": (4, 0, 2), "Q8_0": (8, 128, 1)}  # bits of a code, zero point, float16s in a block
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8_192}


def config(header: Header) -> dict[str, Any]:
    field, heads, width = header.of_model, header.of_model("attention.head_count"), header.of_model("embedding_length")
    architecture = header.value("general.architecture")
    head_dim = field("attention.key_length", field("rope.dimension_count", width // heads))
    facts = {
        "model_type": architecture,
        "vocab_size": header.entries["token_embd.weight"].shape[0],
        "hidden_size": width,
        "intermediate_size": field("feed_forward_length"),
        "num_hidden_layers": field("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": field("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": field("attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": field("context_length"),
        "tie_word_embeddings": "output.weight" not in header.entries,
        "attention_bias": "blk.0.attn_q.bias" in header.entries,
        "mlp_bias": False,
        "rope_parameters": rotary(header, head_dim),
    }
    for name in ("bos", "eos"):
        if (token := header.fields.get(f"tokenizer.ggml.{name}_token_id")) is not None:
            facts[f"{name}_token_id"] = token
    return facts


def rotary(header: Header, head_dim: int) -> dict[str, Any]:
    """Return the parameters of the rotary position embeddings. Raises ValueError if the scaling is not supported."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": header.of_model("rope.freq_base", 10_000.0)}
    if DIVISORS in header.entries:
        return rope | llama3(header, head_dim, rope["rope_theta"])
    scaling = header.of_model("rope.scaling.type", "none")
    factor = header.of_model("rope.scaling.factor", header.of_model("rope.scale_linear", 1.0))
    if scaling not in ("none", "linear") or factor != 1.0:
        raise ValueError(f"rotary scaling ({scaling}, factor {factor:g}) is not supported in GGUF files")
    return rope


def llama3(header: Header, head_dim: int, theta: float) -> dict[str, Any]:
    """Return Llama 3's rotary scaling. The file has a divisor for each frequency; the largest divisor is the factor."""
    divisors = read_tensor(header, DIVISORS)
    low, high, original = LLAMA3.values()
    factor = float(divisors.max())
    rotations = original / (2 * math.pi * theta ** (torch.arange(0, head_dim, 2) / head_dim))
    smooth = ((rotations - low) / (high - low)).clamp(0, 1)
    if not torch.allclose(divisors, 1 / ((1 - smooth) / factor + smooth), rtol=1e-3):
        raise ValueError(f"{DIVISORS} does not hold the divisors of Llama 3, and no others are supported")
    return {"rope_type": "llama3", "factor": factor} | LLAMA3


class Stored(Mapping[str, Tensor]):
    """Maps the Hub's tensor names to weights. Every access reads a tensor and dequantises it to float32.

    `meta_tensors` have the same names and shapes, but no data: they are on torch's meta device.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.architecture = header.fields["general.architecture"]
        self.names = {hub_name(name): name for name in header.entries if name != DIVISORS}
        self.meta_tensors = {
            name: torch.empty(header.entries[gguf_name].shape, device="meta") for name, gguf_name in self.names.items()
        }

    def __getitem__(self, name: str) -> Tensor:
        return self._in_hub_order(name, read_tensor(self.header, self.names[name]))

    def _in_hub_order(self, name: str, rows: Tensor) -> Tensor:
        """Reorder a Llama's query and key rows: in GGUF, rotary pairs are adjacent; on the Hub, half a head apart."""
        match = re.search(r"self_attn\.([qk])_proj\.", name)
        if match is None or self.architecture != "llama":
            return rows
        heads = self.header.of_model("attention.head_count")
        if match[1] == "k":
            heads = self.header.of_model("attention.head_count_kv", heads)
        reordered: Tensor = rows.unflatten(0, (heads, -1, 2)).transpose(1, 2)
        return reordered.reshape(rows.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def codes(self, name: str) -> Grouped:
        """Return a matrix as the file's own codes. Raises ValueError for a quantisation that `BLOCKS` lacks."""
        return read_codes(self.header, self.names[name]).rearrange(lambda rows: self._in_hub_order(name, rows))


def hub_name(name: str) -> str:
    """Translate a GGUF tensor name to the Hub's. Raises ValueError if no supported model has such a tensor."""
    if name in OUTSIDE_LAYERS:
        return OUTSIDE_LAYERS[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in IN_LAYERS:
        raise ValueError(f"the file holds {name}, which no model of {', '.join(ARCHITECTURES)} has")
    return f"model.layers.{match[1]}.{IN_LAYERS[match[2]]}.{match[3]}"


def read_tensor(header: Header, name: str) -> Tensor:
    import numpy as np
    from gguf import GGMLQuantizationType, quants

    entry = header.entries[name]
    rows, columns = math.prod(entry.shape[:-1]), entry.shape[-1]
    row_bytes, kind = entry.size // rows, GGMLQuantizationType(entry.kind)
    weights = torch.empty(rows, columns)
    rows_at_once = max(1, CHUNK // columns)
    with header.path.open("rb") as file:
        file.seek(entry.start)
        for first in range(0, rows, rows_at_once):
            count = min(rows_at_once, rows - first)
            data = np.fromfile(file, np.uint8, count * row_bytes).reshape(count, row_bytes)
            weights[first : first + count] = torch.from_numpy(quants.dequantize(data, kind).copy())
    return weights.view(entry.shape)


def read_codes(header: Header, name: str) -> Grouped:
    """Read a matrix without dequantising it. Raises ValueError for a quantisation that `BLOCKS` lacks.

    A block (`ggml-common.h`) has a scale, in Q4_1 also a minimum, and 32 codes.
    """
    import numpy as np
    from gguf import GGMLQuantizationType

    entry = header.entries[name]
    kind = GGMLQuantizationType(entry.kind).name
    if kind not in BLOCKS:
        raise ValueError(f"{name} is {kind}; only {', '.join(BLOCKS)} can be multiplied as stored; choose int8")
    bits, zero, float_count = BLOCKS[kind]
    data = torch.from_numpy(np.fromfile(header.path, np.uint8, entry.size, offset=entry.start))
    blocks = data.view(math.prod(entry.shape[:-1]), entry.shape[-1] // GROUP, -1)
    float_bytes, codes = blocks.tensor_split([2 * float_count], -1)
    floats = float_bytes.contiguous().view(torch.float16)  # [out, in / 32, float_count]
    codes = torch.cat([codes & 15, codes >> 4], -1) if bits == 4 else codes ^ 128  # int8 as uint8, where 128 means 0
    scales, *minima = (part.contiguous() for part in floats.unbind(-1))
    return Grouped(codes.flatten(1), scales, minima[0] if minima else None, zero, bits)
