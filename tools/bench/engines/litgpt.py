"""LitGPT's own speculative decoding, `litgpt/generate/speculative_decoding.py`: a draft model.

Its `generate` leaves the first new token out of what it returns. Mended, that token stands there again, and nothing
else is changed: the rest of the text can then be judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN


def writer(job: Job) -> Write:
    from litgpt.generate import base
    from litgpt.generate import speculative_decoding as own

    target, draft, next_token = load(job.target), load(job.draft), own.next_token
    dropped: list[int] = []  # the first token of a text

    def noted(*args: Any, **options: Any) -> torch.Tensor:
        token = next_token(*args, **options)
        if args[0] is target:
            dropped[:] = token.tolist()
        return token

    own.next_token = noted

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        torch.manual_seed(params.seed)
        ids, end = torch.tensor(prompt), len(prompt) + params.max_tokens
        options: dict[str, Any] = {"temperature": params.temperature, "include_prompt": False}
        options |= {"top_k": params.top_k or None, "top_p": params.top_p}
        if job.method == PLAIN:
            return base.generate(target, ids, end, **options).tolist()  # type: ignore[no-any-return]
        tokens, _ = own.generate(draft, target, ids, end + 1, speculative_k=job.k, **options)
        return [*(dropped if job.mended else []), *tokens.flatten().tolist()][: params.max_tokens]

    return write


def load(folder: Path) -> Any:
    """Load a Llama of the Hub's layout in float32, with room for its whole context."""
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama
    from safetensors.torch import load_file
    from transformers import AutoConfig

    hub = AutoConfig.from_pretrained(folder)
    sizes = {"n_layer": hub.num_hidden_layers, "n_embd": hub.hidden_size, "intermediate_size": hub.intermediate_size}
    sizes |= {"n_head": hub.num_attention_heads, "n_query_groups": hub.num_key_value_heads, "head_size": hub.head_dim}
    sizes |= dict.fromkeys(("vocab_size", "padded_vocab_size"), hub.vocab_size)
    sizes |= {"block_size": hub.max_position_embeddings, "rope_base": int(hub.rope_parameters["rope_theta"])}
    model = GPT(Config.from_name("SmolLM2-135M", norm_eps=hub.rms_norm_eps, **sizes))  # a Llama of those sizes
    weights: dict[str, torch.Tensor] = {}
    copy_weights_hf_llama(model.config, {}, weights, load_file(folder / "model.safetensors"), dtype=torch.float32)
    model.load_state_dict(weights)
    model.set_kv_cache(batch_size=1)
    return model.eval()


ENGINE = Engine("LitGPT", "litgpt", (PLAIN, "draft_model"), writer, "the first token, which it drops, put back")
