"""LitGPT's own speculative decoding, `litgpt/generate/speculative_decoding.py`: a draft model.

Its `generate` leaves the first new token out of what it returns. Mended, that token stands there again, and nothing
else is changed: the rest of the text can then be judged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Asked, Engine, PLAIN


def writer(asked: Asked) -> Write:
    from litgpt.generate import base
    from litgpt.generate import speculative_decoding as own

    target, draft = loaded(asked.target), loaded(asked.draft)
    first: list[int] = []
    next_token, decode = own.next_token, own.speculative_decoding

    def noted(model: Any, *inputs: Any, **options: Any) -> torch.Tensor:
        token = next_token(model, *inputs, **options)
        if model is target:
            first[:] = token.tolist()
        return token

    def counted(*inputs: Any, **options: Any) -> torch.Tensor:
        tokens = decode(*inputs, **options)
        drafted, accepted = asked.counts or [0, 0]
        asked.counts[:] = drafted + options["speculative_k"], accepted + len(tokens) - 1
        return tokens

    own.next_token, own.speculative_decoding = noted, counted

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        torch.manual_seed(params.seed)
        asked.counts.clear()
        ids, room = torch.tensor(prompt), len(prompt) + params.max_tokens
        options: dict[str, Any] = {"temperature": params.temperature, "include_prompt": False}
        options |= {"top_k": params.top_k or None, "top_p": params.top_p}
        if asked.method == PLAIN:
            return base.generate(target, ids, room, **options).tolist()  # type: ignore[no-any-return]
        tokens, _ = own.generate(draft, target, ids, room + 1, speculative_k=asked.k, **options)
        missing = first if asked.mended else []
        return [*missing, *tokens.flatten().tolist()][: params.max_tokens]

    return write


def loaded(folder: Path) -> Any:
    """A Llama in the Hub's layout, in float32, with room for its whole context."""
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama
    from safetensors.torch import load_file

    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = Config(
        name=folder.name, block_size=facts["max_position_embeddings"], n_layer=facts["num_hidden_layers"],
        n_embd=facts["hidden_size"], vocab_size=facts["vocab_size"], padded_vocab_size=facts["vocab_size"],
        norm_class_name="RMSNorm", norm_eps=facts["rms_norm_eps"], parallel_residual=False,
        n_head=facts["num_attention_heads"], head_size=facts["head_dim"], n_query_groups=facts["num_key_value_heads"],
        rotary_percentage=1.0, rope_base=int(facts["rope_parameters"]["rope_theta"]), bias=False,
        mlp_class_name="LLaMAMLP", intermediate_size=facts["intermediate_size"],
    )  # fmt: skip
    weights: dict[str, torch.Tensor] = {}
    found = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    copy_weights_hf_llama(config, {}, weights, found)
    model = GPT(config)
    model.load_state_dict(weights)
    model.set_kv_cache(batch_size=1)
    return model.eval()


ENGINE = Engine("LitGPT", "litgpt", (PLAIN, "draft_model"), writer, "the first token, which it drops, put back")
