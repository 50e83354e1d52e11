"""Train the block drafter, which drafts a whole block in one pass. In training, a block begins at every third token.

A slot is a drafted token's place. The Markov correction reads the token before the slot, which in training is always
the true token. DFlash (arXiv 2602.06036) uses the target's output matrix. This drafter trains a copy of it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb, LlamaMLP, LlamaRMSNorm

from .heads import divergence, log_distribution, Loss, Projections, TensorPair, weighted_sum

LAYERS = 2
SLOTS = 6  # drafted tokens of a block
RANK = 32  # rank of the Markov correction
STRIDE = 3  # tokens between the starts of two successive blocks


class Attention(Projections):
    """A slot attends to the features of the text before its block, and to all slots of the block."""

    def forward(self, x: Tensor, text: Tensor, rotary: TensorPair, text_rotary: TensorPair, masked: Tensor) -> Tensor:
        """Attend from the slots `x` [rows, blocks, slots, hidden] to `text` [rows, n, hidden] and to their own blocks.

        `x` and `text` are normed; rotary is (cos, sin). `masked` [blocks · slots, n] is True for text a slot ignores.
        """
        rows, blocks, slots, _ = x.shape

        def by_head(projection: nn.Linear, y: Tensor) -> Tensor:
            return projection(y).view(rows, -1, self.heads, projection.weight.shape[0] // self.heads).transpose(1, 2)

        def by_block(y: Tensor) -> Tensor:
            return y.unflatten(2, (blocks, slots))

        q, k = apply_rotary_pos_emb(by_head(self.q_proj, x), by_head(self.k_proj, x), *rotary)
        v, text_v, text_k = by_head(self.v_proj, x), by_head(self.v_proj, text), by_head(self.k_proj, text)
        text_k = apply_rotary_pos_emb(text_k, text_k, *text_rotary)[0]
        q = q * q.shape[-1] ** -0.5
        before = (q @ text_k.transpose(2, 3)).masked_fill(masked, float("-inf"))
        within = by_block(q) @ by_block(k).transpose(3, 4)
        weights = torch.cat((before, within.flatten(2, 3)), -1).float().softmax(-1).to(x.dtype)
        n = text.shape[1]
        y = weights[..., :n] @ text_v + (by_block(weights[..., n:]) @ by_block(v)).flatten(2, 3)
        return self.o_proj(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """A decoder layer that applies its input norm to the text's features too."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(config), LlamaMLP(config)
        self.input_layernorm, self.post_attention_layernorm = (
            LlamaRMSNorm(config.hidden_size, config.rms_norm_eps) for _ in range(2)
        )

    def forward(self, x: Tensor, text: Tensor, rotary: TensorPair, text_rotary: TensorPair, masked: Tensor) -> Tensor:
        norm = self.input_layernorm
        x = x + self.self_attn(norm(x), norm(text), rotary, text_rotary, masked)
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
    """The drafter, with the parameter names of DFlash and DSpark where they exist.

    Before training, its layers have no effect.
    """

    def __init__(self, config: LlamaConfig, teacher: LlamaForCausalLM, taps: int) -> None:
        super().__init__()
        width, embeddings = config.hidden_size, teacher.model.embed_tokens.weight.detach().float()
        self.fc = nn.Linear(taps * width, width, bias=False)
        self.embed_norm, self.hidden_norm, self.norm = (LlamaRMSNorm(width, config.rms_norm_eps) for _ in range(3))
        self.slots = nn.Embedding(SLOTS - 1, width)  # replace the embeddings of tokens that are not drafted yet
        layers = [Layer(config) for _ in range(LAYERS)]
        self.layers = nn.ModuleList(layers)
        self.lm_head = nn.Embedding(len(embeddings), width)  # an `nn.Embedding`, so that AdamW trains it
        self.markov_head = Markov(embeddings)
        with torch.no_grad():
            self.fc.weight.zero_()[:, -width:].fill_diagonal_(1.0)
            self.slots.weight.zero_()
            for layer in layers:
                layer.self_attn.o_proj.weight.zero_()
                layer.mlp.down_proj.weight.zero_()
            self.norm.weight.copy_(teacher.model.norm.weight)
            self.lm_head.weight.copy_(teacher.lm_head.weight)

    def forward(self, embeddings: Tensor, features: Tensor, anchors: Tensor, rotary: TensorPair) -> Tensor:
        """Return the states of all slots, for blocks that begin with the tokens at `anchors` [blocks].

        embeddings [rows, n, hidden], features [rows, n, taps · hidden] -> [rows, blocks, SLOTS, hidden]
        """
        text = self.fc(features)
        embedding = self.embed_norm(embeddings[:, anchors])[:, :, None]
        slots = self.slots.weight.expand(*embedding.shape[:2], -1, -1)
        x = self.hidden_norm(text[:, anchors - 1])[:, :, None] + torch.cat((embedding, slots), 2)
        positions = (anchors[:, None] + torch.arange(SLOTS, device=anchors.device)).flatten()
        cos, sin = rotary
        n = embeddings.shape[1]
        masked = torch.arange(n, device=anchors.device) >= anchors.repeat_interleave(SLOTS)[:, None]
        for layer in self.layers:
            x = layer(x, text, (cos[:, positions], sin[:, positions]), (cos[:, :n], sin[:, :n]), masked)
        return self.norm(x)


class BlockLoss(Loss):
    """Computes the divergence of every slot's distribution from the target's."""

    def __init__(
        self, teacher: LlamaForCausalLM, block: Block, config: LlamaConfig, taps: tuple[int, ...] = ()
    ) -> None:
        super().__init__(teacher, config)
        self.block, self.taps, self.first_anchor = block, taps, 0

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None) -> Tensor:
        self.first_anchor = 1 + self.first_anchor % STRIDE
        anchors = torch.arange(self.first_anchor, ids.shape[1] - SLOTS, STRIDE, device=ids.device)
        p = self.target(last)
        states = self.block(F.embedding(ids, self.embedding), features, anchors, self.rotary)
        divergences = []
        for slot in range(SLOTS):
            correction = self.block.markov_head(ids[:, anchors + slot])
            q = log_distribution(states[:, :, slot] @ self.block.lm_head.weight.T + correction)
            divergences.append(divergence(p[:, anchors + slot], q))
        return weighted_sum(divergences)
