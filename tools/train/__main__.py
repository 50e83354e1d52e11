"""`python -m tools.train all --corpus DIR --out DIR`: train the embedded family.

The corpus: the plain text files of `--corpus`, the code of Python's standard library, and generated facts. This package
trains the tokenizer, the target, Medusa heads, the block drafter and the MTP layer. The code of `specdec train` trains
`draft_model` and `eagle3`, on the corpus and on texts that the target wrote.
"""

import hashlib
import itertools
import json
import platform
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from torch import nn, Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec.drafters.eagle3 import default_taps
from specdec.families.zoo import resolve_device
from specdec.figures import machine
from specdec.models.packed import FILE, pack_rows, ROWS
from specdec.training import examples
from specdec.training.examples import Example
from specdec.training.loop import fit, TrainingProgress
from specdec.training.loss import precision
from specdec.training.train import load_target, train
from specdec.training.writing import Writer

from ..options import option, run
from . import block, corpus, data, medusa, mtp, target
from .heads import head_config, Loss

SHARD = "8MB"  # the target's weights are split into files of at most this size
# Shares of `--minutes`.
SHARES = {
    "stem": 0.2, "target": 0.4, "draft_model": 0.12, "eagle3": 0.1, "medusa": 0.04, "block": 0.08, "mtp": 0.06,
}  # fmt: skip
CORPUS_TEXTS = 2_000  # windows per domain of the corpus, for training drafters
TARGET_TEXTS = 6_000  # texts in which the target continues the beginning of a document


@dataclass(frozen=True)
class Options:
    """Train the embedded family on plain text files. A second start skips finished stages, and continues others."""

    stage: str = option(
        "all", "tokenizer, target, texts, draft_model, eagle3, medusa, block, mtp, or all", positional=True
    )
    corpus: Path = option(None, "a folder of .txt files: the stories")  # required, because None is no `Path`
    out: Path = option(None, "the family's folder")
    minutes: float = option(120.0, "training time of all stages together")
    batch_tokens: int = option(8192, "tokens of a training step")
    length: int = option(256, "tokens of a training sequence")
    seed: int = option(0, "seed of every random choice")
    device: str = option("auto", "auto: an NVIDIA GPU if there is one", choices=("auto", "cpu", "cuda"))


