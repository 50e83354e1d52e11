"""The embedded family with a few layers of its target: text without sense, in a fraction of the time."""

import json
import re
import shutil
from pathlib import Path

from safetensors.torch import save_file

from specdec.models.checkpoint import read_weights
from specdec.paths import FAMILY

LAYERS, EXIT = 3, 1


def write(folder: Path) -> Path:
    """For what is the same for every target. The drafts and heads are those of the whole one, but for their taps."""
    for name in ("tokenizer", "draft_model", "medusa", "eagle3"):
        shutil.copytree(FAMILY / name, folder / name)
    rewrite(folder / "eagle3", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(range(LAYERS))}})
    shutil.copytree(FAMILY / "target", folder / "target", ignore=shutil.ignore_patterns("model*"))
    rewrite(folder / "target", {"num_hidden_layers": LAYERS, "exit_layers": [EXIT]})
    weights = read_weights(FAMILY / "target")
    layers = {name: re.match(r"model\.layers\.(\d+)\.", name) for name in weights}
    kept = {name: weights[name].clone() for name, layer in layers.items() if not layer or int(layer[1]) < LAYERS}
    save_file(kept, folder / "target" / "model.safetensors", {"format": "pt"})
    return folder


def rewrite(folder: Path, changes: dict[str, object]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
