"""Define the target for training: a small Llama with early exits at a third and a half of its depth."""

import copy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from specdec.models.device import multiplies_bfloat16

from .data import VOCABULARY

# The layers are many and narrow, so that a layer of a draft model costs a small share of a target pass.
SHAPE = {"num_hidden_layers": 24, "hidden_size": 192, "intermediate_size": 512, "num_attention_heads": 3}
# A model of half the depth, the stem, is trained first, because training it costs half as much per token.
STEM = {**SHAPE, "num_hidden_layers": 12}
EXIT_WEIGHT = 0.3


def build(shape: dict[str, int], seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, **shape, num_key_value_heads=shape["num_attention_heads"],
        max_position_embeddings=512, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(config)


@torch.no_grad()
def deepened(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """Double the layers without changing the function: each layer is followed by a copy that adds nothing.

    A copy has output matrices of zeros (as in Net2Net, arXiv 1511.05641).
    """
    config = copy.deepcopy(model.config)
    config.num_hidden_layers *= 2
    deep = AutoModelForCausalLM.from_config(config).to(model.device)
    deep.model.embed_tokens.load_state_dict(model.model.embed_tokens.state_dict())
    deep.model.norm.load_state_dict(model.model.norm.state_dict())
    for i, layer in enumerate(deep.model.layers):
        layer.load_state_dict(model.model.layers[i // 2].state_dict())
        if i % 2:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    return deep


def exit_layers(model: LlamaForCausalLM) -> tuple[int, int]:
    layers = model.config.num_hidden_layers
    return layers // 3, layers // 2


class TargetLoss:
    """Adds to the next-token loss the loss of an early exit on a quarter of the rows (LayerSkip, arXiv 2404.16710).

    The two exits take turns.
    """

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.model, self.exits, self.step = model, exit_layers(model), 0

    def __call__(self, ids: Tensor) -> Tensor:  # [rows, length + 1]
        self.step += 1
        inputs, targets = ids[:, :-1], ids[:, 1:]
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=multiplies_bfloat16(str(ids.device))):
            out = self.model.model(input_ids=inputs, use_cache=False, output_hidden_states=True)
            rows = max(1, len(inputs) // 4)
            early = self.model.model.norm(out.hidden_states[self.exits[self.step % 2]][:rows])
            return self.nll(out.last_hidden_state, targets) + EXIT_WEIGHT * self.nll(early, targets[:rows])

    def nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(self.model.lm_head(hidden).float().flatten(0, 1), targets.flatten())
