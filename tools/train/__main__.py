"""`python -m tools.train all --corpus DIR --out DIR`: the embedded family from plain text files.

Stages: tokenizer, target (early_exit is another name of it: its loss trains the exits), draft, its controls
draft:scratch, draft:story and draft:large, medusa, eagle3, block, mtp, tuned (the target trained further on edits, and
a draft distilled anew from it), report. A stage whose checkpoint exists continues where it stopped. `pack`, which is no
part of `all`, makes the finished family's files small; no stage can go on from those.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import save_torch_state_dict
from torch import nn, Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec.families.zoo import resolved
from specdec.figures import machine

from ..options import run
from . import block, corpus, data, draft, eagle3, lessons, loop, medusa, mtp, pack, report, target
from .options import Options

SHARD = "8MB"


class Workshop:
    """The folder being filled, and the things that several stages need, made when first asked for."""

    def __init__(self, options: Options) -> None:
        self.options, self.out = options, options.out
        self.out.mkdir(parents=True, exist_ok=True)

    @cached_property
    def texts(self) -> dict[str, corpus.Split]:
        return corpus.load(self.options.corpus, self.options.seed)

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        folder = self.out / "tokenizer"
        if not (folder / "tokenizer.json").exists():
            data.train_tokenizer(self.texts, folder)
        return PreTrainedTokenizerFast.from_pretrained(folder)

    @cached_property
    def streams(self) -> data.TokenStreams:
        return data.TokenStreams(self.texts, self.tokenizer, self.options.seed)

    @cached_property
    def edits(self) -> data.TokenStreams:
        """The same streams, and edits of their texts, which only a tuned target learns."""
        streams = data.TokenStreams(self.texts, self.tokenizer, self.options.seed)
        streams.add("edits", corpus.rewriting(self.texts, self.options.seed), whole=True)
        return streams.mixed(data.EDITING)

    @cached_property
    def teacher(self) -> LlamaForCausalLM:
        """The target, frozen."""
        return self.saved("target").eval().requires_grad_(False)

    def saved(self, name: str) -> LlamaForCausalLM:
        """A model that an earlier stage left. Eager attention, so that a teacher compiles with its students."""
        return LlamaForCausalLM.from_pretrained(
            self.out / name, dtype=torch.bfloat16, attn_implementation="eager"
        ).to(self.options.device)  # fmt: skip

    @property
    def few_rows(self) -> int:
        """At once, for small models' losses: on a CPU the distributions then stay in its cache, and cost a third
        less.
        """
        return 2 if self.options.device == "cpu" else 16

    def lessons_on_edits(self, teacher: LlamaForCausalLM) -> lessons.Lessons:
        """As many edits as there is code in the general lessons, and what this teacher writes when it is given some."""
        options, share = self.options, data.MIXTURE["code"]
        tokens = {"edits": int(share * options.lesson_tokens), "own": int(share * options.own_tokens)}
        return lessons.prepare(
            self.out / "checkpoints" / "tuned_lessons", teacher, lambda: self.edits.only("edits"), tokens, (),
            options.seed, self.lesson_length,
        )  # fmt: skip

    @property
    def lessons(self) -> lessons.Lessons:
        """The target's states on texts, also on those that it wrote; computed at first use."""
        options = self.options
        tokens = {name: int(share * options.lesson_tokens) for name, share in data.MIXTURE.items()}
        return lessons.prepare(
            self.out / "checkpoints" / "lessons", self.teacher, lambda: self.streams,
            tokens | {"own": options.own_tokens}, target.feature_layers(self.teacher), options.seed, self.lesson_length,
        )  # fmt: skip

    @property
    def lesson_length(self) -> int:
        return min(lessons.LENGTH, self.options.length)

    def fit(
        self, model: nn.Module, loss: Callable[..., Tensor], source: loop.Source, tokens: int, share: float, name: str,
        **settings: Any,
    ) -> loop.Result:  # fmt: skip
        """One stage's training, resumed where its checkpoint stands; `share` is its part of --minutes."""
        options = self.options
        budget = loop.Budget(tokens, options.minutes * share if options.minutes else None)
        settings = {"length": options.length, "long_length": 2 * options.length} | settings
        return loop.fit(
            model, loss, source, budget, self.out / "checkpoints" / f"{name}.pt", device=options.device, label=name,
            batch_tokens=options.batch_tokens, **settings,
        )  # fmt: skip

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

    def trained(self, stage: str, result: loop.Result, model: nn.Module, **facts: Any) -> None:
        if isinstance(model, LlamaForCausalLM):
            streams = self.edits if "tuned_from" in facts else self.streams
            facts = {"bits_per_byte_held_out": data.bits_per_byte(model, streams), **facts}
        self.note(
            stage,
            {
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "tokens_seen": result.tokens,
                "minutes": round(result.seconds / 60, 1),
                "seed": self.options.seed,
                "losses": thinned(result.losses),
                **facts,
            },
        )

    def keep(self, name: str, model: LlamaForCausalLM, result: loop.Result, **facts: Any) -> None:
        """A model in the Hub's layout, and its provenance under the folder's name."""
        model.save_pretrained(self.out / name, max_shard_size=SHARD)
        self.trained(name, result, model, **facts)

    def publish(self, name: str, model: nn.Module, config: dict[str, Any]) -> None:
        """A head under the tensor names of its authors, with a config.json."""
        (self.out / name).mkdir(exist_ok=True)
        save_torch_state_dict(model.state_dict(), self.out / name, max_shard_size=SHARD)
        (self.out / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")


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
    """A stem of half the depth first, then the whole: the second half of the tokens sees all layers."""
    options = shop.options
    stem = target.build(target.STEM, options.seed).to(options.device)
    early = shop.fit(stem, target.TargetLoss(stem, options.compile), shop.streams, options.tokens // 2, 0.2, "stem")
    model = target.deepened(stem)
    loss = target.TargetLoss(model, options.compile)
    result = shop.fit(model, loss, shop.streams, options.tokens // 2, 0.35, "target", rate=target.DEEP_RATE)
    model.config.exit_layers = target.exit_layers(model)
    shop.keep(
        "target", model, result, shape=target.SHAPE, exit_layers=target.exit_layers(model),
        tokens_seen=early.tokens + result.tokens, stem_tokens=early.tokens, stem_losses=thinned(early.losses),
    )  # fmt: skip


def train_draft(shop: Workshop) -> None:
    """One width makes `draft_model`; several make a folder each, to choose from by measured speed-up."""
    widths = shop.options.widths
    names = ["draft_model"] if len(widths) == 1 else [f"draft_model_{width}" for width in widths]
    distil(shop, "draft", {name: beginner(shop, width) for name, width in zip(names, widths, strict=True)})


def train_scratch(shop: Workshop) -> None:
    """The control for distillation: the draft's shape and as many tokens, but the corpus' and no teacher's."""
    options, width = shop.options, shop.options.widths[0]
    student = target.build(draft.shape(width), options.seed + width).to(options.device)
    loss = draft.NextTokenLoss(student, options.compile)
    result = shop.fit(
        student, loss, shop.streams, options.draft_tokens, 0.08, "draft_scratch", micro_rows=shop.few_rows
    )  # fmt: skip
    shop.keep("draft_model_scratch", student, result, shape=draft.shape(width), mixture=data.MIXTURE)


def train_story(shop: Workshop) -> None:
    """The control for the domain: the same draft, taught on stories alone."""
    student = beginner(shop, shop.options.widths[0])
    distil(shop, "draft_story", {"draft_model_story": student}, {"story": 1.0})


def train_large(shop: Workshop) -> None:
    """The control for the size: a draft must balance its time against its acceptance."""
    student = beginner(shop, draft.LARGER * shop.options.widths[0])
    distil(shop, "draft_large", {"draft_model_large": student})


def beginner(shop: Workshop, width: int) -> LlamaForCausalLM:
    student = target.build(draft.shape(width), shop.options.seed + width).to(shop.options.device)
    draft.inherit(student, shop.teacher)
    return student


def distil(
    shop: Workshop, stage: str, students: dict[str, LlamaForCausalLM], mixture: dict[str, float] = draft.MIXTURE
) -> None:
    """The target teaches students, named by their folders, all at once."""
    lessons = shop.lessons
    lessons.mixture = mixture
    teach(shop, stage, students, shop.teacher, lessons, shop.options.draft_tokens, 0.08, distilled_from="target")


def teach(
    shop: Workshop, stage: str, students: dict[str, LlamaForCausalLM], teacher: LlamaForCausalLM,
    lessons: lessons.Lessons, tokens: int, share: float, **facts: Any,
) -> None:  # fmt: skip
    models = nn.ModuleList(students.values())
    loss = draft.DistillationLoss(teacher, models, shop.options.compile)
    result = shop.fit(models, loss, lessons, tokens, share, stage, micro_rows=shop.few_rows)
    for name, student in students.items():
        shape = draft.shape(student.config.hidden_size)
        shop.keep(name, student, result, shape=shape, mixture=lessons.mixture, **facts)


def train_medusa(shop: Workshop) -> None:
    options, teacher, lessons = shop.options, shop.teacher, shop.lessons
    heads = medusa.build(teacher.lm_head.weight).to(options.device)
    lessons.mixture = draft.MIXTURE
    loss = medusa.MedusaLoss(teacher, heads, options.compile)
    result = shop.fit(heads, loss, lessons, options.medusa_tokens, 0.03, "medusa", micro_rows=shop.few_rows)
    lessons.mixture = {"own": 1.0}  # drafts are for the target's own writing
    accuracy = loss.accuracy(lessons.batch(32, options.length)[1].to(options.device))
    config = {"medusa_num_heads": medusa.HEADS, "medusa_num_layers": medusa.LAYERS, "base_model_name_or_path": "target"}
    shop.publish("medusa", heads, config)
    accuracy = [[round(share, 4) for share in head] for head in accuracy]
    shop.trained("medusa", result, heads, accuracy_by_head_and_rank=accuracy, mixture=draft.MIXTURE)


def train_eagle3(shop: Workshop) -> None:
    options, teacher, lessons = shop.options, shop.teacher, shop.lessons
    taps = target.feature_layers(teacher)
    ids = eagle3.frequent([part.ids for part in lessons.parts.values()], teacher.config.vocab_size)
    config, head = eagle3.build(teacher, taps, ids, options.seed)
    head.to(options.device)
    lessons.mixture, lessons.wanted = draft.MIXTURE, ("last", *taps)
    loss = eagle3.Eagle3Loss(teacher, head, config, options.compile)
    result = shop.fit(head, loss, lessons, options.eagle3_tokens, 0.06, "eagle3", micro_rows=shop.few_rows)
    shop.publish("eagle3", head, config.to_dict())
    shop.trained("eagle3", result, head, taps=taps, draft_vocabulary=len(ids), mixture=draft.MIXTURE)


def train_block(shop: Workshop) -> None:
    options, teacher, lessons = shop.options, shop.teacher, shop.lessons
    taps = target.feature_layers(teacher)
    config, drafter = block.build(teacher, taps, options.seed)
    drafter.to(options.device)
    lessons.mixture, lessons.wanted = draft.MIXTURE, ("last", *taps)
    loss = block.BlockLoss(teacher, drafter, config, options.compile)
    result = shop.fit(drafter, loss, lessons, options.block_tokens, 0.06, "block", micro_rows=shop.few_rows)
    shop.publish("block", drafter, config.to_dict())
    shop.trained("block", result, drafter, taps=taps, slots=block.SLOTS, rank=block.RANK, mixture=draft.MIXTURE)


def train_mtp(shop: Workshop) -> None:
    options, teacher, lessons = shop.options, shop.teacher, shop.lessons
    config, layer = mtp.build(teacher, options.seed)
    layer.to(options.device)
    lessons.mixture = draft.MIXTURE
    loss = mtp.MTPLoss(teacher, layer, config, options.compile)
    result = shop.fit(layer, loss, lessons, options.mtp_tokens, 0.04, "mtp", micro_rows=shop.few_rows)
    shop.publish("mtp", layer, config.to_dict())
    shop.trained("mtp", result, layer, mixture=draft.MIXTURE)


def train_tuned(shop: Workshop) -> None:
    """Train the target further, mostly on edits; then distil its draft again from the result."""
    options, model = shop.options, shop.saved("target")
    loss = target.TargetLoss(model, options.compile)
    result = shop.fit(
        model, loss, shop.edits, options.tuned_tokens, 0.02, "tuned_target", rate=target.TUNING_RATE,
        length=options.length * 3 // 2,
    )  # fmt: skip
    shape = {name: getattr(model.config, name) for name in target.SHAPE}
    shop.keep("tuned/target", model, result, shape=shape, tuned_from="target", mixture=data.EDITING)
    teacher = model.eval().requires_grad_(False)
    lessons = shop.lessons_on_edits(teacher)
    lessons.mixture = draft.TUNED_MIXTURE
    teach(
        shop, "tuned_draft", {"tuned/draft_model": shop.saved("draft_model")}, teacher, lessons,
        options.tuned_draft_tokens, 0.02, tuned_from="draft_model", distilled_from="tuned/target",
    )  # fmt: skip


def write_report(shop: Workshop) -> None:
    """Samples of what the target writes, and a search for words that it must not say."""
    model = LlamaForCausalLM.from_pretrained(
        shop.out / "target", dtype=torch.float32, attn_implementation="eager"
    ).to(shop.options.device)  # fmt: skip
    shop.note("samples", report.examine(model, shop.tokenizer, shop.options.stories, shop.options.seed))


def thinned(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return losses[:: max(1, len(losses) // 40)]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


STAGES: dict[str, Callable[[Workshop], None]] = {
    "tokenizer": train_tokenizer,
    "target": train_target,
    "draft": train_draft,
    "draft:scratch": train_scratch,
    "draft:story": train_story,
    "draft:large": train_large,
    "medusa": train_medusa,
    "eagle3": train_eagle3,
    "block": train_block,
    "mtp": train_mtp,
    "tuned": train_tuned,
    "report": write_report,
}
AFTERWARDS: dict[str, Callable[[Workshop], None]] = {"pack": lambda shop: print(*pack.pack(shop.out), sep="\n")}
ALIASES = {"early_exit": "target"}


def build(options: Options) -> int:
    """One stage, or all; ValueError for a stage that there is not."""
    stages, stage = STAGES | AFTERWARDS, ALIASES.get(options.stage, options.stage)
    if stage not in (*stages, "all"):
        raise ValueError(f"there is no stage {stage!r}; choose from {', '.join((*stages, *ALIASES, 'all'))}")
    shop = Workshop(replace(options, device=resolved(options.device)))
    for name in STAGES if stage == "all" else (stage,):
        stages[name](shop)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run(build, Options, arguments, "tools.train")


if __name__ == "__main__":
    raise SystemExit(main())
