"""`specdec train`: a drafter for any target that our own decoder runs, from nothing but that target."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialised

from ..families import chat, hub, published, zoo
from ..figures.machine import give_memory_back
from ..models.checkpoint import naming
from ..models.packed import FILE, pack_rows, ROWS
from ..models.transformer import Transformer
from . import examples as files
from .draft_model import DraftModel, LAYERS, WIDTH
from .eagle3 import Eagle3
from .examples import Text
from .loop import fit, Progress
from .loss import Draft, HeldOut, precision, read
from .writing import Stop, tokens_around, Writer

METHODS = ("draft_model", "eagle3")
VOCABULARY = 8_192  # tokens that a drafter can draft
WRITING = 0.4  # share of the time: more examples are better than more rounds over few
HELD_OUT = 20  # of so many examples one is kept to measure with
HELD_OUT_MOST = {"cpu": 32, "cuda": 512}
BATCH_TOKENS = {"cpu": 4_096, "cuda": 32_768}
FEWEST = 2 * HELD_OUT  # examples, below which nothing is learned that could be measured
SHARD = 20_000  # tokens of answers in a file, at least
EXAMPLES = "examples"
CHECKPOINT = "checkpoint.pt"
CONFIG = "config.json"
CURVE = "curve.jsonl"
LARGEST = 2**20  # bytes of a file of prompts

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
    rows: int | None = None,
    batch_tokens: int | None = None,
    width: int = WIDTH,
    layers: int = LAYERS,
    inner: int = 0,
) -> dict[str, Any]:
    """Write examples, learn from them, and leave in `out` a folder that `--draft` takes; what was measured at the end.

    `texts` are files of examples to learn from instead of writing any. The same command goes on where it ended: with
    the examples and the weights that lie in `out`. ValueError for what cannot be done.
    """
    if method not in METHODS:
        raise ValueError(f"there is no way to train {method!r} here; choose from {', '.join(METHODS)}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out names a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / EXAMPLES).is_dir():
        raise ValueError(f"{out} holds other files; --out names a new folder, or one that this command began")
    checkpoint = out / CHECKPOINT
    begun = torch.load(checkpoint, map_location="cpu", weights_only=True) if checkpoint.exists() else None
    if begun and ("fc" in begun["model"]) != (method == "eagle3"):
        raise ValueError(f"{out} holds a drafter of another method; --out names a new folder, or --method that one")
    given = read_prompts(prompts) if prompts else []
    if lacking := [path for path in texts if not path.is_file()]:
        raise ValueError(f"there is no file {lacking[0]}; --examples names a NumPy archive of texts")
    device = zoo.resolved(device)
    began = time.monotonic()
    give_memory_back()  # half a gigabyte a minute is lost between the tensors of examples without
    family = load_target(target, device)
    model = family.target
    assert isinstance(model, Transformer)
    (out / EXAMPLES).mkdir(parents=True, exist_ok=True)
    seed = len(list((out / EXAMPLES).iterdir())) + (begun["progress"]["steps"] if begun else 0)
    kind = "cpu" if device == "cpu" else "cuda"
    with until(began + 60.0 * minutes) as stop:
        if not texts:
            with until(began + WRITING * 60.0 * minutes, stop) as written_enough:
                write(Writer(family, given, rows, seed), out / EXAMPLES, written_enough, tell)
        paths = [*texts, *sorted((out / EXAMPLES).glob("*.npz"))]
        examples = files.load(paths, tokens_around(family)[0], model.vocabulary, model.context)
        if len(examples) < FEWEST:
            advice = "" if texts else "; they stay there: give the same command more --minutes"
            where = ", ".join(map(str, texts or [out / EXAMPLES]))
            raise ValueError(f"at least {FEWEST} texts are needed, {len(examples)} are in {where}{advice}")
        numbers = np.arange(len(examples))
        held = numbers[::HELD_OUT][: HELD_OUT_MOST[kind]]
        taught = examples.select(np.setdiff1d(numbers, held))
        draft_ids = torch.from_numpy(taught.most_frequent(min(VOCABULARY, model.vocabulary), model.vocabulary))
        draft_ids = (begun["draft_ids"] if begun else draft_ids).to(device)
        torch.manual_seed(seed)
        draft: Draft
        draft = (
            Eagle3(model, draft_ids, inner=inner) if method == "eagle3" else DraftModel(model, draft_ids, width, layers)
        )
        low, size = precision(device), batch_tokens or BATCH_TOKENS[kind]
        tell(
            f"{len(taught):,} texts to learn from, with {taught.answer_tokens:,} tokens of answers, and {len(held)} to "
            f"measure with; {sum(p.numel() for p in draft.parameters()):,} weights, on {device}"
        )
        measured_with = HeldOut(
            model, [read(model, batch, draft.taps, low) for batch in examples.select(held).in_order(size)], draft_ids
        )
        readings = (read(model, batch, draft.taps, low) for batch in taught.shuffled(size, random.Random(seed)))
        best = best_overlap(out)

        def report(progress: Progress) -> None:
            nonlocal best
            agreement, overlap = (" ".join(f"{x:.3f}" for x in each) for each in (progress.agreement, progress.overlap))
            tell(
                f"{(time.monotonic() - began) / 60:6.1f} min  {progress.tokens:,} tokens learned from  "
                f"same favourite {agreement}  overlap {overlap}"
            )
            with (out / CURVE).open("a", encoding="utf-8") as curve:
                curve.write(json.dumps(rounded(asdict(progress))) + "\n")
            if sum(progress.overlap) > best:
                best = sum(progress.overlap)
                export(draft, family, out, target, progress)

        remaining = began + 60.0 * minutes - time.monotonic()
        progress = fit(draft, readings, measured_with, remaining, checkpoint, report, stop)
    tell(f"written: {out}; use it with --target {target} --draft {out}")
    return asdict(progress)


def load_target(target: str, device: str) -> zoo.Family:
    """A target without drafters, in 16 bits where they are multiplied fast."""
    folder = hub.find(target)
    with zoo.rename_in_errors({folder: target}):
        model = published.load_model(folder, precision(device), device)
        if not isinstance(model, Transformer):
            raise ValueError("drafters are trained for models of our own decoder; transformers runs this one")
        with naming(folder):
            tokenizer, end_tokens = published.read_tokenizer(folder), published.end_tokens(folder)
            template = chat.read(folder)
        published.cut_vocabulary(model, published.shared_vocabulary(model, tokenizer))
    family = zoo.Family(target, model, tokenizer, {})
    family.prefix, family.end_tokens, family.chat = published.prefix(tokenizer), end_tokens, template
    return family


@contextmanager
def until(deadline: float, outer: Stop | None = None) -> Iterator[Stop]:
    """Whether the time is over, or somebody has ended this process: what was learned is then written first."""
    ended = threading.Event()
    outermost = outer is None and threading.current_thread() is threading.main_thread()
    before = {}
    if outermost:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, lambda *_: ended.set())
    try:
        yield lambda: ended.is_set() or time.monotonic() >= deadline or (outer is not None and outer())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_prompts(path: Path) -> list[str]:
    """One a line. ValueError for a file of anything else."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} is larger than {LARGEST:,} bytes; give fewer prompts")
        prompts = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no text that can be read: one prompt a line, in UTF-8") from error
    if not prompts:
        raise ValueError(f"{path} holds no prompt; write one a line")
    return prompts


