"""Train a drafter for any target of our own decoder (`specdec train`). The target can write the examples."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..families import hub, zoo
from ..families.export import write as write_folder
from ..figures.machine import give_memory_back
from ..messages import Refused
from ..models.device import torch_threads
from ..models.files import read_json, SINGLE
from ..models.packed import FILE, pack_rows, ROWS
from ..models.transformer import Transformer
from ..paths import read_prompts, write_whole
from . import examples as example_files
from .draft_model import DraftModel, HEAD_DIM, LAYERS, WIDTH
from .eagle3 import Eagle3
from .examples import Batch, Example, Examples
from .loop import fit, TrainingProgress
from .loss import HeldOut, LOSS_TEMPERATURE, precision, read_batch, Reading, TrainableDraft
from .target_pass import choose_threads
from .writing import tokens_around, Writer

TRAINABLE = ("draft_model", "eagle3")
VOCABULARY = 8_192  # a drafter can draft at most this many different tokens
WRITING_SHARE = 0.4  # share of the time for writing examples
HELD_OUT_EVERY = 20  # of this many examples, one is held out to measure the draft
MAX_HELD_OUT = {"cpu": 32, "cuda": 512}
BATCH_TOKENS = {"cpu": 4_096, "cuda": 32_768}
MIN_TOKENS = 1_000  # of answers: with fewer, nothing is trained
WANTED_TOKENS = 2_500  # of answers: the time is extended until they are there
LEAST_STEPS = 60  # as above
LEAST_BATCHES = 8  # of an epoch: few examples are learned in small batches
CACHED_BYTES = 2**29  # the target reads examples only once if its states for all of them fit into this memory
HOPELESS = 400  # dropped texts, and twenty times as many as are kept: such a writer is stopped when its time is over
PROGRESS_S = 10.0  # seconds between two lines about the texts, which are then saved
EXAMPLES_FOLDER = "examples"
SETTINGS_FILE = "settings.json"
CHECKPOINT = "checkpoint.pt"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Training:
    """What the parts of one call of `train` share."""

    method: str
    shape: dict[str, int]  # a draft model's width and layers
    out: Path
    family: zoo.Family
    model: Transformer  # the family's target
    texts: Sequence[Path]  # files of examples; if there are any, no others are written
    saved: dict[str, Any] | None  # an earlier call's checkpoint
    best: float  # the overlap of the draft in `out`
    seed: int
    tell: Tell


@torch_threads(0)  # `choose_threads` sets their number
def train(
    target: str,
    out: Path,
    minutes: float,
    method: str = TRAINABLE[0],
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
    continues with the examples and weights there. Raises Refused for wrong arguments, or those of another training.
    """
    if method not in TRAINABLE:
        raise Refused(f"{method!r} is not a method of training; choose from {', '.join(TRAINABLE)}")
    if width % HEAD_DIM:
        raise Refused(f"the width of a draft model must be a multiple of {HEAD_DIM}, not {width}")
    if prompts and texts:
        raise Refused("with --examples no texts are written; leave out --prompts")
    shape = {"width": width, "layers": layers} if method == "draft_model" else {}
    settings: dict[str, Any] = {"target": target, "method": method, **shape}
    saved, best = read_earlier(out, settings)
    lines = read_prompts(prompts) if prompts else []
    device = zoo.resolve_device(device)
    start, writing = time.monotonic(), 0.0 if texts else WRITING_SHARE * minutes
    tell(f"{minutes:g} minutes: {writing:.1f} to load the target and write texts, {minutes - writing:.1f} to learn")
    give_memory_back()  # otherwise fragmentation wastes another half gigabyte each minute
    family = load_target(target, device)
    assert isinstance(family.target, Transformer)
    (out / EXAMPLES_FOLDER).mkdir(parents=True, exist_ok=True)
    write_whole(out / SETTINGS_FILE, json.dumps(settings))
    # The seed counts files and steps of earlier calls, so that their random numbers are not repeated.
    seed = len(list((out / EXAMPLES_FOLDER).iterdir())) + (saved["progress"]["steps"] if saved else 0)
    training = Training(method, shape, out, family, family.target, texts, saved, best, seed, tell)
    late, advice = (0.0, "") if texts else write_examples(training, lines, start + 60.0 * writing)
    most = MAX_HELD_OUT["cpu" if device == "cpu" else "cuda"]
    learned, held_out = read_enough(training, advice).split(HELD_OUT_EVERY, most)
    figures = learn(training, learned, held_out, start + 60.0 * minutes + late)
    tell(f"written: {out}; use it with --target {target} --draft {out}")
    return figures


