"""Train a multi-token-prediction layer on the frozen target.

DeepSeek-V3 (arXiv 2412.19437, section 2.2) trains such layers together with the target, one for each further token.
Here one layer learns every drafting step. Its first step reads the target's state, later steps the layer's own state.
"""

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb, LlamaMLP, LlamaRMSNorm

from .heads import divergence, log_distribution, Loss, Projections, TensorPair, weighted_sum

STEPS = 3  # drafted tokens in training


class Attention(Projections):
    """Lets position i attend to the first step's keys up to position i, and to its own key of each later step."""

    def forward(self, x: Tensor, rotary: TensorPair, steps: list[TensorPair]) -> Tensor:
        """Attend, and append this step's keys and values to `steps`."""
        rows, n, _ = x.shape
        q, k, v = (p(x).view(rows, n, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = apply_rotary_pos_emb(q, k, *rotary)
        q = q * q.shape[-1] ** -0.5
        steps.append((k, v))
        (keys, values), *later = steps
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = [(q @ keys.transpose(2, 3)).masked_fill(future, float("-inf"))]
        scores += [(q * k).sum(-1, keepdim=True) for k, _ in later]
        weights = torch.cat(scores, -1).float().softmax(-1).to(x.dtype)
        y = weights[..., :n] @ values
        for i, (_, v) in enumerate(later):
            y = y + weights[..., n + i : n + i + 1] * v
        return self.o_proj(y.transpose(1, 2).reshape(rows, n, -1))


class MTP(nn.Module):
    """The layer, with DeepSeek-V3's parameter names. Before training, it only normalises the target's state."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.enorm, self.hnorm, self.input_layernorm, self.post_attention_layernorm = (
            LlamaRMSNorm(width, eps) for _ in range(4)
        )
        self.eh_proj = nn.Linear(2 * width, width, bias=False)
        self.self_attn, self.mlp = Attention(config), LlamaMLP(config)
        self.shared_head = nn.ModuleDict({"norm": LlamaRMSNorm(width, eps)})
        with torch.no_grad():
            self.eh_proj.weight.zero_()[:, width:].fill_diagonal_(1.0)
            self.self_attn.o_proj.weight.zero_()
            self.mlp.down_proj.weight.zero_()

    def forward(self, embeddings: Tensor, last: Tensor, rotary: TensorPair) -> list[Tensor]:
        """Return normed states of every step s, [rows, n - STEPS, hidden] each. Position i predicts token i + s + 2.

        Position i reads the embedding of token i + s + 1.
        """
        count = embeddings.shape[1] - STEPS
        state, steps, normed = last[:, :count], list[TensorPair](), []
        for step in range(STEPS):
            places = tuple(table[:, step : step + count] for table in rotary)
            embedding = embeddings[:, step + 1 : step + 1 + count]
            state = self.eh_proj(torch.cat((self.enorm(embedding), self.hnorm(state)), -1))
            state = state + self.self_attn(self.input_layernorm(state), places, steps)
            state = state + self.mlp(self.post_attention_layernorm(state))
            normed.append(self.shared_head["norm"](state))
        return normed


class MTPLoss(Loss):
    def __init__(self, teacher: LlamaForCausalLM, layer: MTP, config: LlamaConfig) -> None:
        super().__init__(teacher, config)
        self.layer = layer

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None = None) -> Tensor:
        p = self.target(last[:, 1:])
        steps = self.layer(F.embedding(ids, self.embedding), last, self.rotary)
        q = [log_distribution(state @ self.output.T) for state in steps]
        return weighted_sum([divergence(p[:, i : i + part.shape[1]], part) for i, part in enumerate(q)])