def write(writer: Writer, folder: Path, stop: Stop, tell: Tell) -> None:
    """Files of texts, until `stop()`. What was written is kept."""
    shard, texts, tokens = list[Text](), 0, 0

    def keep() -> None:
        files.save(shard, folder / f"{len(list(folder.glob('*.npz'))):04d}.npz")
        shard.clear()

    tell(f"writing examples, {writer.rows:,} at once")
    for written in writer.texts(stop):
        shard += written
        texts, tokens = texts + len(written), tokens + sum(len(text.tokens) - text.start for text in written)
        tell(f"examples: {texts:,} written, with {tokens:,} tokens of answers")
        if sum(len(text.tokens) - text.start for text in shard) >= SHARD:
            keep()
    if shard:
        keep()


def best_overlap(out: Path) -> float:
    """Of what lies exported in that folder; -1 for nothing."""
    if not (out / FILE).is_file() or not (out / CONFIG).is_file():
        return -1.0
    return float(sum(json.loads((out / CONFIG).read_text(encoding="utf-8"))["trained"]["overlap"]))


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(figures), parse_float=lambda text: round(float(text), 4))


def export(draft: Draft, family: zoo.Family, out: Path, target: str, progress: Progress) -> None:
    """Write the weights in 8 bits and config.json, as `families/published.py` reads them, each whole or not at all."""
    config = draft.config(family.target.vocabulary, family.target.context)
    config["trained"] = {"target": target, **rounded(asdict(progress))}
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in draft.weights().items()}
    contents = {
        FILE: serialised(pack_rows(weights), {"format": "pt", "packed": ROWS}),
        CONFIG: f"{json.dumps(config, indent=2)}\n".encode(),
    }
    for name, content in contents.items():
        new = out / f".{name}"
        new.write_bytes(content)
        new.replace(out / name)
