"""A tiny random target with heads on it, and a text that grows as the loop would let it grow."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from torch import Tensor

from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.drafters.base import Drafter
from specdec.drafters.block import BlockHead, BlockLayout
from specdec.drafters.eagle3 import Eagle3Head
from specdec.drafters.medusa import MedusaHeads
from specdec.drafters.mtp import MTPHead
from specdec.methods import ADAPTIVE, EXIT, Method, METHODS
from specdec.methods import MODEL as MODEL_PLACE
from specdec.models.config import Config
from specdec.models.quantised import QuantisedCopy
from specdec.models.transformer import Transformer
from specdec.models.view import TargetView
from specdec.proof.enumeration import completed, JointDistribution
from specdec.proof.toys import TableModel
from specdec.sampling import probabilities, RandomSampler
from specdec.types import Costs, Proposal, SamplingParams

LAYERS, WIDTH, HEADS = 6, 32, 2
TAPS = (2, 3, 3)  # low, middle, high of six layers
DRAFT_IDS = sorted({*range(0, 23, 2), 1, 5, 11})  # the tokens that the EAGLE-3 head knows, of 23
Make = Callable[[TargetView], Drafter]


def shape(vocabulary: int = 23, **changes: Any) -> transformers.LlamaConfig:
    return transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=160, pad_token_id=None, bos_token_id=0, eos_token_id=1,
        **{"tie_word_embeddings": True, **changes},
    )  # fmt: skip


def decoder(config: transformers.PretrainedConfig, seed: int = 0) -> Any:
    """By transformers, in fp32, with norms and biases that are neither ones nor zeros and logits that are no draw."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():
            vector = parameter.dim() == 1
            parameter.copy_(parameter + 0.2 * torch.randn_like(parameter) if vector else 6.0 * parameter)
    return model


def ours(model: Any, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Transformer:
    return Transformer(Config.parse(model.config.to_dict()), model.state_dict(), dtype, device)


def medusa_weights(heads: int = 4, outputs: int = 0, blocks: int = 1, seed: int = 1) -> dict[str, Tensor]:
    """In the published layout; `outputs` is the vocabulary of own output matrices, 0 for none."""
    torch.manual_seed(seed)
    weights = {}
    for head in range(heads):
        for block in range(blocks):
            weights[f"{head}.{block}.linear.weight"] = torch.randn(WIDTH, WIDTH) * 0.3
            weights[f"{head}.{block}.linear.bias"] = torch.randn(WIDTH) * 0.3
        if outputs:
            weights[f"{head}.{blocks}.weight"] = torch.randn(outputs, WIDTH)
    return weights


def eagle3_weights(vocabulary: int = 23, ids: Sequence[int] = DRAFT_IDS, seed: int = 2) -> dict[str, Tensor]:
    shapes = {
        "fc.weight": (WIDTH, 3 * WIDTH), "lm_head.weight": (len(ids), WIDTH), "norm.weight": (WIDTH,),
        "midlayer.hidden_norm.weight": (WIDTH,), "midlayer.input_layernorm.weight": (WIDTH,),
        "midlayer.post_attention_layernorm.weight": (WIDTH,),
        **{f"midlayer.self_attn.{part}_proj.weight": (WIDTH, 2 * WIDTH) for part in "qkv"},
        "midlayer.self_attn.o_proj.weight": (WIDTH, WIDTH),
        "midlayer.mlp.gate_proj.weight": (48, WIDTH), "midlayer.mlp.up_proj.weight": (48, WIDTH),
        "midlayer.mlp.down_proj.weight": (WIDTH, 48),
    }  # fmt: skip
    weights = made(shapes, seed)
    weights["lm_head.weight"] *= 3.0
    known = torch.tensor(ids)
    weights["d2t"] = known - torch.arange(len(ids))
    weights["t2d"] = torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, known, True)
    return weights


