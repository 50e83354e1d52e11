"""A small target and its draft as others publish them, with a chat template: random weights, a real tokenizer."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from specdec.paths import ASSETS

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer_into(folder: Path, template: str | None = TEMPLATE) -> int:
    """The embedded family's tokenizer with two control tokens more, and the template; the size of its vocabulary."""
    path = ASSETS / "family" / "tokenizer" / "tokenizer.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    first = 1 + max(token for token in data["model"]["vocab"].values())
    first = max(first, 1 + max(token["id"] for token in data["added_tokens"]))
    for i, content in enumerate(("<|im_start|>", "<|im_end|>")):
        facts = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        data["added_tokens"].append({"id": first + i, "content": content, **facts, "special": True})
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return first + 2


def model_into(folder: Path, layers: int, template: str | None = TEMPLATE) -> Path:
    folder.mkdir(parents=True)
    count = tokenizer_into(folder, template)
    torch.manual_seed(layers)
    config = transformers.LlamaConfig(
        vocab_size=count, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=count - 1, pad_token_id=None,
    )  # fmt: skip
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def pair_into(folder: Path) -> tuple[Path, Path]:
    return model_into(folder / "target-2l", 2), model_into(folder / "draft-1l", 1)
