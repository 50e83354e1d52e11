"""SmolLM2-135M as a family's folder, in float32, with itself in coarser numbers as the draft model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from specdec.families import gguf_tokenizer, star
from specdec.models import gguf
from specdec.models.checkpoint import SINGLE

LEVELS = 15  # of the draft, each side of zero in a row: often right, and wrong often enough for residuals


def write(place: Path) -> None:
    """target/, draft_model/ and tokenizer/ below `place`. The file is fetched where it is not on this machine."""
    header = gguf.read(star.find() or star.fetched())
    stored = gguf.Stored(header)
    config = gguf.config(header) | {"architectures": ["LlamaForCausalLM"], "dtype": "float32"}
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]  # where engines looked for it before 2026
    (place / "tokenizer").mkdir(parents=True)
    gguf_tokenizer.tokenizer(header).save(str(place / "tokenizer" / "tokenizer.json"))
    weights = {name: stored[name].contiguous() for name in stored}
    save(place / "target", config, weights)
    save(place / "draft_model", config, {name: coarse(tensor) for name, tensor in weights.items()})


def coarse(weights: Tensor) -> Tensor:
    """A matrix with LEVELS numbers each side of zero in a row; a vector as it is."""
    if weights.dim() == 1:
        return weights
    step = weights.abs().amax(-1, keepdim=True) / LEVELS
    return (weights / step).round() * step


def save(place: Path, config: dict[str, Any], weights: dict[str, Any]) -> None:
    place.mkdir()
    save_file(weights, place / SINGLE, {"format": "pt"})
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
