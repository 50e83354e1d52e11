"""Recognise and load models and drafters, published ones and our own.

What is not among `LOADED`, or does not fit the target, raises Refused with the reason. Checkpoints run no code.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from ..drafters.base import checked_taps
from ..drafters.block import BlockHead, BlockLayout
from ..drafters.eagle3 import default_taps, Eagle3Head, INPUT_NORM, layer_config
from ..drafters.medusa import MedusaHeads
from ..drafters.mtp import MTPHead
from ..messages import Refused
from ..models import gguf_header
from ..models.base import LoadedModel, Target
from ..models.checkpoint import open_weights, read_config, section
from ..models.config import Config, is_ours
from ..models.files import brief, read_json
from ..models.grouped import CODE_TYPES, GGUF
from ..models.hugging_face import checked, HuggingFaceModel
from ..models.matrix import draft_dtype
from ..models.packed import is_packed
from ..models.reduced import ReducedDraft
from ..models.transformer import Transformer
from ..text import Pieces
from . import gguf_tokenizer, hub

Model = Transformer | HuggingFaceModel

ENGINES = "vLLM and SGLang run it"
VLLM = "vLLM runs it"
WHOLE = {"embed_tokens.weight", "layers.0.input_layernorm.weight", "norm.weight"}  # what every language model has
LOADED = "EAGLE-3 and 3.1, DFlash, DSpark, Medusa 1, MTP layers in a file of their own, and draft models"


@dataclass(frozen=True)
class Format:
    """A format of drafters. Those with `runs` are refused."""

    name: str
    types: str  # pattern of the types in config.json; "": its config.json names none
    tensors: str  # pattern of a tensor's name that no other format has; of all that fit, the first format counts
    runs: str = ""  # what runs it


FORMATS = (
    Format("DFlash 2", r"dflash2", r"^never$", VLLM),
    Format("a DSpark drafter for Gemma", r"gemma\w*dspark", r"^never$", "vLLM and its authors' DeepSpec run it"),
    Format("Domino", r"domino", r"^domino|^embed_proj", "its authors' SpecForge runs it"),
    Format("P-EAGLE", r"p_?eagle", r"^mask_hidden$", VLLM),
    Format("EAGLE-3 with DeepSeek's attention", r"eagle3deepseek|deepseek\w*eagle3", r"self_attn\.kv_a_proj", VLLM),
    Format("Hydra", r"hydra", r"^hydra", "its authors' code runs it (github.com/zankner/Hydra)"),
    Format("an MLP speculator", r"mlp_?speculator", r"^speculator\.", "vLLM ran it before its engine V1"),
    Format("ReDrafter", r"redrafter|recurrentdraft", r"^drafter\.|rnn_u\.weight$", "TensorRT-LLM runs it"),
    Format("MiMo's MTP layers", r"mimo\w*mtp|mimo_mtp", r"mtp_layers\.\d+\.", ENGINES),
    Format("Qwen3-Next's MTP layers", r"qwen3_?(next|5)\w*mtp", r"^mtp\.", ENGINES),
    Format("DeepSeek's MTP layers inside a model", r"deepseek_?mtp|glm\w*mtp", r"layers\.\d+\.eh_proj\.", ENGINES),
    Format("reduced", r"", r"^reads\.weight$"),
    Format("block", r"dflash|dspark", r"^hidden_norm\.weight$"),
    Format("eagle3", r"eagle_?3", r"^d2t$|^midlayer\.|layers\.0\.hidden_norm\."),
    Format("EAGLE-1 or EAGLE-2", r"eagle", r"^fc\.weight$", ENGINES),
    Format("medusa", r"medusa", r"^(medusa_head\.)?\d+\.\d+\.linear\.weight$"),
    Format("mtp", r"", r"^eh_proj\.weight$"),
)


def head_format(config: Mapping[str, Any], tensors: Iterable[str]) -> str:
    """Return the `name` of a drafter's format; "" for a draft model. Raises Refused if it is not loaded here."""
    stated = (config.get("speculators_model_type"), *(config.get("architectures") or ()), config.get("model_type"))
    types = [str(name).lower() for name in stated if name]
    names = {name.removeprefix("model.") for name in tensors}
    by_type = (form for kind in types for form in FORMATS if form.types and re.search(form.types, kind))
    by_tensor = (form for form in FORMATS if any(re.search(form.tensors, name) for name in names))
    is_model = names >= WHOLE and "fc.weight" not in names
    form = next(by_type, None) or (None if is_model else next(by_tensor, None))
    if form is not None and form.runs:
        raise Refused(f"this is {form.name}, which is not loaded here; {form.runs}. SpecDec loads {LOADED}")
    return "" if form is None else form.name


