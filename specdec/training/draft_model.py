"""A draft model made for one target, to be trained: see `models/reduced.py`, which runs what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..models.base import Target
from ..models.reduced import MAP, output_rows, READS, WRITES
from .examples import Example, padded
from .loss import compared, Divergence, known_chances, LOW, TEMPERATURE

LAYERS, WIDTH, INNER, HEAD = 4, 256, 768, 64
EPS, THETA = 1e-5, 10_000.0
START = 0.3  # of logits, at random weights


class Layer(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()

        def matrix(outputs: int, inputs: int, scale: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(outputs, inputs) * scale * inputs**-0.5)

        self.attention_norm, self.mlp_norm = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.qkv, self.out = matrix(3 * width, width), matrix(width, width, START)
        self.gate_up, self.down = matrix(2 * inner, width), matrix(width, inner, START)


class DraftModel(nn.Module):
    """It starts from the principal directions of the target's embeddings and output rows."""

    def __init__(self, target: Target, known: Tensor, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__()
        self.known, self.width, self.heads = known, width, max(1, width // HEAD)
        self.embedding = target.embedding.detach().cpu().to(LOW)
        rows = output_rows(target, known)
        reads, self.reads_scale = directions(self.embedding[known].float(), width)
        writes, scale = directions(rows, width)
        self.rows_scale = scale * START * width**-0.5
        self.rows = (rows * self.rows_scale).to(LOW)
        self.reads, self.writes = nn.Parameter(reads), nn.Parameter(writes)
        self.blocks = [Layer(width, INNER * width // WIDTH) for _ in range(layers)]
        self.layers = nn.ModuleList(self.blocks)
        self.norm = nn.Parameter(torch.ones(width))
        self.matrices = [p for layer in self.blocks for p in layer.parameters() if p.dim() == 2]

    def forward(self, tokens: Tensor) -> Tensor:
        """# [rows, n] -> normed states [rows, n, width]"""
        (rows, count), low = tokens.shape, LOW
        x = F.linear(F.embedding(tokens, self.embedding), self.reads.to(low)).float() * self.reads_scale
        head = self.width // self.heads
        turns = torch.outer(torch.arange(count).float(), THETA ** (-torch.arange(0, head, 2) / head)).repeat(1, 2)
        cos, sin = turns.cos().to(low), turns.sin().to(low)
        hidden = torch.full((count, count), float("-inf"), dtype=low).triu(1)

        def turned(y: Tensor) -> Tensor:
            first, second = y.chunk(2, -1)
            return y * cos + torch.cat((-second, first), -1) * sin

        for layer in self.blocks:
            read = F.rms_norm(x, (self.width,), layer.attention_norm, EPS).to(low)
            qkv = F.linear(read, layer.qkv.to(low)).view(rows, count, 3, self.heads, head)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            # Plain products: torch's fused attention took twice as long in 16 bits on a CPU.
            seen = (torch.matmul(turned(q * head**-0.5), turned(k).transpose(-1, -2)) + hidden).softmax(-1)
            y = torch.matmul(seen, v).transpose(1, 2).reshape(rows, count, self.width)
            x = x + F.linear(y, layer.out.to(low))
            read = F.rms_norm(x, (self.width,), layer.mlp_norm, EPS).to(low)
            gate, up = F.linear(read, layer.gate_up.to(low)).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down.to(low))
        return F.rms_norm(x, (self.width,), self.norm, EPS)

    def outputs(self) -> Tensor:
        """The output rows of the known tokens.  # [V, width]"""
        return self.rows @ self.writes.to(LOW).T

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """At all places of answers."""
        found: Tensor = Divergence.apply(
            self.judged(examples), self.outputs(), *known_chances(examples, self.known), TEMPERATURE
        )
        return found

    @torch.no_grad()
    def measured(self, examples: Sequence[Example]) -> tuple[float, float]:
        """How often its favourite is the target's, and the overlap of the two distributions at TEMPERATURE."""
        rows, count = self.outputs(), sum(len(example.places) for example in examples)
        found = [
            compared(self.judged([example]), rows, self.known, example, torch.arange(len(example.places)))
            for example in examples
        ]
        return sum(agreed for agreed, _ in found) / count, sum(overlap for _, overlap in found) / count

    def judged(self, examples: Sequence[Example]) -> Tensor:
        """States at the places of answers.  # [places, width]"""
        states: Tensor = self(padded(examples))
        return torch.cat([states[i, example.places] for i, example in enumerate(examples)]).to(LOW)

    def weights(self) -> dict[str, Tensor]:
        """Under the names of `ReducedDraft`."""
        found = {
            READS: self.reads * self.reads_scale, WRITES: self.writes * self.rows_scale,
            MAP: self.known.int() - torch.arange(len(self.known), dtype=torch.int32), "model.norm.weight": self.norm,
        }  # fmt: skip
        for i, layer in enumerate(self.blocks):
            name = f"model.layers.{i}."
            parts = zip("qkv", layer.qkv.chunk(3), strict=True)
            found |= {f"{name}self_attn.{part}_proj.weight": matrix for part, matrix in parts}
            gate, up = layer.gate_up.chunk(2)
            found |= {
                f"{name}self_attn.o_proj.weight": layer.out, f"{name}mlp.gate_proj.weight": gate,
                f"{name}mlp.up_proj.weight": up, f"{name}mlp.down_proj.weight": layer.down,
                f"{name}input_layernorm.weight": layer.attention_norm,
                f"{name}post_attention_layernorm.weight": layer.mlp_norm,
            }  # fmt: skip
        return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}

    def config(self, vocabulary: int, context: int) -> dict[str, Any]:
        """Its config.json."""
        return {
            "model_type": "llama", "vocab_size": vocabulary, "hidden_size": self.width,
            "intermediate_size": self.blocks[0].down.shape[1], "num_hidden_layers": len(self.blocks),
            "num_attention_heads": self.heads, "num_key_value_heads": self.heads, "head_dim": self.width // self.heads,
            "hidden_act": "silu", "rms_norm_eps": EPS, "max_position_embeddings": context,
            "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        }  # fmt: skip


def directions(rows: Tensor, count: int) -> tuple[Tensor, float]:
    """The principal ones, and what brings the rows' coordinates to one on average.  # [n, width] -> [count, width]"""
    found = torch.linalg.svd(rows, full_matrices=False).Vh[:count]
    if len(found) < count:
        more = torch.randn(count - len(found), rows.shape[1])
        found = torch.cat((found, more / more.norm(dim=1, keepdim=True)))
    return found, float((rows @ found.T).square().mean().rsqrt())
