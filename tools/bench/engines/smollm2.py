"""SmolLM2-135M in the Hub's layout, in float32, with itself in coarser numbers as the draft model."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from specdec.families import hub, star
from specdec.families.published import load_tokenizer
from specdec.lanes.transformers import load_model

LEVELS = 15  # of the draft, each side of zero in a row: often right, and wrong often enough for residuals


def write_pair(place: Path) -> None:
    """Write target/ and draft_model/ below `place`; fetch the model where it is not on this machine."""
    file = hub.find(star.NAME)
    model = load_model(file, torch.float32, "cpu")
    for name in ("target", "draft_model"):
        if name == "draft_model":
            with torch.no_grad():
                for weights in model.parameters():
                    weights.copy_(coarse(weights))
        model.save_pretrained(place / name)
        (place / name / "generation_config.json").unlink(missing_ok=True)
        load_tokenizer(file).save(str(place / name / "tokenizer.json"))
        path = place / name / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["rope_theta"] = config["rope_parameters"]["rope_theta"]  # where engines looked for it before 2026
        path.write_text(json.dumps(config), encoding="utf-8")


def coarse(weights: Tensor) -> Tensor:
    """Round a matrix to LEVELS numbers on either side of zero in a row; leave a vector as it is."""
    if weights.dim() == 1:
        return weights
    step = weights.abs().amax(-1, keepdim=True) / LEVELS
    return (weights / step).round() * step