def read_earlier(out: Path, settings: dict[str, Any]) -> tuple[dict[str, Any] | None, float]:
    """Return an earlier call's checkpoint, if any, and its draft's overlap. Raises Refused for other settings."""
    if out.exists() and not (out.is_dir() and ((out / EXAMPLES_FOLDER).is_dir() or not any(out.iterdir()))):
        raise Refused(f"{out} exists and `specdec train` did not make it; choose another --out")
    checkpoint = out / CHECKPOINT
    with hub.reading(out):
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True) if checkpoint.exists() else None
        first = read_json(out / SETTINGS_FILE) if (out / SETTINGS_FILE).exists() else settings
        has_draft = saved is not None and (out / "config.json").exists()
        best = sum(read_json(out / "config.json")["trained"]["overlap"]) if has_draft else -1.0
    fixed = first if saved else {"target": first["target"]}  # weights need all settings, examples only the target
    if other := [f"--{name} {value}" for name, value in fixed.items() if settings.get(name) != value]:
        raise Refused(f"{out} was begun with {' '.join(other)}; repeat that, or choose another --out")
    return saved, best


def write_examples(training: Training, prompts: Sequence[str], end: float) -> tuple[float, str]:
    """Let the target write until `end`, then up to WANTED_TOKENS. Return the seconds after `end`, and advice."""
    writer = Writer(training.family, prompts, seed=training.seed)
    Writing(training, writer, end, WANTED_TOKENS - read_examples(training).answer_tokens).run()
    advice = f"; dropped: {writer.summary()}; give --prompts, or more --minutes: the texts there stay"
    return max(0.0, time.monotonic() - end), advice


def read_examples(training: Training) -> Examples:
    paths = [*training.texts, *sorted((training.out / EXAMPLES_FOLDER).glob("[!.]*.npz"))]
    before = tokens_around(training.family)[0]
    return example_files.load(paths, before, training.model.vocabulary, training.model.context)


def read_enough(training: Training, advice: str) -> Examples:
    """Read all examples. Raises Refused, with `advice`, if they are too few."""
    examples = read_examples(training)
    if (tokens := examples.answer_tokens) < MIN_TOKENS or len(examples) < 2:
        there = f"{tokens:,} are in {', '.join(map(str, training.texts or [training.out / EXAMPLES_FOLDER]))}"
        raise Refused(f"at least {MIN_TOKENS:,} tokens of answers are needed, but only {there}{advice}")
    return examples


