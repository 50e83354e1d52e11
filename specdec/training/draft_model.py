"""Define the draft model that `specdec train` trains; `models/reduced.py` runs the trained model."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..models.base import Target
from ..models.reduced import MAP, READS, WRITES
from .loss import layer_matrices, Reading, TrainableDraft

LAYERS = 4
WIDTH = 256
MLP_RATIO = 3  # width of the MLP / width of the model
HEAD_DIM = 64
EPS = 1e-5
ROPE_THETA = 10_000.0
START_SCALE = 0.3  # keeps initial outputs small


def matrix(outputs: int, inputs: int, scale: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.randn(outputs, inputs) * scale * inputs**-0.5)


class TrainableLayer(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.qkv, self.out = matrix(3 * width, width), matrix(width, width, START_SCALE)
        self.gate_up, self.down = matrix(2 * inner, width), matrix(width, inner, START_SCALE)


class DraftModel(TrainableDraft):
    """A small decoder. `reads` projects the target's embeddings to `width`; `writes` projects the states back."""

    def __init__(self, target: Target, draft_ids: Tensor, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__(target, draft_ids)
        self.width, self.heads = width, max(1, width // HEAD_DIM)
        reads, self.reads_scale = principal_directions(self.embedding[draft_ids], width)
        writes, scale = principal_directions(self.target_rows, width)
        self.writes_scale = scale * START_SCALE * width**-0.5
        self.reads, self.writes = nn.Parameter(reads), nn.Parameter(writes)
        self.blocks = [TrainableLayer(width, MLP_RATIO * width) for _ in range(layers)]
        self.layers = nn.ModuleList(self.blocks)  # registers their parameters
        self.norm = nn.Parameter(torch.ones(width))
        self.to(target.device)

    def matrices(self) -> list[nn.Parameter]:
        return [parameter for layer in self.blocks for parameter in layer.parameters() if parameter.dim() == 2]

    def forward(self, tokens: Tensor) -> Tensor:
        """Return every token's state after the final norm.  # [rows, n] -> [rows, n, width]"""
        (rows, count), dtype = tokens.shape, self.dtype
        x = F.linear(F.embedding(tokens, self.embedding), self.reads.to(dtype)).float() * self.reads_scale
        head_dim = self.width // self.heads
        angles = rotation(count, head_dim, tokens.device, dtype)
        mask = causal_mask(count, tokens.device, dtype)
        for layer in self.blocks:
            normed = F.rms_norm(x, (self.width,), layer.attention_norm, EPS).to(dtype)
            qkv = F.linear(normed, layer.qkv.to(dtype)).view(rows, count, 3, self.heads, head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            # In 16 bits on a CPU, torch's fused attention takes twice as long as these matrix products.
            scores = torch.matmul(rotated(q * head_dim**-0.5, angles), rotated(k, angles).transpose(-1, -2))
            y = torch.matmul((scores + mask).softmax(-1), v).transpose(1, 2).reshape(rows, count, self.width)
            x = x + F.linear(y, layer.out.to(dtype))
            normed = F.rms_norm(x, (self.width,), layer.mlp_norm, EPS).to(dtype)
            gate, up = F.linear(normed, layer.gate_up.to(dtype)).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down.to(dtype))
        return F.rms_norm(x, (self.width,), self.norm, EPS)

    def outputs(self) -> Tensor:
        return (self.target_rows @ self.writes.to(self.dtype).T) * self.writes_scale

    def predictions(self, reading: Reading) -> list[Tensor]:
        return [self(reading.tokens).flatten(0, 1)[reading.places].to(self.dtype)]

    def weights(self) -> dict[str, Tensor]:
        """Return the tensors under the names that `ReducedDraft` loads."""
        tensors = {
            READS: self.reads * self.reads_scale,
            WRITES: self.writes * self.writes_scale,
            MAP: self.draft_ids.int().cpu() - torch.arange(len(self.draft_ids), dtype=torch.int32),
            "model.norm.weight": self.norm,
        }
        for i, layer in enumerate(self.blocks):
            norms = {"input_layernorm": layer.attention_norm, "post_attention_layernorm": layer.mlp_norm}
            parts = norms | layer_matrices(layer.qkv.chunk(3), layer.out, layer.gate_up, layer.down)
            tensors |= {f"model.layers.{i}.{name}.weight": tensor for name, tensor in parts.items()}
        return tensors

    def config(self, vocabulary: int, context: int) -> dict[str, Any]:
        inner = self.blocks[0].down.shape[1]
        entries = llama_config(vocabulary, self.width, inner, len(self.blocks), self.heads, self.heads)
        return {"model_type": "llama", **entries, "max_position_embeddings": context}


def llama_config(vocabulary: int, width: int, inner: int, layers: int, heads: int, kv_heads: int) -> dict[str, Any]:
    """Return the entries of config.json that trained draft models and EAGLE-3 heads have in common."""
    return {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": width // heads,
        "hidden_act": "silu",
        "rms_norm_eps": EPS,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
    }


def rotation(count: int, size: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary embeddings.  # [count, size] each"""
    rates = ROPE_THETA ** (-torch.arange(0, size, 2, device=device) / size)
    angles = torch.outer(torch.arange(count, device=device).float(), rates).repeat(1, 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, cosines_and_sines: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary embeddings to queries or keys.  # [..., n, size] -> [..., n, size]"""
    first, second = x.chunk(2, -1)
    return x * cosines_and_sines[0] + torch.cat((-second, first), -1) * cosines_and_sines[1]


def causal_mask(count: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return a mask with -inf where the column is later than the row.  # [count, count]"""
    return torch.full((count, count), float("-inf"), dtype=dtype, device=device).triu(1)


def principal_directions(rows: Tensor, count: int) -> tuple[Tensor, float]:
    """Return principal directions of `rows`, and a factor. Coordinates along them, times it, have a mean square of 1.

    If there are fewer than `count`, random directions are added. Shapes: [n, size] -> [count, size], a number.
    """
    rows = rows.float().cpu()
    principal = torch.linalg.eigh(rows.T @ rows).eigenvectors.T.flip(0)[:count]
    if len(principal) < count:
        extra = torch.randn(count - len(principal), rows.shape[1])
        principal = torch.cat((principal, extra / extra.norm(dim=1, keepdim=True)))
    return principal, float((rows @ principal.T).square().mean().rsqrt())