def load_model(folder: Path, dtype: torch.dtype, device: str, stored: torch.dtype | None = None) -> Model:
    """Load a model with our own decoder if it supports the model's type, otherwise with transformers."""
    if is_ours(read_config(folder)):
        return Transformer.load(folder, dtype, device, stored)
    if stored in CODE_TYPES:
        raise Refused("transformers runs this model, which works only in float32 or bfloat16")
    return HuggingFaceModel.load(folder, stored or dtype, device)


def load_drafter(folder: Path, target: LoadedModel, tokenizer: Tokenizer) -> Any:
    """Load the drafter in `folder` for `target`. Raises Refused if it does not fit."""
    # Heads are rounded only if their file is packed in 8 bits, or if `specdec train` wrote them.
    stored = draft_dtype(target.device) if is_packed(folder) else None
    return load_head(folder, open_weights(folder), target, stored) or draft_model(folder, target, tokenizer)


def load_head(folder: Path, weights: Mapping[str, Tensor], target: LoadedModel, stored: torch.dtype | None) -> Any:
    """Load a drafter that uses the target's states or embeddings, rounded to `stored`; None: there is none."""
    has_config = gguf_header.is_file(folder) or (folder / "config.json").is_file()
    config = read_config(folder) if has_config else {}
    if not (form := head_format(config, weights)):
        return None
    try:
        return head_of(form, config, weights, target, stored)
    except ValueError as error:
        raise Refused(f"{error}; `specdec doctor` tells what is wrong with a head") from error


def head_of(
    form: str, config: Mapping[str, Any], weights: Mapping[str, Tensor], target: LoadedModel, stored: torch.dtype | None
) -> Any:
    """Make the drafter of the format `form` from a config.json ({} if there is none) and tensors. See `load_head`."""
    if not isinstance(target, Transformer):
        raise Refused("heads need a target that SpecDec's own decoder runs; use a plain draft model for this target")
    if "trained" in config:
        stored = stored or draft_dtype(target.device)
    if form == "medusa":
        return medusa(weights, target, stored)
    if not config:
        raise Refused("there is no config.json")
    if form == "reduced":
        return ReducedDraft(Config.parse(config), weights, target, stored)
    if form == "block":
        return BlockHead(BlockLayout.parse(config, target.depth), weights, target, stored)
    if form == "mtp":
        return MTPHead(Config.parse(config), weights, target, stored, bool(config.get("norm_output", True)))
    return eagle3(weights, config, target, stored)


def eagle3(
    weights: Mapping[str, Tensor], config: Mapping[str, Any], target: Target, stored: torch.dtype | None
) -> Eagle3Head:
    """Load a head of any publisher. Rename its tensors to the authors' names (github.com/SafeAILab/EAGLE, cnets.py)."""
    renamed = {re.sub(r"^layers\.0\.", "midlayer.", name): w for name, w in weights.items()}
    # Leave out copies of the target's tensors, and `inv_freq`, which our decoder computes.
    tensors = {name: w for name, w in renamed.items() if not re.search(r"^verifier_|inv_freq$", name)}
    facts = {**config, **section(config, "eagle_config")}
    for key, name in (("fc_norm", "fc_norm.0.weight"), ("norm_before_fc", INPUT_NORM)):
        if facts.get(key) and name not in tensors:
            raise Refused(f"config.json says {key}, but the checkpoint lacks {name}")
    if "lm_head.weight" in tensors and "d2t" not in tensors:
        tensors["lm_head.weight"] = tensors["lm_head.weight"][: target.vocabulary]  # further rows are padding
    layer = layer_config({**config, **section(config, "transformer_layer_config")})
    taps, norms = eagle3_taps(config, target.depth), ("norm_before_residual", "norm_output")
    norm_first, norm_output = (bool(facts.get(name)) for name in norms)
    return Eagle3Head(layer, tensors, target, taps, norm_first, stored, norm_output)