def learn(training: Training, examples: Examples, held_out: Examples, end: float) -> dict[str, Any]:
    """Train the draft until `end`, from the checkpoint on if there is one. Return the last measured figures."""
    model, saved, tell = training.model, training.saved, training.tell
    frequent = torch.from_numpy(examples.most_frequent(min(VOCABULARY, model.vocabulary), model.vocabulary))
    draft_ids = (saved["model"]["draft_ids"] if saved else frequent).to(model.device)
    torch.manual_seed(training.seed)
    draft = Eagle3(model, draft_ids) if training.method == "eagle3" else DraftModel(model, draft_ids, **training.shape)
    tell(
        f"{len(examples):,} texts with {examples.answer_tokens:,} answer tokens to learn from, and {len(held_out)} to "
        f"measure the draft; {sum(p.numel() for p in draft.parameters()):,} weights, on {model.device}"
    )
    most = BATCH_TOKENS["cpu" if model.device == "cpu" else "cuda"]
    size = max(1, min(most, len(examples.tokens) // LEAST_BATCHES))
    run_target = partial(read_batch, model, taps=draft.taps, dtype=draft.dtype)
    numbers = model.width * (1 + len(draft.taps))
    batches = endless_batches(run_target, examples, size, random.Random(training.seed), numbers)
    evaluation = HeldOut(model, map(run_target, held_out.in_order(size)), draft_ids)
    report = Report(training, draft, evaluation, training.best, end)
    seconds, checkpoint = end - time.monotonic(), training.out / CHECKPOINT
    fit(draft, draft.matrices(), draft.loss, batches, seconds, checkpoint, report.measure, LEAST_STEPS)
    before, after = describe_acceptance(report.measured[0]), describe_acceptance(report.measured[-1])
    tell(f"before the first step: {before}; after the last: {after}")
    return report.measured[-1]


def endless_batches(
    run_target: Callable[[Batch], Reading], examples: Examples, size: int, rng: random.Random, width: int
) -> Iterator[tuple[Reading, int]]:
    """Yield batches, as the target reads them, in ever new order. Keep them if their `width` numbers a token fit."""
    cached = list[Reading]()
    while True:
        for reading in map(run_target, examples.shuffled(size, rng)):
            fits = reading.states.dtype.itemsize * width * len(examples.tokens) <= CACHED_BYTES
            cached += [reading] if fits else []
            yield reading, len(reading.places)
        while cached:
            yield from ((reading, len(reading.places)) for reading in rng.sample(cached, len(cached)))


@dataclass
class Report:
    """Measures a draft while it learns, and stores its best state in `out`."""

    training: Training
    draft: TrainableDraft
    evaluation: HeldOut
    best: float  # the overlap of the stored state
    end: float  # of the training, by `time.monotonic`
    measured: list[dict[str, Any]] = field(default_factory=list)

    def measure(self, progress: TrainingProgress) -> None:
        agreement, overlap = self.evaluation.measure(self.draft)
        figures = {**asdict(progress), "agreement": agreement, "overlap": overlap}
        self.measured.append(figures)
        with (self.training.out / "curve.jsonl").open("a", encoding="utf-8") as curve:
            curve.write(json.dumps(figures) + "\n")
        if sum(overlap) > self.best:
            self.best = sum(overlap)
            export_draft(self.draft, self.training.family, self.training.out, figures)
        first = self.measured[0]
        when = f"{progress.tokens:,} tokens learned from" if len(self.measured) > 1 else "before the first step"
        left, steps = max(0.0, self.end - time.monotonic()), progress.steps - first["steps"]
        needed = (LEAST_STEPS - steps) * (progress.seconds - first["seconds"]) / max(1, steps)
        why = f"; the time is extended, as {LEAST_STEPS - steps} steps are missing" if needed > left else ""
        self.training.tell(f"{when}: {describe_acceptance(figures)}{why}; {max(left, needed):.0f} s left")
        choose_threads()


def describe_acceptance(figures: dict[str, Any]) -> str:
    """Return the figures of a draft's tokens on held-out texts, the first token's first."""
    greedy, sampled = (" ".join(f"{share:.3f}" for share in figures[name]) for name in ("agreement", "overlap"))
    return f"accepted when greedy {greedy}, at temperature {LOSS_TEMPERATURE} {sampled}"


def load_target(target: str, device: str) -> zoo.Family:
    """Load a target without drafters, in bfloat16 if that is fast. `target` can also name a family."""
    place = hub.find(target)
    with hub.reading(target):
        family = zoo.load_target(target, place, precision(device), device)
        if not isinstance(family.target, Transformer):
            raise Refused("drafters can be trained only for models of our own decoder; transformers runs this model")
    return family


@dataclass
class Writing:
    """Saves what `writer` writes, in a new file at intervals."""

    training: Training
    writer: Writer
    end: float  # by `time.monotonic`
    least: int  # tokens of answers; the time is extended until they are there, unless hardly any text is kept
    tokens: int = 0  # of answers
    seen: set[tuple[int, ...]] = field(default_factory=set)
    unsaved: list[Example] = field(default_factory=list)
    reported: float = field(default_factory=lambda: time.monotonic())

    def run(self) -> None:
        choose_threads()
        self.training.tell(f"writing texts, {self.writer.rows:,} at once")
        try:
            for text in self.writer.texts(self.is_over):
                if not self.writer.drops("repeated texts", tuple(text.tokens) in self.seen):
                    self.seen.add(tuple(text.tokens))
                    self.unsaved.append(text)
                    self.tokens += len(text.tokens) - text.start
        finally:
            self.save()
        self.training.tell(self.summary(self.tokens))

    def is_over(self, drawn: int) -> bool:
        """Return whether to stop, with `drawn` tokens in unfinished answers. Report and save at intervals."""
        now, missing = time.monotonic(), self.least - self.tokens - drawn
        is_hopeless = self.writer.dropped.total() > max(HOPELESS, 20 * len(self.seen))
        over = now >= self.end and (missing <= 0 or is_hopeless)
        if now - self.reported >= PROGRESS_S and not over:
            self.reported = now
            choose_threads()
            self.save()
            left = self.end - now
            time_left = f"{left:.0f} s left" if left > 0 else f"the time is extended, as {missing:,} are missing"
            self.training.tell(f"{self.summary(self.tokens + drawn)}; {time_left}")
        return over

    def save(self) -> None:
        if self.unsaved:
            folder = self.training.out / EXAMPLES_FOLDER
            last = max((int(path.stem) for path in folder.glob("*.npz") if path.stem.isdecimal()), default=-1)
            example_files.save(self.unsaved, folder / f"{last + 1:04d}.npz")
            self.unsaved.clear()

    def summary(self, tokens: int) -> str:
        return f"{len(self.seen):,} texts, dropped {self.writer.summary()}; {tokens:,} tokens of answers"


def export_draft(draft: TrainableDraft, family: zoo.Family, out: Path, figures: dict[str, Any]) -> None:
    """Write config.json and the weights: a head's as other engines read them, a draft model's in 8 bits."""
    trained = {"target": family.name, **figures}
    config = {**draft.config(family.target.vocabulary, family.target.context), "trained": trained}
    weights = {name: tensor.detach().cpu() for name, tensor in draft.weights().items()}
    is_head = isinstance(draft, Eagle3)
    (out / (FILE if is_head else SINGLE)).unlink(missing_ok=True)  # of an earlier call with the other method
    if is_head:
        half = {name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
        write_folder(out, config | {"dtype": "bfloat16"}, half)
    else:
        write_folder(out, config, pack_rows(weights), FILE, packed=ROWS)