def eagle3_config(ids: Sequence[int] = DRAFT_IDS, vocabulary: int = 23) -> dict[str, Any]:
    facts = shape(vocabulary, tie_word_embeddings=False).to_dict()
    aux = {"eagle_aux_hidden_state_layer_ids": list(TAPS), "use_aux_hidden_state": True}
    return {**facts, "num_hidden_layers": 1, "draft_vocab_size": len(ids), "eagle_config": aux}


SLOTS, RANK, MASK = 5, 3, 2  # of the block drafter: drafted tokens, rank of its table, the token that stands for them


def made(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Random weights: norms around one, matrices small."""
    torch.manual_seed(seed)
    drawn = ((name, len(size) == 1, torch.randn(size)) for name, size in shapes.items())
    return {name: 1.0 + 0.2 * tensor if is_norm else 0.3 * tensor for name, is_norm, tensor in drawn}


def layer_shapes() -> dict[str, tuple[int, ...]]:
    return {
        "input_layernorm.weight": (WIDTH,), "post_attention_layernorm.weight": (WIDTH,),
        **{f"self_attn.{part}_proj.weight": (WIDTH, WIDTH) for part in "qkvo"},
        "mlp.gate_proj.weight": (48, WIDTH), "mlp.up_proj.weight": (48, WIDTH), "mlp.down_proj.weight": (WIDTH, 48),
    }  # fmt: skip


def block_weights(vocabulary: int = 23, seed: int = 6) -> dict[str, Tensor]:
    qk_norms = {f"self_attn.{part}_norm.weight": (WIDTH // HEADS,) for part in "qk"}
    weights = made(
        {
            "fc.weight": (WIDTH, 3 * WIDTH), "lm_head.weight": (vocabulary, WIDTH),
            "markov_head.markov_w1.weight": (vocabulary, RANK), "markov_head.markov_w2.weight": (vocabulary, RANK),
            **{f"{name}.weight": (WIDTH,) for name in ("hidden_norm", "norm")},
            **{f"layers.{i}.{name}": size for i in range(2) for name, size in {**layer_shapes(), **qk_norms}.items()},
        },
        seed,
    )  # fmt: skip
    for name in ("lm_head.weight", "markov_head.markov_w2.weight", "markov_head.markov_w1.weight"):
        weights[name] *= 3.0
    return weights


def block_config(vocabulary: int = 23) -> dict[str, Any]:
    """As DeepSpec writes it."""
    facts = {**shape(vocabulary).to_dict(), "model_type": "qwen3", "num_hidden_layers": 2}
    return {
        **facts, "architectures": ["Qwen3DSparkModel"], "block_size": SLOTS, "mask_token_id": MASK,
        "target_layer_ids": [tap - 1 for tap in TAPS], "markov_rank": RANK, "markov_head_type": "vanilla",
        "enable_confidence_head": False,
    }  # fmt: skip


def mtp_weights(seed: int = 7) -> dict[str, Tensor]:
    norms = {name: (WIDTH,) for name in ("enorm.weight", "hnorm.weight", "shared_head.norm.weight")}
    return made({**norms, "eh_proj.weight": (WIDTH, 2 * WIDTH), **layer_shapes()}, seed)


MODEL = decoder(shape())
TARGET = ours(MODEL)
EXIT_LAYER = 2


def drafts_on(target: Transformer) -> dict[str, Any]:
    return {
        "early_exit": EXIT_LAYER,
        "medusa": MedusaHeads(medusa_weights(), target),
        "eagle3": Eagle3Head(Config.parse(eagle3_config()), eagle3_weights(), target, TAPS),
    }


DRAFTS = drafts_on(TARGET)


def block_on(target: Transformer, stored: torch.dtype | None = None, vocabulary: int = 23) -> BlockHead:
    layout = BlockLayout.parse(block_config(vocabulary), target.depth)
    return BlockHead(layout, block_weights(vocabulary), target, stored)


def dflash_on(target: Transformer) -> BlockHead:
    """Of three tokens: the target's embeddings and output matrix, no table, and a first slot that does not draft."""
    config = {**block_config(3), "architectures": ["DFlashDraftModel"], "markov_rank": 0}
    weights = {name: w for name, w in block_weights(3).items() if name != "lm_head.weight" and "markov" not in name}
    return BlockHead(BlockLayout.parse(config, target.depth), weights, target)


def mtp_on(target: Transformer) -> MTPHead:
    return MTPHead(Config.parse(shape().to_dict()), mtp_weights(), target, norm_output=False)


BLOCK, MTP = block_on(TARGET), mtp_on(TARGET)
MEDUSA, EAGLE3 = DRAFTS["medusa"], DRAFTS["eagle3"]
DRAFT = TableModel(23, seed=4, context=160)


COPY = QuantisedCopy(TARGET)
COPY.__dict__["_model"] = DRAFT  # the target, when it is rounded

# What each kind of drafter drafts with, by the place of its class.
PARTS: dict[str, Any] = {
    "": None,
    EXIT: EXIT_LAYER,
    MODEL_PLACE: DRAFT,
    "drafters.medusa.MedusaHeads": MEDUSA,
    "drafters.eagle3.Eagle3Head": EAGLE3,
    "drafters.block.BlockHead": BLOCK,
    "drafters.mtp.MTPHead": MTP,
    "models.quantised.QuantisedCopy": COPY,
}


def maker(method: Method) -> Make:
    return lambda view: method.make(view, PARTS[method.part], 160)


# Every class of drafter there is; a variant is the same with other weights.
MAKERS: dict[str, Make] = {
    m.name: maker(m) for m in METHODS.values() if m.name != ADAPTIVE and (m.tree or not m.variant_of)
}


def adaptive(inner: Make) -> Make:
    return lambda view: AdaptiveDrafter(inner(view), Costs(0.1, (1.0, 1.0, 1.1)))


MAKERS |= {f"adaptive:{name}": adaptive(inner) for name, inner in MAKERS.items() if name != "none"}
WARM = SamplingParams(temperature=0.9, top_k=12)
TEXT = [0, 3, 1, 4, 1, 5, 3, 1, 4]


def view_of(target: Transformer = TARGET) -> TargetView:
    return TargetView(target, (*TAPS, len(target.layers)), EXIT_LAYER)


class Run:
    """A drafter at work: the target's cache holds every token of `text` but the last, as the loop keeps it."""

    def __init__(self, make: Make, text: Sequence[int] = TEXT, target: Transformer = TARGET) -> None:
        self.view, self.text = view_of(target), list(text)
        self.drafter = make(self.view)
        self.cache = self.view.new_cache(160)
        self.view.forward(self.text[:-1], self.cache)
        self.drafter.read_prompt(self.text[:-1])

    def propose(self, k: int, seed: int = 0, params: SamplingParams = WARM) -> Proposal:
        with torch.inference_mode():
            return self.drafter.propose(self.text, k, params, RandomSampler(seed))

    def commit(self, proposal: Proposal, path: Sequence[int], token: int) -> None:
        """Verification's part: the draft passes the target, `path` is kept, `token` comes behind it."""
        self.view.forward([self.text[-1], *proposal.tokens], self.cache, proposal.parents, len(proposal) + 1)
        self.cache.keep(len(self.text), path)
        self.text += [*(proposal.tokens[node] for node in path), token]


def exact_texts(target: Any, prompt: Sequence[int], params: SamplingParams) -> JointDistribution:
    def row(text: tuple[int, ...]) -> list[float]:
        logits = target.forward([*prompt, *text], target.new_cache(len(prompt) + params.max_tokens))
        return probabilities(logits[-1:], params)[0].tolist()

    return completed({(): 1.0}, params.max_tokens, row)
