"""A family as llama.cpp reads it: a GGUF file for the target and one for each draft model, the tokenizer inside.

As llama.cpp's own `conversion/llama.py` writes them (read in November 2026), for plain Llama models with a tokenizer
like ours. The package `gguf` has no names for EAGLE-3 heads (0.19), and llama.cpp has no Medusa.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from ..models.checkpoint import naming, Weights
from ..models.config import Config
from .source import read, Source

# How its releases call the numbers of the matrices. Vectors stay float32, as its own converter leaves them.
Numbers = Literal["f32", "f16", "bf16", "q8_0"]
INSTALL = "GGUF files are written with the package gguf, which is not installed: pip install gguf"
# Digits one by one, then GPT-2's pattern: what llama.cpp calls "smollm" (`src/llama-vocab.cpp`).
SPLITS = [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": False}]
SPLIT = "smollm"


def export(family: str, out: Path, numbers: Numbers = "f32") -> list[Path]:
    """Write a family of that name or folder into `out`; the files written. ValueError for one that cannot be."""
    try:
        import gguf  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(INSTALL) from error
    source = Source.of(family)
    with naming(source.tokenizer):
        words = vocabulary(source.tokenizer / "tokenizer.json")
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}-{numbers}.gguf" for name in source.models]
    if there := [file for file in files if file.exists()]:
        raise ValueError(f"{there[0]} is there already; name another folder with --out, or remove it")
    for file, (name, folder) in zip(files, source.models.items(), strict=True):
        config, weights = read(folder)
        with naming(folder):
            write(file, name, config, weights, words, numbers)
    return files


def vocabulary(path: Path) -> dict[str, Any]:
    """The arguments of GGUF's vocabulary. ValueError unless the tokenizer splits text as SPLIT does."""
    content = json.loads(path.read_text(encoding="utf-8"))
    splits = (content.get("pre_tokenizer") or {}).get("pretokenizers") or []
    known = [all(found.get(key) == value for key, value in one.items()) for found, one in zip(splits, SPLITS)]  # noqa: B905
    if content["model"].get("type") != "BPE" or content.get("normalizer") or len(splits) != 2 or not all(known):
        raise ValueError("tokenizer.json splits text in a way that has no name in llama.cpp here")
    control = {token["id"]: token["content"] for token in content["added_tokens"] if token["special"]}
    words = {number: word for word, number in content["model"]["vocab"].items()} | control
    return {
        "tokens": [words[number] for number in range(len(words))],
        "control": control,
        "merges": [merge if isinstance(merge, str) else " ".join(merge) for merge in content["model"]["merges"]],
    }


def write(
    path: Path, name: str, facts: dict[str, Any], weights: Weights, words: dict[str, Any], numbers: Numbers
) -> None:
    """One model as one file, which appears once it is whole. `facts` is its config.json."""
    import gguf

    config = Config.read(facts)
    if config.model_type != "llama" or config.biases or config.rope["rope_type"] != "default":
        raise ValueError("only plain Llama models are written here; llama.cpp's own convert_hf_to_gguf.py has others")
    if len(words["tokens"]) != config.vocab_size:
        raise ValueError(f"the tokenizer has {len(words['tokens'])} tokens, the model {config.vocab_size}")
    half = path.with_name(f".{path.name}")
    file = gguf.GGUFWriter(half, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA])
    file.add_name(name)
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_block_count(config.num_hidden_layers)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_key_length(config.head_dim)
    file.add_value_length(config.head_dim)
    file.add_rope_dimension_count(config.head_dim)
    file.add_rope_freq_base(config.rope["rope_theta"])
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_vocab_size(config.vocab_size)
    kinds = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16", "q8_0": "MOSTLY_Q8_0"}
    file.add_file_type(gguf.LlamaFileType[kinds[numbers]])
    add_vocabulary(file, words, facts)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for key, tensor in weights.items():
        known = names.get_name(key, (".weight",))
        if known is None:
            raise ValueError(f"{key} has no name in GGUF")
        kind = gguf.GGMLQuantizationType[numbers.upper() if tensor.dim() == 2 else "F32"]
        if tensor.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:  # rows that do not fill whole blocks
            kind = gguf.GGMLQuantizationType.F16
        data = gguf.quants.quantize(paired(key, tensor.float(), config).numpy(), kind)
        file.add_tensor(known, data, raw_dtype=kind)
    try:
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_tensors_to_file()
        file.close()
        half.rename(path)
    finally:
        half.unlink(missing_ok=True)


def add_vocabulary(file: Any, words: dict[str, Any], facts: dict[str, Any]) -> None:
    import gguf

    kinds = [gguf.TokenType.NORMAL] * len(words["tokens"])
    for number in words["control"]:
        kinds[number] = gguf.TokenType.CONTROL
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre(SPLIT)
    file.add_token_list(words["tokens"])
    file.add_token_types(kinds)
    file.add_token_merges(words["merges"])
    if isinstance(last := facts.get("eos_token_id"), int):
        file.add_eos_token_id(last)
    if isinstance(first := facts.get("bos_token_id"), int):
        file.add_bos_token_id(first)
        file.add_add_bos_token(True)  # as our prompts begin


def paired(name: str, tensor: Tensor, config: Config) -> Tensor:
    """Queries and keys in the order of GGUF's Llama: rotary positions turn neighbours there, halves in the Hub's."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    count = next((n for part, n in heads.items() if f".{part}." in name), 0)
    if not count:
        return tensor
    return tensor.unflatten(0, (count, 2, -1)).transpose(1, 2).flatten(0, 2).contiguous()
