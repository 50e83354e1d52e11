"""GGUF files of small random models, written by the library `gguf` with llama.cpp's names and order."""

import functools
import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from tokenizers import pre_tokenizers
from torch import Tensor

from specdec.models.checkpoint import Weights
from tests.models import test_models

BASE: dict[str, Any] = {
    "vocab_size": 320, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8_192,
}  # fmt: skip
MODELS = {
    "llama": transformers.LlamaConfig(**BASE),
    "qwen2": transformers.Qwen2Config(**BASE, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**BASE, head_dim=128),
    "llama 3.1": transformers.LlamaConfig(**BASE, rope_parameters=LLAMA3),
}  # fmt: skip
KINDS = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL".split()
SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,)}


@functools.cache
def reference(name: str) -> Any:
    return test_models.reference(MODELS[name])


def coded(numbers: np.ndarray, kind: str) -> np.ndarray:
    """Its bytes; of kinds that the library only reads random ones, with scales that keep their numbers small."""
    known = gguf.GGMLQuantizationType[kind]
    if kind not in SCALES:
        return gguf.quants.quantize(numbers, known)
    count, width = gguf.GGML_QUANT_SIZES[known]
    blocks = np.random.default_rng(0).integers(0, 256, (numbers.size // count, width), np.uint8)
    for at in SCALES[kind]:
        blocks[:, at : at + 2] = np.full(1, 5e-5, np.float16).view(np.uint8)
    return blocks.reshape(*numbers.shape[:-1], -1)


def permuted(numbers: np.ndarray, heads: int, back: bool = False) -> np.ndarray:
    """As `LlamaModel.permute` of convert_hf_to_gguf.py, or undone."""
    shape, half = numbers.shape, numbers.shape[0] // heads // 2
    pairs = (half, 2) if back else (2, half)
    return numbers.reshape(heads, *pairs, *shape[1:]).swapaxes(1, 2).reshape(shape)


def write(path: Path, name: str, kind: str = "F32", words: Any = None, **more: Any) -> Weights:
    """The file of the model of that name; the state dict that its numbers stand for.

    `words(writer)` adds another tokenizer than that of bytes; `more` are fields, by their last name.
    """
    model = reference(name)
    config, arch = model.config, model.config.model_type
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    for key, value in more.items():
        writer.add_key_value(key.replace("__", "."), value, gguf.GGUFValueType.get_type(value))
    (words or bytes_as_words)(writer)
    if rope["rope_type"] == "llama3":
        inverse, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
        plain = 1 / rope["rope_theta"] ** (torch.arange(0, head_dim, 2) / head_dim)
        writer.add_tensor("rope_freqs.weight", (plain / inverse).numpy().astype(np.float32))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], config.num_hidden_layers)
    stands: Weights = {}
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        numbers, stored = tensor.numpy(), kind if tensor.dim() == 2 else "F32"
        heads = re.search(r"\.([qk])_proj\.", key) if arch == "llama" else None
        count = {"q": config.num_attention_heads, "k": config.num_key_value_heads}[heads[1]] if heads else 0
        numbers = permuted(numbers, count) if heads else numbers
        data = coded(numbers, stored)
        known = names.get_name(key, (".weight", ".bias"))
        writer.add_tensor(known, data, raw_dtype=gguf.GGMLQuantizationType[stored])
        read = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[stored]).reshape(numbers.shape)
        read = permuted(read, count, back=True) if heads else read
        stands[key] = torch.from_numpy(np.array(read))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stands


def bytes_as_words(writer: Any) -> None:
    """A byte-level tokenizer of three control tokens, 256 bytes, one merge and rows that no token belongs to."""
    tokens = ["<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "ĠĠ"]
    more = 320 - len(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens + [f"[PAD{i}]" for i in range(more)])
    writer.add_token_types([3, 3, 3, *[1] * 257, *[5] * more])
    writer.add_token_merges(["Ġ Ġ"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)


def logits(name: str, weights: Weights, tokens: list[int]) -> Tensor:
    model = transformers.AutoModelForCausalLM.from_config(MODELS[name]).eval().float()
    model.load_state_dict(weights, strict=not MODELS[name].tie_word_embeddings)
    model.tie_weights()
    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0]
