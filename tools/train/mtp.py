"""The multi-token-prediction layer on the frozen target, trained as it will be used: chained on its own state.

DeepSeek-V3 (arXiv 2412.19437, section 2.2) trains such layers with the target, one for each further token. Here, as
engines use theirs, one layer serves every step: first it reads the target's last states, then twice its own.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm, LlamaRotaryEmbedding

from specdec.training.loss import divergence

from .draft import log_distribution
from .eagle3 import Attention, DECAY, Pair, STEPS


class MTP(nn.Module):
    """Parameters under DeepSeek-V3's names. At first it passes the target's state on to the shared output matrix."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.enorm, self.hnorm, self.input_layernorm, self.post_attention_layernorm = (
            LlamaRMSNorm(width, eps) for _ in range(4)
        )
        self.eh_proj = nn.Linear(2 * width, width, bias=False)
        self.self_attn, self.mlp = Attention(config, width), LlamaMLP(config)
        self.shared_head = nn.ModuleDict({"norm": LlamaRMSNorm(width, eps)})
        with torch.no_grad():
            self.eh_proj.weight.zero_()[:, width:].fill_diagonal_(1.0)
            self.self_attn.o_proj.weight.zero_()
            self.mlp.down_proj.weight.zero_()

    def forward(self, words: Tensor, last: Tensor, rotary: Pair) -> list[Tensor]:
        """Normed states of every step: row i of step s is for token i + s + 2.  # [rows, n, hidden] -> n - STEPS rows

        Row i reads the target's last state at token i, later its own, beside the word of token i + s + 1.
        """
        count = words.shape[1] - STEPS
        state, seen, normed = last[:, :count], list[Pair](), []
        for step in range(STEPS):
            places = tuple(table[:, step : step + count] for table in rotary)
            word = words[:, step + 1 : step + 1 + count]
            state = self.eh_proj(torch.cat((self.enorm(word), self.hnorm(state)), -1))
            state = state + self.self_attn(self.input_layernorm(state), places, seen)
            state = state + self.mlp(self.post_attention_layernorm(state))
            normed.append(self.shared_head["norm"](state))
        return normed


def build(teacher: LlamaForCausalLM, seed: int) -> tuple[LlamaConfig, MTP]:
    torch.manual_seed(seed)
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers, config.num_key_value_heads = 1, config.num_attention_heads
    config.architectures, config.name_or_path = None, ""
    return config, MTP(config).bfloat16()


class MTPLoss:
    """The divergence from the target's distribution, at every step of a draft."""

    def __init__(self, teacher: LlamaForCausalLM, layer: MTP, config: LlamaConfig, compiled: bool = True) -> None:
        self.layer, self.words = layer, teacher.model.embed_tokens.weight.detach().clone()
        self.output = teacher.lm_head.weight.detach().clone()
        places = torch.arange(config.max_position_embeddings, device=self.words.device)[None]
        self.rotary = LlamaRotaryEmbedding(config).to(places.device)(self.words, places)
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, batch: tuple[Tensor, ...], step: int) -> Tensor:
        return self.run(*batch)

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:  # [rows, length], [rows, length, hidden]
        with torch.no_grad():
            p = log_distribution(last[:, 1:] @ self.output.T)
        total = torch.zeros((), device=ids.device)
        for step, state in enumerate(self.layer(F.embedding(ids, self.words), last, self.rotary)):
            q = log_distribution(state @ self.output.T)
            total = total + DECAY**step * divergence(p[:, step : step + q.shape[1]], q)
        return total
