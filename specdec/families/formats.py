"""Recognise the format of a drafter's checkpoint, and refuse by its name what is not loaded here.

What config.json names as its type is believed. If it names none, or only the type of a language model, the names of the
tensors decide. Formats as of November 2026 (`assets/sources.json`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..messages import Refused

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
