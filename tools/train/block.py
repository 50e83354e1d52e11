"""Train the block drafter, which drafts a whole block in one pass. In training, a block begins at every third token.

A slot is a drafted token's place. The Markov correction reads the token before the slot, which in training is always
the true token. DSpark (arXiv 2607.05147) keeps the target's output matrix. This drafter trains a copy of it.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaForCausalLM, Qwen3Config
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb, LlamaMLP, LlamaRMSNorm

from specdec.models.config import COPIED

from .heads import divergence, head_config, log_distribution, Loss, Projections, TensorPair, weighted_sum

LAYERS = 2
SLOTS = 6  # drafted tokens of a block
RANK = 32  # rank of the Markov correction
STRIDE = 3  # tokens between the starts of two successive blocks
MASK = 0  # the token whose embedding is the input of every slot but the first: `data.END`, which no text continues with


def block_config(teacher: LlamaForCausalLM, taps: Sequence[int]) -> Qwen3Config:
    """Return the drafter's config.json, with DSpark's keys. A published layer i is the one whose output is read."""
    config = head_config(teacher, LAYERS, tie_word_embeddings=False)
    copied = {name: getattr(config, name) for name in (*COPIED, "head_dim", "hidden_act", "rope_parameters")}
    return Qwen3Config(
        **copied, architectures=["Qwen3DSparkModel"], mlp_bias=False, block_size=SLOTS, mask_token_id=MASK,
        target_layer_ids=[tap - 1 for tap in taps], num_target_layers=teacher.config.num_hidden_layers, num_anchors=1,
        markov_rank=RANK, markov_head_type="vanilla", enable_confidence_head=False,
    )  # fmt: skip


class Attention(Projections):
    """A slot attends to the features of the text before its block, and to all slots of the block."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__(config)
        size = config.hidden_size // config.num_attention_heads
        self.q_norm, self.k_norm = (LlamaRMSNorm(size, config.rms_norm_eps) for _ in range(2))

    def forward(self, x: Tensor, text: Tensor, rotary: TensorPair, text_rotary: TensorPair, masked: Tensor) -> Tensor:
        """Attend from the slots `x` [rows, blocks, slots, hidden] to `text` [rows, n, hidden] and to their own blocks.

        `x` and `text` are normed; rotary is (cos, sin). `masked` [blocks · slots, n] is True for text a slot ignores.
        """
        rows, blocks, slots, _ = x.shape

        def by_head(projection: nn.Linear, y: Tensor, norm: nn.Module | None = None) -> Tensor:
            heads = projection(y).view(rows, -1, self.heads, projection.weight.shape[0] // self.heads)
            return (heads if norm is None else norm(heads)).transpose(1, 2)

        def by_block(y: Tensor) -> Tensor:
            return y.unflatten(2, (blocks, slots))

        q, k = by_head(self.q_proj, x, self.q_norm), by_head(self.k_proj, x, self.k_norm)
        q, k = apply_rotary_pos_emb(q, k, *rotary)
        v, text_v, text_k = by_head(self.v_proj, x), by_head(self.v_proj, text), by_head(self.k_proj, text, self.k_norm)
        text_k = apply_rotary_pos_emb(text_k, text_k, *text_rotary)[0]
        q = q * q.shape[-1] ** -0.5
        before = (q @ text_k.transpose(2, 3)).masked_fill(masked, float("-inf"))
        within = by_block(q) @ by_block(k).transpose(3, 4)
        weights = torch.cat((before, within.flatten(2, 3)), -1).float().softmax(-1).to(v.dtype)
        n = text.shape[1]
        y = weights[..., :n] @ text_v + (by_block(weights[..., n:]) @ by_block(v)).flatten(2, 3)
        return self.o_proj(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """A decoder layer that norms the slots, but not the text's features."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(config), LlamaMLP(config)
        self.input_layernorm, self.post_attention_layernorm = (
            LlamaRMSNorm(config.hidden_size, config.rms_norm_eps) for _ in range(2)
        )

    def forward(self, x: Tensor, text: Tensor, rotary: TensorPair, text_rotary: TensorPair, masked: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), text, rotary, text_rotary, masked)
        return x + self.mlp(self.post_attention_layernorm(x))


class Markov(nn.Module):
    """Corrects a slot's logits, given the token before the slot, by a low-rank table of token pairs."""

    def __init__(self, embeddings: Tensor) -> None:
        """Start without effect. In `markov_w1`, tokens with similar `embeddings` [V, hidden] start alike."""
        super().__init__()
        main = torch.linalg.svd(embeddings, full_matrices=False).U[:, :RANK]
        self.markov_w1, self.markov_w2 = (nn.Embedding(*main.shape) for _ in range(2))
        with torch.no_grad():
            self.markov_w1.weight.copy_(main * len(embeddings) ** 0.5)
            self.markov_w2.weight.zero_()

    def forward(self, ids: Tensor) -> Tensor:
        return self.markov_w1(ids) @ self.markov_w2.weight.T


class Block(nn.Module):
    """The drafter, with DSpark's parameter names. Before training, its MLPs have no effect."""

    def __init__(self, config: Qwen3Config, teacher: LlamaForCausalLM, taps: int) -> None:
        super().__init__()
        width, embeddings = config.hidden_size, teacher.model.embed_tokens.weight.detach().float()
        self.fc = nn.Linear(taps * width, width, bias=False)
        self.hidden_norm, self.norm = (LlamaRMSNorm(width, config.rms_norm_eps) for _ in range(2))
        layers = [Layer(config) for _ in range(LAYERS)]
        self.layers = nn.ModuleList(layers)
        self.lm_head = nn.Embedding(len(embeddings), width)  # an `nn.Embedding`, so that AdamW trains it
        self.markov_head = Markov(embeddings)
        with torch.no_grad():
            self.fc.weight.zero_()[:, -width:].fill_diagonal_(1.0)
            for layer in layers:
                layer.mlp.down_proj.weight.zero_()
            self.norm.weight.copy_(teacher.model.norm.weight)
            self.lm_head.weight.copy_(teacher.lm_head.weight)

    def forward(
        self, embeddings: Tensor, mask: Tensor, features: Tensor, anchors: Tensor, rotary: TensorPair
    ) -> Tensor:
        """Return the states of all slots, for blocks that begin with the tokens at `anchors` [blocks].

        embeddings [rows, n, hidden], `mask` [hidden], features [rows, n, taps · hidden]
        -> [rows, blocks, SLOTS, hidden]
        """
        text, first = self.hidden_norm(self.fc(features)), embeddings[:, anchors, None]
        x = torch.cat((first, mask.expand(*first.shape[:2], SLOTS - 1, -1)), 2)
        positions = (anchors[:, None] + torch.arange(SLOTS, device=anchors.device)).flatten()
        cos, sin = rotary
        n = embeddings.shape[1]
        masked = torch.arange(n, device=anchors.device) >= anchors.repeat_interleave(SLOTS)[:, None]
        for layer in self.layers:
            x = layer(x, text, (cos[:, positions], sin[:, positions]), (cos[:, :n], sin[:, :n]), masked)
        return self.norm(x)


class BlockLoss(Loss):
    def __init__(
        self, teacher: LlamaForCausalLM, block: Block, config: Qwen3Config, taps: tuple[int, ...] = ()
    ) -> None:
        super().__init__(teacher, config)
        self.block, self.taps, self.first_anchor = block, taps, 0

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None) -> Tensor:
        self.first_anchor = 1 + self.first_anchor % STRIDE
        anchors = torch.arange(self.first_anchor, ids.shape[1] - SLOTS, STRIDE, device=ids.device)
        p = self.target(last)
        embeddings = F.embedding(ids, self.embedding).float()
        states = self.block(embeddings, self.embedding[MASK].float(), features, anchors, self.rotary)
        divergences = []
        for slot in range(SLOTS):
            correction = self.block.markov_head(ids[:, anchors + slot])
            q = log_distribution(states[:, :, slot] @ self.block.lm_head.weight.T + correction)
            divergences.append(divergence(p[:, anchors + slot], q))
        return weighted_sum(divergences)
