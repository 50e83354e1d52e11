"""The EAGLE-3 head, trained as it will be used: fed with its own output for further steps (arXiv 2503.01840).

*Training-time test*: at every token the head first reads the target's features, then twice its own output in their
place, with the true tokens beside it; each step is compared with the target's distribution one token further on.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import (
    apply_rotary_pos_emb,
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
)

from specdec.training.loss import divergence

from .draft import log_distribution

STEPS = 3
DECAY = 0.8  # weight of a step in the loss, relative to the step before
VOCABULARY = 3584  # the tokens that the head can draft: the most frequent ones, 99.6 % of what it learns on

Pair = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """Over inputs of `read` numbers. EAGLE-3 reads [embedding, feature], twice as wide as what comes out."""

    def __init__(self, config: LlamaConfig, read: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(read, width, bias=False) for _ in range(3))
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, rotary: Pair, steps: list[Pair]) -> Tensor:
        """A token sees the first step's keys up to its own, and of later steps its own only: its draft so far."""
        rows, n, _ = x.shape
        q, k, v = (p(x).view(rows, n, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = apply_rotary_pos_emb(q, k, *rotary)
        q = q * q.shape[-1] ** -0.5
        steps.append((k, v))
        (keys, values), *own = steps
        hidden = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = [(q @ keys.transpose(2, 3)).masked_fill(hidden, float("-inf"))]
        scores += [(q * k).sum(-1, keepdim=True) for k, _ in own]
        shares = torch.cat(scores, -1).float().softmax(-1).to(x.dtype)
        y = shares[..., :n] @ values
        for i, (_, v) in enumerate(own):
            y = y + shares[..., n + i : n + i + 1] * v
        return self.o_proj(y.transpose(1, 2).reshape(rows, n, -1))


class Layer(nn.Module):
    """A decoder layer whose stream is the feature, and whose attention reads the next embedding, too."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn, self.mlp = Attention(config, 2 * width), LlamaMLP(config)
        self.hidden_norm, self.input_layernorm, self.post_attention_layernorm = (
            LlamaRMSNorm(width, eps) for _ in range(3)
        )

    def forward(self, words: Tensor, state: Tensor, rotary: Pair, steps: list[Pair]) -> Tensor:
        pairs = torch.cat((self.input_layernorm(words), self.hidden_norm(state)), -1)
        state = state + self.self_attn(pairs, rotary, steps)
        return state + self.mlp(self.post_attention_layernorm(state))


class Eagle3(nn.Module):
    """Parameters and maps under the names of the authors' checkpoints.

    At first it passes the high feature on to the target's own norm and output rows: a fair guess already.
    """

    t2d: Tensor

    def __init__(self, config: LlamaConfig, teacher: LlamaForCausalLM, ids: Tensor) -> None:
        super().__init__()
        width = config.hidden_size
        self.fc = nn.Linear(3 * width, width, bias=False)
        self.midlayer = Layer(config)
        self.norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.lm_head = nn.Embedding(len(ids), width)  # an output matrix, which the optimiser treats as it does those
        self.register_buffer("d2t", ids - torch.arange(len(ids)))  # what to add to a draft id
        self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool).index_fill(0, ids, True))
        with torch.no_grad():
            self.fc.weight.zero_()[:, -width:].fill_diagonal_(1.0)
            self.midlayer.self_attn.o_proj.weight.zero_()
            self.midlayer.mlp.down_proj.weight.zero_()
            self.norm.weight.copy_(teacher.model.norm.weight)
            self.lm_head.weight.copy_(teacher.lm_head.weight[ids])

    def forward(self, words: Tensor, features: Tensor, rotary: Pair) -> list[Tensor]:
        """Logits of every step: in row i of step s for token i + s + 2.  # [rows, n, …] -> [rows, n - STEPS, draft V]

        Row i reads the feature of token i, later what has come out in its place, beside the word of token i + s + 1.
        """
        count = words.shape[1] - STEPS
        state, seen, logits = self.fc(features[:, :count]), list[Pair](), []
        for step in range(STEPS):
            cos, sin = (table[:, step : step + count] for table in rotary)
            state = self.midlayer(words[:, step + 1 : step + 1 + count], state, (cos, sin), seen)
            logits.append(self.norm(state) @ self.lm_head.weight.T)
        return logits


def frequent(texts: list[Tensor], vocabulary: int) -> Tensor:
    """The most frequent ids of texts [rows, length], ascending.  # [draft vocabulary]"""
    counts = torch.bincount(torch.cat([ids.flatten() for ids in texts]), minlength=vocabulary)
    return counts.topk(min(VOCABULARY, vocabulary)).indices.sort().values


def build(teacher: LlamaForCausalLM, taps: tuple[int, ...], ids: Tensor, seed: int) -> tuple[LlamaConfig, Eagle3]:
    torch.manual_seed(seed)
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers, config.num_key_value_heads = 1, config.num_attention_heads
    # Files that name an architecture count the outputs of layers in `eagle_config`; this one counts inputs.
    config.architectures, config.tie_word_embeddings = None, False
    config.name_or_path = ""  # the path of the teacher's folder is private
    config.draft_vocab_size = len(ids)
    config.eagle_config = {"eagle_aux_hidden_state_layer_ids": list(taps), "use_aux_hidden_state": True}
    return config, Eagle3(config, teacher, ids).bfloat16()


class Eagle3Loss:
    """The divergence from the target's distribution over the draft vocabulary, at every step of a draft."""

    def __init__(self, teacher: LlamaForCausalLM, head: Eagle3, config: LlamaConfig, compiled: bool = True) -> None:
        self.head, self.words = head, teacher.model.embed_tokens.weight.detach().clone()
        ids = head.t2d.nonzero().flatten().to(self.words.device)
        self.output = teacher.lm_head.weight.detach()[ids].clone()
        places = torch.arange(config.max_position_embeddings, device=self.words.device)[None]
        self.rotary = LlamaRotaryEmbedding(config).to(places.device)(self.words, places)
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, batch: tuple[Tensor, ...], step: int) -> Tensor:
        ids, last, *features = batch  # [rows, length], then [rows, length, hidden] each
        return self.run(ids, last, torch.cat(features, -1))

    def forward(self, ids: Tensor, last: Tensor, features: Tensor) -> Tensor:
        with torch.no_grad():
            p = log_distribution(last[:, 1:] @ self.output.T)
        total = torch.zeros((), device=ids.device)
        for step, logits in enumerate(self.head(F.embedding(ids, self.words), features, self.rotary)):
            q = log_distribution(logits)
            total = total + DECAY**step * divergence(p[:, step : step + q.shape[1]], q)
        return total
