"""Define what `block.py`, `medusa.py` and `mtp.py` share. They train heads that read the target's states."""

import copy
from collections.abc import Sequence

import torch
from torch import nn, Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from specdec.models.device import multiplies_bfloat16
from specdec.training.loss import DECAY

# The loss compares distributions at this temperature. It is low, because people decode greedily or at low ones.
TEMPERATURE = 0.7

TensorPair = tuple[Tensor, Tensor]


class Projections(nn.Module):
    """The four matrices of a layer's attention."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))


class Loss:
    """Runs the target over token ids [rows, n], then computes the divergence of a head from the target."""

    taps: tuple[int, ...] = ()

    def __init__(self, teacher: LlamaForCausalLM, config: LlamaConfig) -> None:
        self.teacher = teacher
        self.embedding = teacher.model.embed_tokens.weight.detach().clone()
        self.output = teacher.lm_head.weight.detach().clone()
        places = torch.arange(config.max_position_embeddings, device=self.embedding.device)[None]
        self.rotary: TensorPair = LlamaRotaryEmbedding(config).to(places.device)(self.embedding, places)

    def __call__(self, ids: Tensor) -> Tensor:
        with torch.no_grad():
            outputs = self.teacher.model(input_ids=ids, use_cache=False, output_hidden_states=bool(self.taps))
        features = [outputs.hidden_states[tap] for tap in self.taps]
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=multiplies_bfloat16(str(ids.device))):
            return self.of_states(ids, outputs.last_hidden_state, torch.cat(features, -1) if features else None)

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None) -> Tensor:
        """Return the loss, given the target's normed states [rows, n, hidden] and features [rows, n, taps · hidden]."""
        raise NotImplementedError

    def target(self, last: Tensor) -> Tensor:
        """Return the target's log-probabilities.  # [..., hidden] -> [..., V]"""
        with torch.no_grad():
            return log_distribution(last @ self.output.T)


def head_config(teacher: LlamaForCausalLM, layers: int, **more: object) -> LlamaConfig:
    """Return a copy of the target's config with `layers` layers and the fields `more`."""
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers, config.num_key_value_heads = layers, config.num_attention_heads
    config.architectures, config.name_or_path = None, ""
    for name, value in more.items():
        setattr(config, name, value)
    return config


def log_distribution(logits: Tensor) -> Tensor:
    return (logits.float() / TEMPERATURE).log_softmax(-1)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Return KL(p ‖ q) plus the total variation, given log-probabilities.  # [..., V] -> []"""
    chance = p.exp()
    variation = 0.5 * (chance - q.exp()).abs().sum(-1).mean()
    return (chance * (p - q)).sum(-1).mean() + variation


def weighted_sum(divergences: Sequence[Tensor]) -> Tensor:
    """Return the sum, with less weight for later tokens of a draft, because verification reaches them less often."""
    return torch.stack([DECAY**i * term for i, term in enumerate(divergences)]).sum()
