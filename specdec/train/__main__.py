"""`python -m specdec.train all --corpus DIR --out DIR`: the embedded family from plain text files.

Stages: tokenizer, target, draft, report. A stage whose checkpoint exists goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from .. import machine
from . import corpus, data, draft, loop, report, target

STAGES = ("tokenizer", "target", "draft", "report")
SHARD = "8MB"


class Workshop:
    """The folder being filled, and the things that several stages need, made when first asked for."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out = options, options.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.texts = corpus.load(options.corpus, options.seed)
        self._streams: data.TokenStreams | None = None

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        folder = self.out / "tokenizer"
        if not (folder / "tokenizer.json").exists():
            data.train_tokenizer(self.texts, folder)
        return PreTrainedTokenizerFast.from_pretrained(folder)

    @property
    def streams(self) -> data.TokenStreams:
        if self._streams is None:
            self._streams = data.TokenStreams(self.texts, self.tokenizer, self.options.seed)
        return self._streams

    def checkpoint(self, name: str) -> Path:
        return self.out / "checkpoints" / f"{name}.pt"

    def budget(self, tokens: int, share: float) -> loop.Budget:
        minutes = self.options.minutes
        return loop.Budget(tokens, minutes * share if minutes else None)

    def note(self, stage: str, facts: dict[str, Any]) -> None:
        """Add a stage to provenance.json."""
        path = self.out / "provenance.json"
        record = json.loads(path.read_text()) if path.exists() else {}
        record[stage] = {
            **facts,
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
            "machine": machine.describe(),
        }
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")

    def trained(self, stage: str, result: loop.Result, model: LlamaForCausalLM, **facts: Any) -> None:
        self.note(
            stage,
            {
                "parameters": model.num_parameters(),
                "tokens_seen": result.tokens,
                "minutes": round(result.seconds / 60, 1),
                "seed": self.options.seed,
                "losses": result.losses[:: max(1, len(result.losses) // 40)],
                "bits_per_byte_held_out": data.bits_per_byte(model, self.streams),
                **facts,
            },
        )


def train_tokenizer(shop: Workshop) -> None:
    tokenizer, options = shop.tokenizer, shop.options
    sources = {path.name: digest(path) for path in sorted(options.corpus.glob("*.txt"))}
    facts = {
        "vocabulary": len(tokenizer),
        "documents": {name: {"train": len(s.train), "held_out": len(s.held_out)} for name, s in shop.texts.items()},
        "characters": {name: sum(map(len, s.train)) for name, s in shop.texts.items()},
        "code": f"the standard library of Python {platform.python_version()}",
        "stories_sha256": sources,
    }
    shop.note("tokenizer", facts)


def train_target(shop: Workshop) -> None:
    options = shop.options
    model = target.build(target.SHAPE, options.seed).to(options.device)
    loss = target.TargetLoss(model, not options.no_compile)
    result = loop.fit(
        model, loss, shop.streams, shop.budget(options.tokens, 0.75), shop.checkpoint("target"),
        device=options.device, label="target", **sizes(options),
    )  # fmt: skip
    model.save_pretrained(shop.out / "target", max_shard_size=SHARD)
    shop.trained("target", result, model, shape=target.SHAPE, exit_layers=target.exit_layers(model))


def train_draft(shop: Workshop) -> None:
    """One width makes `draft_model`; several make a folder each, to choose from by measured speed-up."""
    options = shop.options
    teacher = LlamaForCausalLM.from_pretrained(shop.out / "target", dtype=torch.bfloat16).to(options.device)
    models = [target.build(draft.shape(width), options.seed + width).to(options.device) for width in options.widths]
    students = nn.ModuleList(models)
    streams, own = shop.streams, shop.checkpoint("own").with_suffix(".npy")
    streams.train["own"] = data.cached(
        own, lambda: draft.own_writing(teacher, streams, options.own_tokens, options.seed)
    )
    teacher.set_attn_implementation("eager")
    result = loop.fit(
        students, draft.DistillationLoss(teacher, students, not options.no_compile), streams,
        shop.budget(options.draft_tokens, 0.25), shop.checkpoint("draft"),
        mixture=draft.MIXTURE, device=options.device, label="draft", **sizes(options),
    )  # fmt: skip
    del streams.train["own"]
    for width, student in zip(options.widths, models, strict=True):
        name = "draft_model" if len(models) == 1 else f"draft_model_{width}"
        student.save_pretrained(shop.out / name, max_shard_size=SHARD)
        shop.trained(name, result, student, shape=draft.shape(width), distilled_from="target", mixture=draft.MIXTURE)


def write_report(shop: Workshop) -> None:
    """Samples of what the target says, and a search for words that it must not say."""
    model = LlamaForCausalLM.from_pretrained(shop.out / "target", dtype=torch.float32).to(shop.options.device)
    shop.note("samples", report.examine(model, shop.tokenizer, shop.texts, shop.options.stories, shop.options.seed))


def sizes(options: argparse.Namespace) -> dict[str, Any]:
    return {"batch_tokens": options.batch_tokens, "length": options.length, "long_length": 2 * options.length}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m specdec.train", description=__doc__)
    parser.add_argument("stage", choices=(*STAGES, "all"))
    parser.add_argument("--corpus", type=Path, required=True, help="a folder of .txt files: the stories")
    parser.add_argument("--out", type=Path, required=True, help="the family's folder")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes (three quarters for the target)")
    parser.add_argument("--tokens", type=int, default=40_000_000, help="tokens the target sees (default 40 million)")
    parser.add_argument(
        "--draft-tokens", type=int, default=12_000_000, help="tokens the draft sees (default 12 million)"
    )
    parser.add_argument("--own-tokens", type=int, default=600_000, help="tokens the target writes for the draft")
    parser.add_argument("--widths", type=int, nargs="+", default=[128], help="widths of the draft (default 128)")
    parser.add_argument("--stories", type=int, default=1000, help="sampled stories to search for blocked words")
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--length", type=int, default=256, help="window; the last part of a run sees twice as much")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true", help="do without torch.compile (it needs a C++ compiler)")
    options = parser.parse_args(arguments)
    shop = Workshop(options)
    work = {"tokenizer": train_tokenizer, "target": train_target, "draft": train_draft, "report": write_report}
    for stage in STAGES if options.stage == "all" else (options.stage,):
        work[stage](shop)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