class Build:
    """Holds the output folder and the data that several stages share."""

    def __init__(self, options: Options) -> None:
        self.options, self.out = options, options.out
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "checkpoints").mkdir(exist_ok=True)

    @cached_property
    def texts(self) -> dict[str, corpus.Split]:
        return corpus.load(self.options.corpus, self.options.seed)

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        return PreTrainedTokenizerFast.from_pretrained(self.out / "tokenizer")

    @cached_property
    def streams(self) -> dict[str, np.ndarray]:
        """Encode the training texts as one stream of ids for each domain."""
        return {name: data.encode(self.tokenizer, split.train) for name, split in self.texts.items()}

    @cached_property
    def teacher(self) -> LlamaForCausalLM:
        """Load the frozen target."""
        dtype = precision(self.options.device)
        model = LlamaForCausalLM.from_pretrained(self.out / "target", dtype=dtype, attn_implementation="eager")
        return model.to(self.options.device).eval().requires_grad_(False)

    def seconds(self, stage: str) -> float:
        return 60.0 * self.options.minutes * SHARES[stage]

    def fit(
        self, stage: str, model: nn.Module, loss: Callable[[Tensor], Tensor], mixture: dict[str, float]
    ) -> TrainingProgress:
        """Train one stage. AdamW trains vectors and all `nn.Embedding`s; Muon trains the other matrices."""
        options, rng = self.options, random.Random(self.options.seed)
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        matrices = [p for p in model.parameters() if p.dim() == 2 and id(p) not in embeddings]
        rows = max(1, options.batch_tokens // options.length)
        streams = self.streams if set(mixture) <= set(self.streams) else self.streams | {"own": self.target_texts()}
        batches = data.batches(streams, mixture, rows, options.length + 1, rng, options.device)
        fixed = next(data.batches(streams, mixture, rows, options.length + 1, random.Random(-1), options.device))[0]

        @torch.no_grad()
        def measure(progress: TrainingProgress) -> None:
            print(f"{stage}: {progress.tokens:,} tokens, {progress.seconds:.0f} s, loss {float(loss(fixed)):.3f}")

        checkpoint = self.out / "checkpoints" / f"{stage}.pt"
        return fit(model, matrices, loss, batches, self.seconds(stage), checkpoint, measure)

    def target_texts(self) -> np.ndarray:
        """Return the texts that the target wrote, as one stream of ids."""
        return examples.load([self.out / "texts" / "own.npz"], [0], len(self.tokenizer), 2**20).tokens

    def record(self, stage: str, **facts: Any) -> None:
        """Write the facts about a finished stage to provenance.json."""
        path = self.out / "provenance.json"
        stages = json.loads(path.read_text()) if path.exists() else {}
        stages[stage] = {
            **facts,
            "seed": self.options.seed,
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "machine": machine.describe(),
        }
        path.write_text(json.dumps(stages, indent=1, ensure_ascii=False) + "\n")

    def train_head(self, stage: str, model: nn.Module, loss: Loss, config: dict[str, Any]) -> None:
        """Train a head, and store it with its matrices in 8 bits."""
        progress = self.fit(stage, model.to(self.options.device), loss, data.DRAFT_MIXTURE)
        folder = self.out / stage
        folder.mkdir(exist_ok=True)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
        save_file(pack_rows(weights), folder / FILE, {"packed": ROWS})
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        self.record(stage, **training_facts(progress, model), mixture=data.DRAFT_MIXTURE)


def training_facts(progress: TrainingProgress, model: nn.Module) -> dict[str, Any]:
    minutes, parameters = round(progress.seconds / 60, 1), sum(p.numel() for p in model.parameters())
    return {"parameters": parameters, "tokens_seen": progress.tokens, "minutes": minutes}


def train_tokenizer(build: Build) -> None:
    data.train_tokenizer(build.texts, build.out / "tokenizer")
    build.record(
        "tokenizer",
        vocabulary=len(build.tokenizer),
        documents={name: {"train": len(s.train), "held_out": len(s.held_out)} for name, s in build.texts.items()},
        code=f"the standard library of Python {platform.python_version()}",
        stories_sha256={
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for path in sorted(build.options.corpus.glob("*.txt"))
        },
    )


def train_target(build: Build) -> None:
    """Train the stem, a model of half the depth. Then insert the other layers, and train the target."""
    stem = target.build(target.STEM, build.options.seed).to(build.options.device)
    stem_progress = build.fit("stem", stem, target.TargetLoss(stem), data.MIXTURE)
    model = target.deepened(stem)
    progress = build.fit("target", model, target.TargetLoss(model), data.MIXTURE)
    model.config.exit_layers = target.exit_layers(model)
    model.bfloat16().save_pretrained(build.out / "target", max_shard_size=SHARD)
    quality = {name: data.bits_per_byte(model, build.tokenizer, split.held_out) for name, split in build.texts.items()}
    build.record(
        "target", **training_facts(progress, model), shape=target.SHAPE, exit_layers=model.config.exit_layers,
        stem_tokens=stem_progress.tokens, bits_per_byte_held_out=quality,
    )  # fmt: skip


def write_texts(build: Build) -> None:
    """Write the texts for training drafters: windows of the corpus, and the target's continuations of documents."""
    folder, rng, length = build.out / "texts", random.Random(build.options.seed), build.options.length
    folder.mkdir(exist_ok=True)
    for name, stream in build.streams.items():
        windows = [Example(data.window(stream, length, rng).tolist(), 0) for _ in range(CORPUS_TEXTS)]
        examples.save(windows, folder / f"{name}.npz")
    documents = [text for split in build.texts.values() for text in split.train]
    beginnings = [rng.choice(documents)[: rng.randint(20, 160)] for _ in range(TARGET_TEXTS)]
    written = list[Example]()
    writer = Writer(load_target(str(build.out), build.options.device), beginnings)
    for text in itertools.islice(writer.texts(lambda drawn: False), TARGET_TEXTS):
        written.append(text)
        if len(written) % 100 == 0:
            print(f"texts: {len(written):,} of {TARGET_TEXTS:,}")
    examples.save(written, folder / "own.npz")
    build.record("texts", own=len(written), corpus=CORPUS_TEXTS * len(build.streams))


def train_draft(build: Build, method: str) -> None:
    paths = sorted((build.out / "texts").glob("*.npz"))
    figures = train(
        str(build.out), build.out / method, build.seconds(method) / 60, method, device=build.options.device, texts=paths
    )  # fmt: skip
    build.record(method, tokens_seen=figures["tokens"], minutes=round(figures["seconds"] / 60, 1), **figures)


def train_medusa(build: Build) -> None:
    heads = medusa.build(build.teacher.lm_head.weight).to(build.options.device)
    config = {"medusa_num_heads": medusa.HEADS, "medusa_num_layers": medusa.LAYERS, "base_model_name_or_path": "target"}
    build.train_head("medusa", heads, medusa.MedusaLoss(build.teacher, heads), config)


def train_block(build: Build) -> None:
    taps = default_taps(build.teacher.config.num_hidden_layers)
    config = block.block_config(build.teacher, taps)
    torch.manual_seed(build.options.seed)
    drafter = block.Block(config, build.teacher, len(taps)).to(build.options.device)
    build.train_head("block", drafter, block.BlockLoss(build.teacher, drafter, config, taps), config.to_dict())


def train_mtp(build: Build) -> None:
    config = head_config(build.teacher, 1)
    torch.manual_seed(build.options.seed)
    layer = mtp.MTP(config).to(build.options.device)
    build.train_head("mtp", layer, mtp.MTPLoss(build.teacher, layer, config), config.to_dict() | {"norm_output": False})


STAGES: dict[str, Callable[[Build], None]] = {
    "tokenizer": train_tokenizer,
    "target": train_target,
    "texts": write_texts,
    "draft_model": lambda build: train_draft(build, "draft_model"),
    "eagle3": lambda build: train_draft(build, "eagle3"),
    "medusa": train_medusa,
    "block": train_block,
    "mtp": train_mtp,
}


def run_stages(options: Options) -> int:
    """Run one stage, or all; skip those that provenance.json records. Raises ValueError for an unknown stage."""
    if options.stage not in (*STAGES, "all"):
        raise ValueError(f"there is no stage {options.stage!r}; choose from {', '.join((*STAGES, 'all'))}")
    build = Build(replace(options, device=resolve_device(options.device)))
    path = build.out / "provenance.json"
    for name in STAGES if options.stage == "all" else (options.stage,):
        if not path.exists() or name not in json.loads(path.read_text()):
            STAGES[name](build)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run(run_stages, Options, arguments, "tools.train")


if __name__ == "__main__":
    raise SystemExit(main())