def eagle3_taps(config: Mapping[str, Any], depth: int) -> tuple[int, ...]:
    """Return the layers whose inputs are fused."""
    key = "eagle_aux_hidden_state_layer_ids"
    top_level, nested = config.get(key), section(config, "eagle_config").get(key)
    # In a list at the top level (`speculators`), i means the input of layer i, as here. In one under `eagle_config`
    # (SpecForge, Model Optimizer), i means the output of layer i if the config has the key `architectures`.
    after = not top_level and bool(nested and config.get("architectures"))
    return checked_taps(top_level or nested or default_taps(depth), depth, after)


def medusa(weights: Mapping[str, Tensor], target: Target, stored: torch.dtype | None) -> MedusaHeads:
    """Load the heads of Medusa 1. The tensors count heads and blocks, as config.json is often wrong."""
    renamed = {re.sub(r"^medusa_head\.(?=\d+\.\d+\.)", "", name): w for name, w in weights.items()}
    outputs = {name: w[: target.vocabulary] for name, w in renamed.items() if ".linear." not in name}  # without padding
    return MedusaHeads(renamed | outputs, target, stored=stored)


def model_in_memory(model: Any) -> HuggingFaceModel:
    """Take a model of transformers. Raises Refused for one that cannot run here, and for any other object."""
    if not hasattr(model, "config") or not hasattr(model, "get_output_embeddings"):
        raise Refused(
            f"a {type(model).__name__} cannot be a model here; give a name on the Hub, a folder, a GGUF file, or a "
            "causal language model of transformers"
        )
    with hub.reading(type(model).__name__):
        checked(model.config)
        return HuggingFaceModel(model)


def draft_model(folder: Path, target: LoadedModel, tokenizer: Tokenizer) -> Model:
    """Load a draft model in the precision of its target, and cut its vocabulary to the target's."""
    check_same_tokens(tokenizer, load_tokenizer(folder), target.vocabulary)
    stored: torch.dtype | None = target.stored
    if stored in CODE_TYPES and not is_ours(read_config(folder)):
        stored = None
    elif stored == GGUF and not gguf_header.is_file(folder):
        stored = torch.int8
    draft = load_model(folder, target.dtype, target.device, stored)
    cut_vocabulary(draft, target.vocabulary)
    return draft


def prefix(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the tokens that the tokenizer puts before every text."""
    encoded = tokenizer.encode("a")
    is_text = [part is not None for part in encoded.sequence_ids]
    return tuple(encoded.ids[: is_text.index(True)]) if True in is_text else ()


def end_tokens(folder: Path) -> frozenset[int]:
    if gguf_header.is_file(folder):
        return gguf_tokenizer.end_tokens(gguf_header.read_header(folder))
    ends: Any = None
    for name in ("config.json", "generation_config.json"):  # the second, if it exists, overrules the first
        if (folder / name).exists():
            ends = read_json(folder / name).get("eos_token_id", ends)
    return frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load tokenizer.json, or the tokenizer in a GGUF file, without truncation and padding."""
    if gguf_header.is_file(folder):
        return gguf_tokenizer.load_tokenizer(gguf_header.read_header(folder))
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises no class of its own
        raise Refused(f"tokenizer.json cannot be read: {brief(error)}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check_same_tokens(ours: Tokenizer, theirs: Tokenizer, count: int) -> None:
    """Raise Refused if an id below `count` stands for other bytes, or another control token, in `theirs`."""
    pieces = Pieces(ours), Pieces(theirs)
    for i in range(count):
        a, b = (reader.piece(i) for reader in pieces)
        if pieces[0].bytes(i) != pieces[1].bytes(i) or (a and b and a != b):
            raise Refused(
                f"another tokenizer: id {i} is {a!r} for the target and {b!r} for the draft model; "
                "choose a draft model of the target's own family"
            )


def shared_vocabulary(target: LoadedModel, tokenizer: Tokenizer) -> int:
    """Return one more than the tokenizer's highest id. A model's matrices can have more rows, as padding."""
    return min(target.vocabulary, 1 + max(tokenizer.get_vocab(with_added_tokens=True).values()))


def cut_vocabulary(model: LoadedModel, count: int) -> None:
    """Cut padding, so that no id without a token is drafted or sampled. Raises Refused if fewer are there."""
    if model.vocabulary < count:
        raise Refused(f"the model's vocabulary has {model.vocabulary} tokens, but the target's has {count}")
    if model.vocabulary > count:
        model.cut_vocabulary(count)
