"""Define the EAGLE-3 head (arXiv 2503.01840) for training; `drafters/eagle3.py` runs the trained head.

In the paper's *training-time test*, training takes several steps from every token, as drafting does. The first reads
the target's features, each later one the state of the step before it.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..drafters.eagle3 import default_taps
from ..families.export import eagle3_config
from ..models.reduced import MAP
from ..models.transformer import Transformer
from .draft_model import causal_mask, EPS, HEAD_DIM, llama_config, matrix, rotated, rotation, START_SCALE
from .loss import layer_matrices, Reading, TrainableDraft

STEPS = 4  # of training-time test; below `examples.EARLIEST`, so that each step predicts every learned token
QUERIES_PER_KEY = 3  # query heads that share a key head, if the number of query heads is divisible by 3


class Eagle3(TrainableDraft):
    def __init__(self, target: Transformer, draft_ids: Tensor, steps: int = STEPS) -> None:
        super().__init__(target, draft_ids)
        width = target.width
        self.width, self.steps, self.taps = width, steps, distinct_taps(target.depth)
        self.heads = max(1, width // HEAD_DIM)
        self.kv_heads = self.heads // QUERIES_PER_KEY if self.heads % QUERIES_PER_KEY == 0 else self.heads
        self.head_dim = width // self.heads
        self.rows_scale *= START_SCALE * width**-0.5  # makes the initial logits small
        self.fc = matrix(width, len(self.taps) * width, START_SCALE)
        self.fc.data[:, -width:] += torch.eye(width)  # initially, the highest tap passes through
        self.qkv = matrix((self.heads + 2 * self.kv_heads) * self.head_dim, 2 * width)
        self.out = matrix(width, self.heads * self.head_dim, START_SCALE)
        inner = target.config.intermediate_size
        self.gate_up, self.down = matrix(2 * inner, width), matrix(width, inner, START_SCALE)
        self.writes = nn.Parameter(torch.eye(width))  # fits the head's states to the target's output matrix
        self.word_norm, self.feature_norm, self.mlp_norm, self.norm = (nn.Parameter(torch.ones(width)) for _ in "1234")
        self.to(target.device)

    def forward(self, tokens: Tensor, features: Tensor) -> list[Tensor]:
        """Return the states of each step, before the matrix `outputs()`. State i of step s predicts token i + s + 2.

        # [rows, n], [rows, n, taps · width] -> steps × [rows, n, width]
        """
        (rows, count), dtype = tokens.shape, self.dtype
        state = F.linear(features, self.fc.to(dtype)).float()
        padded = F.pad(tokens, (0, self.steps))
        embedded = F.rms_norm(F.embedding(padded, self.embedding).float(), (self.width,), self.word_norm, EPS).to(dtype)
        cosines, sines = rotation(count + self.steps, self.head_dim, tokens.device, dtype)
        mask = causal_mask(count, tokens.device, dtype)
        all_qkv, out, gate_up, down, writes = (
            weight.to(dtype) for weight in (self.qkv, self.out, self.gate_up, self.down, self.writes)
        )
        group, states, later_steps = self.heads // self.kv_heads, list[Tensor](), list[tuple[Tensor, Tensor]]()
        for step in range(self.steps):
            angles = cosines[step : step + count], sines[step : step + count]
            normed = F.rms_norm(state, (self.width,), self.feature_norm, EPS).to(dtype)
            x = torch.cat((embedded[:, step + 1 : step + 1 + count], normed), -1)
            qkv = F.linear(x, all_qkv).view(rows, count, -1, self.head_dim).transpose(1, 2)
            q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
            q = rotated(q * self.head_dim**-0.5, angles).unflatten(1, (self.kv_heads, group))
            k, v = rotated(k, angles)[:, :, None], v[:, :, None]
            if step == 0:
                keys, values = k, v
            else:
                later_steps.append((k, v))
            # A position attends to the first step's keys up to itself, but only to its own keys of later steps.
            scores = [torch.matmul(q, keys.transpose(-1, -2)) + mask]
            scores += [(q * key).sum(-1, keepdim=True) for key, _ in later_steps]
            attention = torch.cat(scores, -1).softmax(-1)
            y = torch.matmul(attention[..., :count], values)
            for i, (_, value) in enumerate(later_steps):
                y = y + attention[..., count + i : count + i + 1] * value
            state = state + F.linear(y.flatten(1, 2).transpose(1, 2).flatten(2), out)
            gate, up = F.linear(F.rms_norm(state, (self.width,), self.mlp_norm, EPS).to(dtype), gate_up).chunk(2, -1)
            state = state + F.linear(F.silu(gate) * up, down)
            states.append(F.linear(F.rms_norm(state, (self.width,), self.norm, EPS).to(dtype), writes))
        return states

    def outputs(self) -> Tensor:
        return self.target_rows * self.rows_scale

    def predictions(self, reading: Reading) -> list[Tensor]:
        by_step = self(reading.tokens, reading.features)  # state p - step - 1 predicts token p + 1
        return [states.flatten(0, 1)[reading.places - step - 1] for step, states in enumerate(by_step)]

    def weights(self) -> dict[str, Tensor]:
        """Return the tensors under the names of EAGLE-3's authors."""
        qkv = self.qkv.split([count * self.head_dim for count in (self.heads, self.kv_heads, self.kv_heads)])
        ids, rows = self.draft_ids.cpu(), len(self.embedding)
        maps = {MAP: ids - torch.arange(len(ids)), "t2d": torch.zeros(rows, dtype=torch.bool).index_fill_(0, ids, True)}
        layer = layer_matrices(qkv, self.out, self.gate_up, self.down) | {
            "input_layernorm": self.word_norm,
            "hidden_norm": self.feature_norm,
            "post_attention_layernorm": self.mlp_norm,
        }
        return {
            "fc.weight": self.fc,
            "norm.weight": self.norm,
            "lm_head.weight": self.target_rows.float() @ self.writes * self.rows_scale,
            **(maps if len(ids) < rows else {}),  # vLLM loads them only where not all tokens are drafted
            **{f"midlayer.{name}.weight": tensor for name, tensor in layer.items()},
        }

    def config(self, vocabulary: int, context: int) -> dict[str, Any]:
        facts = llama_config(len(self.embedding), self.width, self.down.shape[1], 1, self.heads, self.kv_heads)
        names = {"model_type": "llama", "draft_vocab_size": len(self.draft_ids), "max_position_embeddings": context}
        return eagle3_config(names | facts, self.taps)


def distinct_taps(depth: int) -> tuple[int, ...]:
    """Return `default_taps`, or other layers if the target has too few."""
    low, middle, high = default_taps(depth)
    return (low, middle, high) if low < middle < high else tuple(sorted({1, (depth + 1) // 2, depth}))
