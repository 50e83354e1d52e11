"""An EAGLE-3 head in training (arXiv 2503.01840); `drafters/eagle3.py` runs the trained one.

The paper calls its method *training-time test*: at every token the head first reads the target's features, and in
further steps its own output in their place, as it does when it drafts, but with the true tokens. Each step is compared
with the target's distribution one token later.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..drafters.eagle3 import default_taps
from ..models.reduced import MAP, WRITES
from ..models.transformer import Transformer
from .draft_model import causal_mask, EPS, HEAD_DIM, llama_config, matrix, ROPE_THETA, rotation, START_SCALE, turned
from .loss import Draft, Reading

STEPS = 4  # tokens of a draft that are learned; must be below `examples.EARLIEST`
SHARED = 3  # attention heads that share keys


class Eagle3(Draft):
    """The head. At first it passes on the target's high feature; its output matrix is the target's times `writes`."""

    def __init__(self, target: Transformer, draft_ids: Tensor, steps: int = STEPS) -> None:
        super().__init__(target, draft_ids)
        width = target.width
        self.width, self.steps, self.taps = width, steps, distinct_taps(target.depth)
        self.heads = max(1, width // HEAD_DIM)
        self.kv_heads = self.heads // SHARED if self.heads % SHARED == 0 else self.heads
        self.head_dim = width // self.heads
        self.rows_scale *= START_SCALE * width**-0.5
        self.fc = matrix(width, len(self.taps) * width, START_SCALE)
        self.fc.data[:, -width:] += torch.eye(width)
        self.qkv = matrix((self.heads + 2 * self.kv_heads) * self.head_dim, 2 * width)
        self.out = matrix(width, self.heads * self.head_dim, START_SCALE)
        inner = target.config.intermediate_size
        self.gate_up, self.down = matrix(2 * inner, width), matrix(width, inner, START_SCALE)
        self.writes = nn.Parameter(torch.eye(width))
        self.word_norm, self.feature_norm, self.mlp_norm, self.norm = (nn.Parameter(torch.ones(width)) for _ in "1234")
        self.to(target.device)

    def forward(self, tokens: Tensor, features: Tensor) -> list[Tensor]:
        """Return the states for the output rows after every step. Row i of step s is the draft of token i + s + 2.

        # [rows, n], [rows, n, taps · width] -> steps × [rows, n, width]
        """
        (rows, count), low = tokens.shape, self.low
        state = F.linear(features, self.fc.to(low)).float()
        padded = F.pad(tokens, (0, self.steps))
        words = F.rms_norm(F.embedding(padded, self.embedding).float(), (self.width,), self.word_norm, EPS).to(low)
        cosines, sines = rotation(count + self.steps, self.head_dim, ROPE_THETA, tokens.device, low)
        mask = causal_mask(count, tokens.device, low)
        qkv_, out, gate_up, down, writes = (
            part.to(low) for part in (self.qkv, self.out, self.gate_up, self.down, self.writes)
        )
        shared, drafts, own = self.heads // self.kv_heads, list[Tensor](), list[tuple[Tensor, Tensor]]()
        for step in range(self.steps):
            turn = cosines[step : step + count], sines[step : step + count]
            normed = F.rms_norm(state, (self.width,), self.feature_norm, EPS).to(low)
            x = torch.cat((words[:, step + 1 : step + 1 + count], normed), -1)
            qkv = F.linear(x, qkv_).view(rows, count, -1, self.head_dim).transpose(1, 2)
            q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
            q = turned(q * self.head_dim**-0.5, turn).unflatten(1, (self.kv_heads, shared))
            k, v = turned(k, turn)[:, :, None], v[:, :, None]
            if step == 0:
                keys, values = k, v
            else:
                own.append((k, v))
            # A token attends to the first step's entries up to its own, and to its own entries of later steps.
            scores = [torch.matmul(q, keys.transpose(-1, -2)) + mask]
            scores += [(q * key).sum(-1, keepdim=True) for key, _ in own]
            shares = torch.cat(scores, -1).softmax(-1)
            y = torch.matmul(shares[..., :count], values)
            for i, (_, value) in enumerate(own):
                y = y + shares[..., count + i : count + i + 1] * value
            state = state + F.linear(y.flatten(1, 2).transpose(1, 2).flatten(2), out)
            gate, up = F.linear(F.rms_norm(state, (self.width,), self.mlp_norm, EPS).to(low), gate_up).chunk(2, -1)
            state = state + F.linear(F.silu(gate) * up, down)
            drafts.append(F.linear(F.rms_norm(state, (self.width,), self.norm, EPS).to(low), writes))
        return drafts

    def outputs(self) -> Tensor:
        return self.target_rows * self.rows_scale

    def predictions(self, reading: Reading) -> list[Tensor]:
        drafts = self(reading.tokens, reading.features)
        return [states.flatten(0, 1)[reading.places - step - 1] for step, states in enumerate(drafts)]

    def weights(self) -> dict[str, Tensor]:
        """Return the tensors under the authors' names. A small matrix replaces the output matrix."""
        q, k, v = self.qkv.split([part * self.head_dim for part in (self.heads, self.kv_heads, self.kv_heads)])
        gate, up = self.gate_up.chunk(2)
        layer = {
            "input_layernorm": self.word_norm,
            "hidden_norm": self.feature_norm,
            "post_attention_layernorm": self.mlp_norm,
            "self_attn.q_proj": q,
            "self_attn.k_proj": k,
            "self_attn.v_proj": v,
            "self_attn.o_proj": self.out,
            "mlp.gate_proj": gate,
            "mlp.up_proj": up,
            "mlp.down_proj": self.down,
        }
        return {
            "fc.weight": self.fc,
            "norm.weight": self.norm,
            WRITES: self.writes.T * self.rows_scale,
            MAP: self.draft_ids.cpu() - torch.arange(len(self.draft_ids)),
            **{f"midlayer.{name}.weight": part for name, part in layer.items()},
        }

    def config(self, vocabulary: int, context: int) -> dict[str, Any]:
        return {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            "draft_vocab_size": len(self.draft_ids),
            **llama_config(vocabulary, self.width, self.down.shape[1], 1, self.heads, self.kv_heads),
            "max_position_embeddings": context,
            "eagle_aux_hidden_state_layer_ids": list(self.taps),
        }


def distinct_taps(depth: int) -> tuple[int, ...]:
    """Return the layers whose inputs are fused: the usual ones, or others if the target has too few layers."""
    low, middle, high = default_taps(depth)
    return (low, middle, high) if low < middle < high else tuple(sorted({1, (depth + 1) // 2, depth}))
