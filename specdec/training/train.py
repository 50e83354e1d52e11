"""Train a drafter for any target that our own decoder runs (`specdec train`). The target can write the examples."""

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise

from ..families import hub, zoo
from ..figures.machine import give_memory_back
from ..models.files import prefix_errors
from ..models.packed import FILE, pack_rows, ROWS
from ..models.transformer import Transformer
from . import examples as example_files
from .draft_model import DraftModel, LAYERS, WIDTH
from .eagle3 import Eagle3
from .examples import Batch, Text
from .loop import fit, Progress, write_whole
from .loss import HeldOut, precision, read_batch, Reading, TrainableDraft
from .writing import Stop, tokens_around, Writer

METHODS = ("draft_model", "eagle3")
VOCABULARY = 8_192  # a drafter can draft at most this many different tokens
WRITING_SHARE = 0.4  # share of the time for writing examples
HELD_OUT_EVERY = 20  # of this many examples, one is held out to measure the draft
MAX_HELD_OUT = {"cpu": 32, "cuda": 512}
BATCH_TOKENS = {"cpu": 4_096, "cuda": 32_768}
MIN_EXAMPLES = 2 * HELD_OUT_EVERY
SHARD_TOKENS = 20_000  # a file of examples is saved once it has this many answer tokens
EXAMPLES = "examples"
CHECKPOINT = "checkpoint.pt"
CONFIG = "config.json"
CURVE = "curve.jsonl"

Tell = Callable[[str], None]


def train(
    target: str,
    out: Path,
    minutes: float,
    method: str = METHODS[0],
    prompts: Path | None = None,
    tell: Tell = print,
    *,
    device: str = "auto",
    texts: Sequence[Path] = (),
    width: int = WIDTH,
    layers: int = LAYERS,
) -> dict[str, Any]:
    """Write examples, train a drafter on them, and store its best state in `out`. Return the last measured figures.

    If `texts` (the flag --examples) names files of examples, no others are written. A second call with the same `out`
    continues with the examples and weights there. Raises ValueError if the arguments or the files cannot be used.
    """
    if method not in METHODS:
        raise ValueError(f"{method!r} is not a method of training; choose from {', '.join(METHODS)}")
    if out.exists() and not (out.is_dir() and ((out / EXAMPLES).is_dir() or not any(out.iterdir()))):
        raise ValueError(f"{out} exists and `specdec train` did not make it; choose another --out")
    checkpoint = out / CHECKPOINT
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True) if checkpoint.exists() else None
    if saved and ("eagle3" if "fc" in saved["model"] else "draft_model") != method:  # only EAGLE-3 has a tensor "fc"
        raise ValueError(f"{out} holds a drafter of another method; choose another --out, or change --method")
    lines = prompts.read_text(encoding="utf-8").splitlines() if prompts else []
    device = zoo.resolve_device(device)
    start = time.monotonic()
    give_memory_back()  # otherwise fragmentation wastes another half gigabyte each minute
    family = load_target(target, device)
    model, kind = family.target, "cpu" if device == "cpu" else "cuda"
    assert isinstance(model, Transformer)
    (out / EXAMPLES).mkdir(parents=True, exist_ok=True)
    # The seed counts the files and steps of earlier calls, so that this call does not repeat their random numbers.
    seed = len(list((out / EXAMPLES).iterdir())) + (saved["progress"]["steps"] if saved else 0)
    if not texts:
        end = start + WRITING_SHARE * 60.0 * minutes
        writer = Writer(family, [line.strip() for line in lines if line.strip()], seed=seed)
        write(writer, out / EXAMPLES, lambda: time.monotonic() >= end, tell)
    paths = [*texts, *sorted((out / EXAMPLES).glob("*.npz"))]
    examples = example_files.load(paths, tokens_around(family)[0], model.vocabulary, model.context)
    if len(examples) < MIN_EXAMPLES:
        advice = "" if texts else "; these stay there, so repeat the command with more --minutes"
        where = ", ".join(map(str, texts or [out / EXAMPLES]))
        raise ValueError(f"at least {MIN_EXAMPLES} texts are needed, but only {len(examples)} are in {where}{advice}")
    held_out = np.arange(len(examples))[::HELD_OUT_EVERY][: MAX_HELD_OUT[kind]]
    train_set = examples.select(np.setdiff1d(np.arange(len(examples)), held_out))
    frequent = torch.from_numpy(train_set.most_frequent(min(VOCABULARY, model.vocabulary), model.vocabulary))
    draft_ids = (saved["draft_ids"] if saved else frequent).to(device)
    torch.manual_seed(seed)
    draft: TrainableDraft = DraftModel(model, draft_ids, width, layers)
    if method == "eagle3":
        draft = Eagle3(model, draft_ids)
    tell(
        f"{len(train_set):,} texts with {train_set.answer_tokens:,} answer tokens to learn from, and {len(held_out)} "
        f"to measure the draft; {sum(p.numel() for p in draft.parameters()):,} weights, on {device}"
    )
    dtype, size = precision(device), BATCH_TOKENS[kind]

    def read_states(batch: Batch) -> Reading:
        return read_batch(model, batch, draft.taps, dtype)

    evaluation = HeldOut(model, map(read_states, examples.select(held_out).in_order(size)), draft_ids)
    batches = ((read_states(batch), len(batch.places)) for batch in train_set.shuffled(size, random.Random(seed)))
    best, figures = -1.0, dict[str, Any]()
    if saved and (out / CONFIG).exists():
        best = sum(json.loads((out / CONFIG).read_text(encoding="utf-8"))["trained"]["overlap"])

    def measure(progress: Progress) -> None:
        nonlocal best
        agreement, overlap = evaluation.measure(draft)
        figures.update(asdict(progress), agreement=agreement, overlap=overlap)
        figures["seconds"] = round(progress.seconds, 1)
        with (out / CURVE).open("a", encoding="utf-8") as curve:
            curve.write(json.dumps(figures) + "\n")
        if sum(overlap) > best:
            best = sum(overlap)
            export(draft, family, out, {"target": target, **figures})
        tell(
            f"{(time.monotonic() - start) / 60:6.1f} min  {progress.tokens:,} tokens learned from  same favourite "
            f"{' '.join(map(str, agreement))}  overlap {' '.join(map(str, overlap))}"
        )

    remaining = start + 60.0 * minutes - time.monotonic()
    extra = {"draft_ids": draft_ids.cpu()}
    fit(draft, draft.matrices(), draft.loss, batches, remaining, checkpoint, measure, extra)
    tell(f"written: {out}; use it with --target {target} --draft {out}")
    return figures


