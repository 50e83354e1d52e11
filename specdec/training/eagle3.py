"""An EAGLE-3 head made for one target, to be trained: `drafters/eagle3.py` runs what comes of it (arXiv 2503.01840).

*Training-time test*: at every token the head first reads the target's features, then several times its own output in
their place, with the true tokens beside it, as it does when it drafts. Each step is compared with what the target says
one token further on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..drafters.eagle3 import default_taps
from ..models import batched
from ..models.reduced import output_rows
from ..models.transformer import Transformer
from .examples import Example, padded
from .loss import compared, Divergence, known_chances, LOW, TEMPERATURE

STEPS = 3
DECAY = 0.8  # weight of a step in the loss, relative to the step before
HEAD, SHARED = 64, 3  # numbers of an attention head, and heads that read the same keys
EPS, THETA = 1e-5, 10_000.0
START = 0.3  # of what the layer adds, at random weights


class Eagle3(nn.Module):
    """It starts from the target's own feature, and writes through the target's output rows, by one small matrix."""

    def __init__(self, target: Transformer, known: Tensor) -> None:
        super().__init__()
        width = target.width
        self.target, self.known, self.width, self.taps = target, known, width, default_taps(target.depth)
        self.heads = max(1, width // HEAD)
        self.kv_heads = self.heads // SHARED if self.heads % SHARED == 0 else self.heads
        self.head_dim = width // self.heads
        self.embedding = target.embedding.detach().cpu().to(LOW)
        rows = output_rows(target, known)
        self.scale = float(rows.square().mean().rsqrt()) * START * width**-0.5
        self.rows = (rows * self.scale).to(LOW)

        def matrix(outputs: int, inputs: int, scale: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(outputs, inputs) * scale * inputs**-0.5)

        self.fc = matrix(width, len(self.taps) * width, START)
        self.fc.data[:, -width:] += torch.eye(width)
        self.qkv = matrix((self.heads + 2 * self.kv_heads) * self.head_dim, 2 * width)
        self.out = matrix(width, self.heads * self.head_dim, START)
        inner = target.config.intermediate_size
        self.gate_up, self.down = matrix(2 * inner, width), matrix(width, inner, START)
        self.writes = nn.Parameter(torch.eye(width))
        self.word_norm, self.feature_norm, self.mlp_norm, self.norm = (nn.Parameter(torch.ones(width)) for _ in "1234")
        self.matrices = [p for p in self.parameters() if p.dim() == 2]

    @torch.no_grad()
    def features(self, examples: Sequence[Example]) -> Tensor:
        """The target's states at the taps, for all tokens.  # [rows, n, taps · width]"""
        tokens = padded(examples)
        cache = batched.BatchCache(self.target, len(tokens), tokens.shape[1])
        found = {tap: torch.empty(0) for tap in self.taps}
        batched.states(self.target, tokens.tolist(), cache, found)
        return torch.cat(list(found.values()), -1).clone()  # made for inference: autograd may not keep it

    def forward(self, tokens: Tensor, features: Tensor) -> list[Tensor]:
        """What goes through the output rows after every step. Row i of step s tells token i + s + 2.

        # [rows, n], [rows, n, taps · width] -> STEPS × [rows, n - STEPS, width]
        """
        rows, count, low = len(tokens), tokens.shape[1] - STEPS, LOW
        state = F.linear(features[:, :count].to(low), self.fc.to(low)).float()
        words = F.rms_norm(F.embedding(tokens, self.embedding).float(), (self.width,), self.word_norm, EPS).to(low)
        places = torch.arange(tokens.shape[1]).float()
        turns = torch.outer(places, THETA ** (-torch.arange(0, self.head_dim, 2) / self.head_dim)).repeat(1, 2)
        hidden = torch.full((count, count), float("-inf"), dtype=low).triu(1)
        qkv_, out, gate_up, down, writes = (
            matrix.to(low) for matrix in (self.qkv, self.out, self.gate_up, self.down, self.writes)
        )
        shared, found, seen = self.heads // self.kv_heads, list[Tensor](), list[tuple[Tensor, Tensor]]()
        for step in range(STEPS):
            cos, sin = turns[step : step + count].cos().to(low), turns[step : step + count].sin().to(low)

            def turned(y: Tensor, cos: Tensor = cos, sin: Tensor = sin) -> Tensor:
                first, second = y.chunk(2, -1)
                return y * cos + torch.cat((-second, first), -1) * sin

            normed = F.rms_norm(state, (self.width,), self.feature_norm, EPS).to(low)
            read = torch.cat((words[:, step + 1 : step + 1 + count], normed), -1)
            qkv = F.linear(read, qkv_).view(rows, count, -1, self.head_dim).transpose(1, 2)
            q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
            q = turned(q * self.head_dim**-0.5).unflatten(1, (self.kv_heads, shared))
            seen.append((turned(k)[:, :, None], v[:, :, None]))
            # The first step's entries up to the own one, and of later steps the own one: its draft so far.
            (keys, values), *own = seen
            scores = [torch.matmul(q, keys.transpose(-1, -2)) + hidden]
            scores += [(q * k).sum(-1, keepdim=True) for k, _ in own]
            shares = torch.cat(scores, -1).softmax(-1)
            y = torch.matmul(shares[..., :count], values)
            for i, (_, v) in enumerate(own):
                y = y + shares[..., count + i : count + i + 1] * v
            state = state + F.linear(y.flatten(1, 2).transpose(1, 2).flatten(2), out)
            gate, up = F.linear(F.rms_norm(state, (self.width,), self.mlp_norm, EPS).to(low), gate_up).chunk(2, -1)
            state = state + F.linear(F.silu(gate) * up, down)
            found.append(F.linear(F.rms_norm(state, (self.width,), self.norm, EPS).to(low), writes))
        return found

    def judged(self, examples: Sequence[Example]) -> list[tuple[Tensor, Tensor]]:
        """Of every step: outputs at places of answers, and at which of all those places."""
        found = []
        for step, outputs in enumerate(self(padded(examples), self.features(examples))):
            rows = [example.places - step - 1 for example in examples]
            there = torch.cat([(row >= 0) & (row < outputs.shape[1]) for row in rows]).nonzero()[:, 0]
            states = torch.cat([outputs[i, row.clamp(0, outputs.shape[1] - 1)] for i, row in enumerate(rows)])
            found.append((states[there], there))
        return found

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """At all places of answers, of all steps."""
        tokens, chances = known_chances(examples, self.known)
        total = torch.zeros(())
        for step, (states, there) in enumerate(self.judged(examples)):
            told = Divergence.apply(states, self.rows, tokens[there], chances[there], TEMPERATURE)
            total = total + DECAY**step * told
        return total

    @torch.no_grad()
    def measured(self, examples: Sequence[Example]) -> tuple[float, float]:
        """How often the first token of a draft is the target's favourite, and the overlap of the two distributions."""
        agreed = overlap = count = 0.0
        for example in examples:
            states, there = self.judged([example])[0]
            one, other = compared(states, self.rows, self.known, example, there)
            agreed, overlap, count = agreed + one, overlap + other, count + len(there)
        return agreed / count, overlap / count

    def weights(self) -> dict[str, Tensor]:
        """Under the names of the authors' checkpoints."""
        q, k, v = self.qkv.split([part * self.head_dim for part in (self.heads, self.kv_heads, self.kv_heads)])
        gate, up = self.gate_up.chunk(2)
        found = {
            "fc.weight": self.fc, "norm.weight": self.norm,
            "lm_head.weight": self.rows.float() @ self.writes,
            "d2t": self.known - torch.arange(len(self.known)),
            "t2d": torch.zeros(self.target.vocabulary, dtype=torch.bool).index_fill(0, self.known, True),
            "midlayer.input_layernorm.weight": self.word_norm, "midlayer.hidden_norm.weight": self.feature_norm,
            "midlayer.post_attention_layernorm.weight": self.mlp_norm,
            "midlayer.self_attn.q_proj.weight": q, "midlayer.self_attn.k_proj.weight": k,
            "midlayer.self_attn.v_proj.weight": v, "midlayer.self_attn.o_proj.weight": self.out,
            "midlayer.mlp.gate_proj.weight": gate, "midlayer.mlp.up_proj.weight": up,
            "midlayer.mlp.down_proj.weight": self.down,
        }  # fmt: skip
        return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}

    def config(self, vocabulary: int, context: int) -> dict[str, Any]:
        """Its config.json."""
        return {
            "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
            "vocab_size": vocabulary, "draft_vocab_size": len(self.known),
            "hidden_size": self.width, "intermediate_size": self.down.shape[1], "num_hidden_layers": 1,
            "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "hidden_act": "silu", "rms_norm_eps": EPS, "max_position_embeddings": context,
            "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
            "eagle_aux_hidden_state_layer_ids": list(self.taps),
        }  # fmt: skip
