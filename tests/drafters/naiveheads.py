"""Naive second implementations of heads: transformers' target, the whole text anew, no cache."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.toyheads import HEADS, MASK, MODEL, SLOTS, TAPS, WIDTH

Weights = dict[str, Tensor]


def parts_of(weights: Weights, at: str = "") -> Callable[[str], Tensor]:
    return lambda name: weights[f"{at}{name}.weight"]


@torch.no_grad()
def naive_medusa(weights: Weights, text: list[int], count: int = 4, blocks: int = 1) -> Tensor:
    """Logits of the heads behind `text`, from the state of its last token but one.  # [count, V]"""
    state = MODEL.model(torch.tensor([text[:-1]])).last_hidden_state[0, -1]
    rows = []
    for head in range(count):
        x = state
        for block in range(blocks):
            part = f"{head}.{block}.linear"
            x = x + F.silu(F.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"]))
        rows.append(F.linear(x, weights.get(f"{head}.{blocks}.weight", MODEL.lm_head.weight)))
    return torch.stack(rows)


@torch.no_grad()
def naive_eagle3(weights: Weights, text: list[int], drafted: list[int]) -> Tensor:
    """Logits of one token more after `text` and `drafted`, over the draft vocabulary.  # [draft V]"""
    states = MODEL(torch.tensor([text[:-1]]), output_hidden_states=True).hidden_states
    stream = F.linear(torch.cat([states[tap][0] for tap in TAPS], -1), weights["fc.weight"])
    for count in range(len(drafted) + 1):
        last = naive_layer(weights, text[1:] + drafted[:count], stream)[-1:]
        stream = torch.cat([stream, last])
    return F.linear(norm(last, weights["norm.weight"])[-1], weights["lm_head.weight"])


def naive_layer(weights: Weights, tokens: list[int], stream: Tensor) -> Tensor:
    """With the target's words; the residual is the stream."""
    part, n = parts_of(weights, "midlayer."), len(stream)
    words = MODEL.model.embed_tokens.weight[torch.tensor(tokens)]
    x = torch.cat([norm(words, part("input_layernorm")), norm(stream, part("hidden_norm"))], -1)
    return attended(part, x, stream, torch.full((n, n), float("-inf")).triu(1))


@torch.no_grad()
def naive_mtp(weights: Weights, text: list[int], drafted: list[int]) -> Tensor:
    """Logits of one token more after `text` and `drafted`.  # [V]"""
    part = parts_of(weights)
    states = MODEL.model(torch.tensor([text[:-1]])).last_hidden_state[0]
    for count in range(len(drafted) + 1):
        words = MODEL.model.embed_tokens.weight[torch.tensor(text[1:] + drafted[:count])]
        x = torch.cat([norm(words, part("enorm")), norm(states, part("hnorm"))], -1)
        x = F.linear(x, part("eh_proj"))
        seen = torch.full((len(x), len(x)), float("-inf")).triu(1)
        states = torch.cat([states, naive_block(weights, "", x, x[:0], seen)[-1:]])
    return F.linear(norm(states[-1], part("shared_head.norm")), MODEL.lm_head.weight)


@torch.no_grad()
def naive_slots(weights: Weights, text: list[int], slots: int = SLOTS) -> Tensor:
    """Logits of all slots of a block after `text`, which begins with its last token; uncorrected.  # [slots, V]"""
    states = MODEL(torch.tensor([text[:-1]]), output_hidden_states=True).hidden_states
    fused = F.linear(torch.cat([states[tap][0] for tap in TAPS], -1), weights["fc.weight"])
    known, block = norm(fused, weights["hidden_norm.weight"]), [text[-1], *[MASK] * (slots - 1)]
    x = weights.get("embed_tokens.weight", MODEL.model.embed_tokens.weight)[block]
    seen = torch.zeros(slots, len(known) + slots)
    for i in range(2):
        x = naive_block(weights, f"layers.{i}.", x, known, seen)
    return F.linear(norm(x, weights["norm.weight"]), weights.get("lm_head.weight", MODEL.lm_head.weight))


def naive_correction(weights: Weights, token: int) -> Tensor:
    """What the token before adds to a slot's logits.  # [V]"""
    return weights["markov_head.markov_w2.weight"] @ weights["markov_head.markov_w1.weight"][token]


def naive_block(weights: Weights, at: str, x: Tensor, known: Tensor, seen: Tensor) -> Tensor:
    """A decoder layer on x, whose keys and values are those of `known`, as it is, and of x; `seen` [x, known + x] is
    added.
    """
    part = parts_of(weights, at)
    read = torch.cat([known, norm(x, part("input_layernorm"))])
    return attended(part, read, x, seen, f"{at}self_attn.q_norm.weight" in weights)


def attended(part: Callable[[str], Tensor], read: Tensor, x: Tensor, seen: Tensor, qk_norm: bool = False) -> Tensor:
    """Attention of the last rows of `read`, one for each of x, and the MLP, both added to x."""
    q, k, v = (F.linear(read, part(f"self_attn.{name}_proj")).view(len(read), HEADS, -1) for name in "qkv")
    if qk_norm:
        q, k = norm(q, part("self_attn.q_norm")), norm(k, part("self_attn.k_norm"))
    q, k = turned(q)[-len(x) :], turned(k)
    shares = (torch.einsum("ihd,jhd->hij", q, k) * q.shape[-1] ** -0.5 + seen).softmax(-1)
    y = torch.einsum("hij,jhd->ihd", shares, v).reshape(len(x), WIDTH)
    x = x + F.linear(y, part("self_attn.o_proj"))
    inner = norm(x, part("post_attention_layernorm"))
    inner = F.silu(F.linear(inner, part("mlp.gate_proj"))) * F.linear(inner, part("mlp.up_proj"))
    return x + F.linear(inner, part("mlp.down_proj"))


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def turned(x: Tensor) -> Tensor:  # [n, heads, dim]
    n, _, dim = x.shape
    angles = torch.arange(n)[:, None, None] / 10000.0 ** (torch.arange(0, dim, 2) / dim)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