def load_target(target: str, device: str) -> zoo.Family:
    """Load a target without drafters, in bfloat16 if that is fast. `target` can also be a family's folder."""
    folder = tokenizer_folder = zoo.EMBEDDED if target == "embedded" else hub.find(target)
    if (folder / "target").is_dir():
        folder, tokenizer_folder = folder / "target", folder / "tokenizer"
    with prefix_errors(target):
        family = zoo.load_target(target, folder, tokenizer_folder, precision(device), device)
        if not isinstance(family.target, Transformer):
            raise ValueError("drafters can be trained only for models of our own decoder; transformers runs this model")
    return family


def write(writer: Writer, folder: Path, stop: Stop, tell: Tell) -> None:
    """Let `writer` write texts until `stop()`, and save them in `folder`."""
    shard, text_count, token_count = list[Text](), 0, 0

    def save() -> None:
        if shard:
            example_files.save(shard, folder / f"{len(list(folder.glob('*.npz'))):04d}.npz")
            shard.clear()

    tell(f"writing examples, {writer.rows:,} at once")
    for written in writer.texts(stop):
        shard += written
        text_count, token_count = text_count + len(written), token_count + answer_tokens(written)
        tell(f"examples: {text_count:,} written, with {token_count:,} tokens of answers")
        if answer_tokens(shard) >= SHARD_TOKENS:
            save()
    save()


def answer_tokens(texts: Sequence[Text]) -> int:
    return sum(len(text.tokens) - text.start for text in texts)


def export(draft: TrainableDraft, family: zoo.Family, out: Path, trained: dict[str, Any]) -> None:
    """Write config.json and the weights, with matrices in 8 bits, for `families/published.py`."""
    config = {**draft.config(family.target.vocabulary, family.target.context), "trained": trained}
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in draft.weights().items()}
    packed = serialise(pack_rows(weights), {"format": "pt", "packed": ROWS})
    write_whole(out / FILE, lambda path: path.write_bytes(packed))
    write_whole(out / CONFIG, lambda path: path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8"))
