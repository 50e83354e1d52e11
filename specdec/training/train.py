"""`specdec train`: a drafter for any target that our own decoder runs, from nothing but that target."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file

from ..families import zoo
from ..figures.machine import give_memory_back
from ..models.checkpoint import SINGLE
from ..models.packed import FILE, pack_rows, ROWS
from .draft_model import DraftModel, LAYERS, WIDTH
from .eagle3 import Eagle3
from .examples import Example, likely, load, save, SHARD, Writer
from .loop import Draft, fit, Progress

METHODS = ("draft_model", "eagle3")
VOCABULARY = 8_192  # tokens that a drafter knows
WRITING = 0.4  # share of the time: more examples are better than more rounds over few
ENOUGH = 2_000_000  # tokens of answers: no more are written, and the time is left to learning
HELD_OUT = 20  # of so many examples one is kept to measure with
FEWEST = 2 * HELD_OUT  # examples, below which nothing is learned that could be measured
EXAMPLES, CHECKPOINT, CONFIG = "examples", "checkpoint.pt", "config.json"
LARGEST = 2**20  # bytes of a file of prompts

Tell = Callable[[str], None]


def train(
    target: str, out: Path, minutes: float, method: str = METHODS[0], prompts: Path | None = None, tell: Tell = print,
    *, rows: int = 64, width: int = WIDTH, layers: int = LAYERS,
) -> dict[str, float]:  # fmt: skip
    """Write examples, learn from them, and leave in `out` a folder that `--draft` takes; what was measured at the end.

    The same command goes on where it ended: with the examples and the weights that lie in `out`. ValueError for what
    cannot be done.
    """
    if method not in METHODS:
        raise ValueError(f"there is no way to train {method!r} here; choose from {', '.join(METHODS)}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out names a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / EXAMPLES).is_dir():
        raise ValueError(f"{out} holds other files; --out names a new folder, or one that this command began")
    checkpoint = out / CHECKPOINT
    begun = torch.load(checkpoint, weights_only=True) if checkpoint.exists() else None
    if begun and ("fc" in begun["model"]) != (method == "eagle3"):
        raise ValueError(f"{out} holds a drafter of another method; --out names a new folder, or --method that one")
    asked = read_prompts(prompts) if prompts else []
    began, seconds = time.monotonic(), 60.0 * minutes
    give_memory_back()  # half a gigabyte a minute is lost between the tensors of examples without
    family = zoo.load_pair(target)
    family.use_threads()
    (out / EXAMPLES).mkdir(parents=True, exist_ok=True)
    seed = len(list((out / EXAMPLES).iterdir()))
    writer = Writer(family, asked, rows, seed)
    examples = write(writer, out / EXAMPLES, began + WRITING * seconds, tell)
    held_out, taught = examples[::HELD_OUT], [example for i, example in enumerate(examples) if i % HELD_OUT]
    known = begun["known"] if begun else likely(taught, family.target.vocabulary, VOCABULARY)
    del begun
    torch.manual_seed(seed)
    model: Draft = Eagle3(writer.model, known) if method == "eagle3" else DraftModel(writer.model, known, width, layers)
    figures: dict[str, float] = {}

    def measured(progress: Progress) -> None:
        agreement, overlap = model.measured(held_out)
        figures.update(agreement=agreement, overlap=overlap, steps=progress.steps, tokens=progress.tokens)
        tell(
            f"{(time.monotonic() - began) / 60:6.1f} min  {progress.tokens:,} tokens learned from  "
            f"same favourite {agreement:.3f}  overlap {overlap:.3f}"
        )

    measured(Progress())
    fit(model, taught, began + seconds - time.monotonic(), checkpoint, measured, seed)
    export(model, family, out, target, figures)
    tell(f"written: {out}; use it with --target {target} --draft {out}")
    return figures


def read_prompts(path: Path) -> list[str]:
    """One a line. ValueError for a file of anything else."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} is larger than {LARGEST:,} bytes; give fewer prompts")
        found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no text that can be read: one prompt a line, in UTF-8") from error
    if not found:
        raise ValueError(f"{path} holds no prompt; write one a line")
    return found


def write(writer: Writer, folder: Path, until: float, tell: Tell) -> list[Example]:
    """The examples in that folder, and as many more as the time allows; what is whole is kept in files."""
    examples = [example for path in sorted(folder.glob("*.safetensors")) for example in load(path)]
    total = sum(len(example.places) for example in examples)
    shard: list[Example] = []

    def keep() -> None:
        save(shard, folder / f"{len(list(folder.glob('*.safetensors'))):04d}.safetensors")
        tell(f"examples: {len(examples):,}, with {total:,} tokens of answers")

    for example in writer.examples() if total < ENOUGH else ():
        if example is not None:
            shard.append(example)
            examples.append(example)
            total += len(example.places)
        if sum(len(one.places) for one in shard) >= SHARD:
            keep()
            shard = []
        if total >= ENOUGH or time.monotonic() > until:
            break
    if shard:
        keep()
    if len(examples) < FEWEST:
        raise ValueError(f"in that time the target wrote {len(examples)} texts that can be used; give more --minutes")
    return examples


def export(model: Draft, family: zoo.Family, out: Path, target: str, figures: dict[str, float]) -> None:
    """As `families/published.py` reads it. What others read, too, is in 16 bits, the rest in 8."""
    config = model.config(family.target.vocabulary, family.target.context)
    config["trained"] = {"target": target, **{name: round(figure, 4) for name, figure in figures.items()}}
    (out / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    weights = model.weights()
    if isinstance(model, Eagle3):
        weights = {
            name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in weights.items()
        }
        save_file(weights, out / SINGLE, {"format": "pt"})
    else:
        save_file(pack_rows(weights), out / FILE, {"format": "pt", "packed": ROWS})
