"""A drafter for a tiny target, from its own writing: examples, loss, loop and folder."""

from __future__ import annotations

import json
import os
import pkgutil
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from specdec import cli as terminal
from specdec.drafters.eagle3 import Eagle3Head
from specdec.engine import Engine
from specdec.families import zoo
from specdec.families.export import write
from specdec.families.published import load_drafter
from specdec.messages import Refused
from specdec.models.device import torch_threads
from specdec.models.packed import FILE
from specdec.models.reduced import ReducedDraft
from specdec.traces.file import Trace
from specdec.training import examples as files
from specdec.training.draft_model import DraftModel
from specdec.training.eagle3 import distinct_taps, Eagle3
from specdec.training.examples import EARLIEST, Example
from specdec.training.loop import fit, Muon, rate, TrainingProgress
from specdec.training.loss import DECAY, Divergence, HeldOut, LOSS_TEMPERATURE, read_batch
from specdec.training.target_pass import hidden_states, new_cache
from specdec.training.train import load_target, train
from specdec.training.writing import tokens_around, Writer
from tests.families.toypairs import model_into
from tests.shallow import rewrite

PROMPTS = ["Tom went home.", "The cat sat on the mat.", "Anna likes the sea."]


def change(patch: pytest.MonkeyPatch, **values: Any) -> None:
    """Replace what modules of training go by: `MODULE__NAME`."""
    for name, value in values.items():
        patch.setattr(f"specdec.training.{name.replace('__', '.')}", value)


@pytest.fixture(scope="module")
def target(shallow, tmp_path_factory) -> Path:
    """A few layers of the embedded target, as others publish theirs: with its tokenizer."""
    folder = tmp_path_factory.mktemp("training") / "target"
    for part in ("target", "tokenizer"):
        shutil.copytree(Path(shallow) / part, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def family(target) -> zoo.Family:
    with pytest.MonkeyPatch.context() as patch:  # what is compared with passes of other shapes
        change(patch, train__precision=lambda device: torch.float32)
        return load_target(str(target), "cpu")


@pytest.fixture(scope="module")
def texts(family) -> list[Example]:
    with pytest.MonkeyPatch.context() as patch:
        change(patch, writing__MAX_ANSWER=24)
        return list(islice(Writer(family, PROMPTS * 8, rows=24).texts(lambda drawn: False), 180))


@pytest.fixture(scope="module")
def archive(texts, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "texts.npz"
    files.save(texts, path)
    return path


def loaded(family: zoo.Family, archive: Path) -> files.Examples:
    return files.load([archive], tokens_around(family)[0], family.target.vocabulary, family.target.context)


@pytest.mark.parametrize("window", [None, 5])
def test_a_pass_over_several_texts_is_that_over_each(family, window: int | None) -> None:
    model = family.target
    layers = [layer.window for layer in model.layers]
    native, model.native = model.native, None
    model.windows = {window}
    try:
        for layer in model.layers:
            layer.window = window
        ids = torch.randint(2, 400, (3, 20), generator=torch.Generator().manual_seed(0))
        whole, (low, last) = hidden_states(model, ids, (2, model.depth))
        assert torch.equal(last, whole)
        cache = new_cache(model, 3, 20)
        parts = [hidden_states(model, ids[:, a:b], (), cache, a)[0] for a, b in ((0, 9), (9, 10), (10, 20))]
        torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-3, atol=1e-3)
        for row, states, tap in zip(ids, whole, low, strict=True):
            alone = model.new_cache(20, (2,))
            logits = model.forward(row.tolist(), alone, rows=20)
            torch.testing.assert_close(model.logits(states), logits, rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(tap, alone.states[2], rtol=1e-3, atol=1e-3)
    finally:
        for layer, old in zip(model.layers, layers, strict=True):
            layer.window = old
        model.native, model.windows = native, set(layers)


def test_texts_go_on_as_the_target_would_however_many_are_written_at_once(family, monkeypatch) -> None:
    change(monkeypatch, writing__CHECK_EVERY=1)
    begun = [family.encode(prompt) for prompt in (*PROMPTS, "Once", "A")]
    ends = frozenset(family.encode("The")[1:])
    monkeypatch.setattr(family, "end_tokens", ends)
    written = list(Writer(family, rows=5).continued(begun, 40, [0.0] * len(begun), lambda drawn: False))
    lengths = [len(text) for _, text in written]
    assert len(set(lengths)) > 1 and lengths == sorted(lengths)  # what ends first comes first
    assert sorted(row for row, _ in written) == list(range(len(begun)))
    for row, text in written:
        start = begun[row]
        assert text[: len(start)] == start and len(start) < len(text) <= len(start) + 40
        logits = family.target.forward(text[:-1], family.target.new_cache(len(text)), rows=len(text) - len(start))
        drawn = text[len(start) :]
        assert sum(a == b for a, b in zip(logits.argmax(-1).tolist(), drawn, strict=True)) >= 0.95 * len(drawn)
        assert (drawn[-1] in ends) == (len(drawn) < 40) and not set(drawn[:-1]) & ends


def test_with_longer_prompts_fewer_texts_are_written_at_once(family, monkeypatch) -> None:
    monkeypatch.setattr("specdec.figures.machine.free_memory", lambda: 2**27)
    rows = [Writer(family, prompts).rows for prompts in ([], PROMPTS, [PROMPTS[0] * 40])]
    assert 1 < rows[2] < rows[0] < rows[1]


def test_a_given_prompt_keeps_its_first_words(family) -> None:
    assert family.tokenizer.decode(Writer(family, ["The old man"]).prompts[0]) == "The old man"


def test_a_chat_model_writes_the_prompts_too(tmp_path, monkeypatch) -> None:
    family = zoo.load_pair(model_into(tmp_path / "target", 1))
    writer = Writer(family, rows=4)
    assert writer.writes_prompts
    turn = family.tokenizer.encode("Tom went home").ids
    monkeypatch.setattr(
        "specdec.training.writing.Writer.continued",
        lambda self, begun, *_: ((row, [*text, *turn, writer.after[0]]) for row, text in enumerate(begun)),
    )
    change(monkeypatch, writing__SHARE_OPENED=0.0)
    assert writer.new_prompts(lambda drawn: False) == [[*turn, *writer.after]]
    assert writer.new_prompts(lambda drawn: False) == []
    assert writer.dropped["unusable or repeated prompts"] == 7
    question = family.tokenizer.encode("What is a black hole?").ids
    assert not writer.is_new(question)
    assert writer.is_new(family.tokenizer.encode("What is a black cat?").ids)
    monkeypatch.undo()
    change(monkeypatch, writing__SHARE_OPENED=1.0, writing__MAX_REPETITION=1.0)
    [text] = writer.answers([[*turn, *writer.after]], [0.0], lambda drawn: False)
    assert text.tokens[: len(turn) + len(writer.after)] == [*turn, *writer.after]


def test_the_loss_is_the_divergence_and_so_is_its_gradient(monkeypatch) -> None:
    change(monkeypatch, loss__PLACES_AT_ONCE={"cpu": 100})
    torch.manual_seed(0)
    target_states, target_rows = torch.randn(300, 8), torch.randn(50, 8)
    first, second, rows = (torch.randn(n, 6, requires_grad=True) for n in (300, 300, 50))
    loss = Divergence.apply(target_states, target_rows, rows, first, second)
    gradients = torch.autograd.grad(loss, (first, second, rows))
    p = (target_states @ target_rows.T / LOSS_TEMPERATURE).softmax(-1)
    meant = torch.zeros(())
    for i, states in enumerate((first, second)):
        q = (states @ rows.T / LOSS_TEMPERATURE).softmax(-1)
        divergence = (p * (p.log() - q.log())).sum(-1) + 0.5 * (p - q).abs().sum(-1)
        meant = meant + DECAY**i * divergence.mean()
    torch.testing.assert_close(loss, meant, rtol=1e-4, atol=1e-5)
    for one, other in zip(gradients, torch.autograd.grad(meant, (first, second, rows)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("shape", [(24, 40), (40, 24)])
def test_muon_takes_the_steps_of_torchs(shape: tuple[int, int], monkeypatch) -> None:
    noise = torch.Generator().manual_seed(0)
    start, gradients = torch.randn(shape, generator=noise), torch.randn(4, *shape, generator=noise)

    def end(optimiser: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]) -> torch.Tensor:
        matrix = torch.nn.Parameter(start.clone())
        steps = optimiser([matrix])
        for gradient in gradients:
            matrix.grad = gradient.clone()
            steps.step()
        return matrix.detach()

    theirs = end(lambda matrices: torch.optim.Muon(matrices, 0.1, 0.05, adjust_lr_fn="match_rms_adamw"))
    for in_bfloat16, error in ((True, 1e-6), (False, 0.01)):
        change(monkeypatch, loop__multiplies_bfloat16=lambda device, there=in_bfloat16: there)
        torch.testing.assert_close(end(lambda matrices: Muon(matrices, 0.1, 0.05)), theirs, rtol=0, atol=error)


def exported(model: DraftModel | Eagle3, family: zoo.Family, folder: Path) -> ReducedDraft | Eagle3Head:
    weights = {name: part.detach().clone() for name, part in model.weights().items()}
    write(folder, model.config(family.target.vocabulary, 512), weights)
    return load_drafter(folder, family.target, family.tokenizer)


def test_a_head_that_drafts_all_tokens_has_no_map(family, tmp_path) -> None:
    head = Eagle3(family.target, torch.arange(family.target.vocabulary))
    assert not {"d2t", "t2d"} & head.weights().keys()
    draft = exported(head, family, tmp_path)
    assert draft.draft_vocabulary.ids is None and draft.draft_vocabulary.count == len(head.draft_ids)


def test_what_is_exported_computes_what_was_trained(family, archive, tmp_path) -> None:
    examples = loaded(family, archive)
    model = DraftModel(family.target, torch.from_numpy(examples.most_frequent(300, 4096)), width=64, layers=1)
    draft = exported(model, family, tmp_path)
    assert draft.draft_vocabulary.ids.tolist() == model.draft_ids.tolist()
    tokens = torch.from_numpy(examples.tokens[:20])
    logits = draft.forward(tokens.tolist(), draft.new_cache(20), rows=20)
    with torch.no_grad():
        meant = (model(tokens[None])[0].to(model.dtype) @ model.outputs().T).float()
    assert float((logits - meant).abs().mean() / meant.abs().mean()) < 0.05


def test_a_head_computes_what_was_trained_at_every_step(family, archive, tmp_path) -> None:
    torch.manual_seed(3)
    examples = loaded(family, archive)
    model = Eagle3(family.target, torch.from_numpy(examples.most_frequent(300, 4096)))
    for parameter in model.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    reading = read_batch(family.target, next(examples.in_order(2_000)), model.taps, model.dtype)
    tokens, row = reading.tokens[0].tolist(), reading.tokens.shape[1]
    last = 12
    cache = family.target.new_cache(row, model.taps)
    family.target.forward(tokens, cache)
    head = exported(model, family, tmp_path)
    assert head.draft_vocabulary.ids.tolist() == model.draft_ids.tolist()
    own = head.new_cache(row)
    states, begin = head.fuse(cache.states, slice(0, last)), 1
    with torch.no_grad():
        outputs = model(reading.tokens, reading.features)
    for step in range(model.steps):
        states = head.forward(states, tokens[begin : last + 1 + step], own)[-1:]
        logits, begin = head.decoder.logits(states)[0].float(), last + 1 + step
        meant = (outputs[step][0, last - 1] @ model.outputs().T).float()
        assert float((logits - meant).abs().mean() / meant.abs().mean()) < 0.05
    # The draft's token s at a place is what row `place - s - 1` says: the loss compares it with the target there.
    for step, prediction in enumerate(model.predictions(reading)):
        torch.testing.assert_close(prediction, outputs[step].flatten(0, 1)[reading.places - step - 1])


def test_batches_hold_what_was_written_and_learn_answers_alone(family, texts, archive) -> None:
    before = tokens_around(family)[0]
    examples = loaded(family, archive)
    texts = list({tuple(text.tokens): text for text in texts}.values())
    assert len(examples) == len(texts)
    assert examples.answer_tokens == sum(len(t.tokens) - max(t.start, EARLIEST - len(before)) for t in texts)
    whole = [[*before, *text.tokens] for text in texts]
    pairs = {(tuple(tokens[:i]), tokens[i]) for tokens, text in zip(whole, texts, strict=True)
             for i in range(max(EARLIEST, len(before) + text.start), len(tokens))}  # fmt: skip
    seen = set()
    for batch in examples.in_order(400):
        width = batch.tokens.shape[1]
        for place in batch.places.tolist():
            row, column = divmod(place, width)
            tokens = batch.tokens[row].tolist()
            seen.add((tuple(tokens[: column + 1]), tokens[column + 1]))
    assert seen == pairs
    stream = examples.tokens.tolist()
    for batch in islice(examples.shuffled(800, random.Random(0)), 30):
        row, column = divmod(int(batch.places[0]), batch.tokens.shape[1])
        piece = batch.tokens[row, max(0, column - 3) : column + 2].tolist()
        assert any(stream[i : i + len(piece)] == piece for i in range(len(stream)))
    assert rate(0.0) < rate(0.2) == 1.0 > rate(0.7) > rate(1.0) > 0.0


def random_texts(count: int, length: int, seed: int = 0) -> list[Example]:
    dice = random.Random(seed)
    return [Example([dice.randrange(2, 400) for _ in range(length)], 0) for _ in range(count)]


def test_among_more_texts_the_same_are_held_out(family, archive, tmp_path) -> None:
    own = loaded(family, archive)
    more = tmp_path / "more.npz"
    files.save(random_texts(300, 20), more)
    before = tokens_around(family)[0]
    all_texts = files.load([more, archive], before, family.target.vocabulary, family.target.context)

    def parts(examples: files.Examples) -> list[set[bytes]]:
        return [{text.tobytes() for text in np.split(part.tokens, part.offsets[1:])} for part in examples.split(20, 32)]

    (learned, held_out), (later_learned, later_held_out) = parts(own), parts(all_texts)
    assert 0 < len(held_out) < len(learned) and held_out <= later_held_out and learned <= later_learned
    assert [len(part) for part in own.select(np.arange(2)).split(1, 32)] == [1, 1]  # never all


def test_the_held_out_figures_are_those_of_the_distributions(family, archive) -> None:
    examples = loaded(family, archive)
    model = DraftModel(family.target, torch.from_numpy(examples.most_frequent(300, 4096)), width=64, layers=1)
    reading = read_batch(family.target, next(examples.in_order(1_000)), (), model.dtype)
    agreement, overlap = HeldOut(family.target, [reading], model.draft_ids).measure(model)
    logits = family.target.project(reading.states.to(family.target.dtype)).float()
    with torch.no_grad():
        own = torch.full_like(logits, float("-inf"))
        own[:, model.draft_ids] = (model.predictions(reading)[0] @ model.outputs().T).float()
    share = (logits.argmax(-1) == own.argmax(-1)).float().mean()
    p, q = ((x / LOSS_TEMPERATURE).softmax(-1) for x in (logits, own))
    assert agreement[0] == pytest.approx(float(share), abs=0.02)
    assert overlap[0] == pytest.approx(float(torch.minimum(p, q).sum(-1).mean()), abs=0.01)


def test_an_interrupted_measurement_leaves_the_trained_weights_in_the_checkpoint(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("specdec.training.loop.REPORT_MAX_S", 0.0)  # a measurement after each step
    model, checkpoint = torch.nn.Linear(2, 1), tmp_path / "checkpoint.pt"
    written = list[torch.Tensor]()

    def measure(progress: TrainingProgress) -> None:
        if progress.steps == 2:
            written.append(torch.load(checkpoint)["model"]["weight"])
            if len(written) == 1:
                raise KeyboardInterrupt

    batches = ((torch.ones(1, 2), 1) for _ in count())
    with pytest.raises(KeyboardInterrupt):
        fit(model, [model.weight], lambda batch: model(batch).sum(), batches, 60.0, checkpoint, measure)
    before, after = written
    assert torch.equal(before, after) and torch.equal(after, model.weight)


@pytest.mark.long
@pytest.mark.parametrize("method", ["draft_model", "eagle3"])
def test_from_an_empty_folder_to_a_draft_that_foresees_more(target, tmp_path, monkeypatch, quick, method) -> None:
    out, lines, clock = tmp_path / "draft", list[str](), count()
    prompts = tmp_path / "prompts"
    prompts.write_text("\n".join(PROMPTS * 20))
    now = SimpleNamespace(monotonic=lambda: next(clock) / 6)  # steps take seconds, however fast the machine
    change(monkeypatch, train__time=now, loop__time=now, writing__rows_that_fit=lambda *_: 60)
    change(monkeypatch, train__WRITING_SHARE=0.3, train__VOCABULARY=2048, train__LEAST_STEPS=2)
    with torch_threads(3):
        first = train(str(target), out, 0.3, method, prompts, lines.append, **SMALL)
        assert torch.get_num_threads() == 3
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    assert first["agreement"][0] > curve[0]["agreement"][0] + 0.05, curve
    assert [point["tokens"] for point in curve] == sorted(point["tokens"] for point in curve)
    assert len(curve[-1]["overlap"]) == (1 if method == "draft_model" else 4)
    config = json.loads((out / "config.json").read_text())
    trained = config["trained"]
    assert trained["target"] == str(target) and trained["overlap"] in [point["overlap"] for point in curve]
    umask = os.umask(0)
    os.umask(umask)
    file = out / (FILE if method == "draft_model" else "model.safetensors")
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
    if method == "eagle3":  # what vLLM and SGLang look for
        weights = load_file(file)
        assert config["architectures"] == ["LlamaForCausalLMEagle3"]
        assert config["vocab_size"] == len(weights["t2d"])
        assert config["draft_vocab_size"] == len(weights["lm_head.weight"]) == len(weights["d2t"]) == 2048
        assert {tensor.dtype for name, tensor in weights.items() if "2" not in name} == {torch.bfloat16}

    rewrite(out, {"trained": trained | {"overlap": [9.0]}})  # better than what the next call can measure
    exported = file.read_bytes()
    again = train(str(target), out, 0.1, method, prompts, lines.append, **SMALL)
    assert file.read_bytes() == exported
    assert again["steps"] > first["steps"] and again["seconds"] > first["seconds"]
    with pytest.raises(Refused, match=f"was begun with --method {method}"):
        train(str(target), out, 0.1, "eagle3" if method == "draft_model" else "draft_model")


@pytest.fixture
def quick(monkeypatch) -> None:
    """Short texts, few at once, small batches: a training of seconds."""
    change(monkeypatch, writing__MAX_ANSWER=24, writing__MAX_REPETITION=1.0, writing__rows_that_fit=lambda *_: 16)
    change(monkeypatch, train__BATCH_TOKENS={"cpu": 256}, train__PROGRESS_S=0.0, train__MIN_TOKENS=100)
    change(monkeypatch, train__WANTED_TOKENS=1_000, train__LEAST_STEPS=4)


SMALL: dict[str, Any] = {"width": 64, "layers": 1, "device": "cpu"}
SIZE = [word for name, value in SMALL.items() for word in (f"--{name}", f"{value}")]
MOMENTS = {  # what is interrupted -> what is said of it
    "specdec.families.zoo.load_target": "because no text was written",
    "specdec.training.writing.Writer.summary": "because no step was made",  # while texts are written
    "specdec.training.train.HeldOut": "because no step was made",  # before the first step
    "specdec.training.draft_model.DraftModel.loss": "the best draft so far is in",
    "specdec.training.train.write_folder": "the best draft so far is in",  # while it is saved
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_loses_nothing(target, tmp_path, monkeypatch, capsys, quick, moment: str) -> None:
    module, _, name = moment.rpartition(".")
    place = pkgutil.resolve_name(module)
    original, calls = getattr(place, name), count()

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if next(calls) == {"summary": 3, "loss": 2, "write_folder": 1}.get(name, 0):
            signal.raise_signal(signal.SIGINT)
        return original(*arguments, **named)

    out = tmp_path / "draft"
    command = ["train", "--target", str(target), "--out", str(out), "--minutes", "0.2", *SIZE]
    with monkeypatch.context() as patch:
        patch.setattr(place, name, interrupted)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
        assert terminal.main(command) == terminal.STOPPED
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().out
    assert MOMENTS[moment] in said.splitlines()[-1] and next(calls) > 0
    texts = len(list((out / "examples").glob("*.npz"))) if out.exists() else 0
    assert (texts > 0) == (name != "load_target")
    if "best draft" in MOMENTS[moment]:
        assert "draft_model" in zoo.load_pair(target, out).drafters
    if name in ("summary", "loss"):
        steps = torch.load(out / "checkpoint.pt", weights_only=True)["progress"]["steps"] if name == "loss" else 0
        again = train(str(target), out, 0.05, tell=lambda line: None, **SMALL)
        assert again["steps"] > steps and len(list((out / "examples").glob("*.npz"))) > texts
        assert "draft_model" in zoo.load_pair(target, out).drafters


def test_time_is_extended_until_there_is_enough_to_learn_from(target, tmp_path, quick) -> None:
    lines = list[str]()
    figures = train(str(target), tmp_path, 0.001, tell=lines.append, **SMALL)
    assert figures["steps"] == 4 and "draft_model" in zoo.load_pair(target, tmp_path).drafters
    assert lines[0].startswith("0.001 minutes: 0.0 to load")
    extended = r"\d+ texts, dropped .*; [1-9]\d* tokens of answers; the time is extended, as \d+ are missing"
    assert any(re.fullmatch(extended, line) for line in lines)
    before, after = next(line for line in lines if "; after the last" in line).split("; after the last")
    assert before.startswith("before the first step: accepted when greedy 0.")
    assert "accepted when greedy 0." in after


def test_a_folder_goes_on_only_with_the_settings_that_it_was_begun_with(target, archive, tmp_path, quick) -> None:
    out, usual = tmp_path / "draft", {"target": str(target), "method": "draft_model", "width": 64, "layers": 1}

    def call(**changed: Any) -> None:
        train(out=out, minutes=0.001, tell=lambda line: None, device="cpu", texts=[archive], **(usual | changed))

    (out / "examples").mkdir(parents=True)
    (out / "settings.json").write_text(json.dumps(usual | {"width": 128}))
    with pytest.raises(Refused, match=f"draft was begun with --target {target}; repeat that"):
        call(target="embedded")
    call()  # there are no weights of another width yet
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for changed, told in (
        ({"target": "embedded"}, f"--target {target}"),
        ({"width": 128, "layers": 2}, "--width 64 --layers 1"),
        ({"method": "eagle3"}, "--method draft_model --width 64 --layers 1"),
    ):
        with pytest.raises(Refused, match=f"draft was begun with {told}; repeat that, or choose another --out"):
            call(**changed)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == kept


def test_texts_too_short_to_learn_from_do_not_count(target, tmp_path, quick) -> None:
    files.save(random_texts(400, EARLIEST - 2), tmp_path / "short.npz")
    with pytest.raises(Refused, match="at least 100 tokens of answers are needed, but only 0 are in"):
        train(str(target), tmp_path / "draft", 0.001, tell=print, texts=[tmp_path / "short.npz"], **SMALL)


def test_a_head_replaces_the_draft_model_of_a_call_that_was_killed(
    target, archive, tmp_path, monkeypatch, quick
) -> None:
    call: dict[str, Any] = {"target": str(target), "out": tmp_path / "draft", "minutes": 0.001, "texts": [archive]}
    with monkeypatch.context() as patch:
        patch.setattr(DraftModel, "loss", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(**call, **SMALL)
    assert "draft_model" in zoo.load_pair(target, call["out"]).drafters
    train(**call, method="eagle3", device="cpu")
    assert {"eagle3"} == zoo.load_pair(target, call["out"]).drafters.keys() & {"eagle3", "draft_model"}


@pytest.mark.parametrize("target_name", ["embedded", "a family's folder"])
def test_a_draft_runs_with_the_options_that_training_ends_with(
    shallow, archive, tmp_path, quick, capsys, target_name: str
) -> None:
    target = "embedded" if target_name == "embedded" else shallow
    command = ["train", "--target", target, "--out", str(tmp_path / "draft"), "--minutes", "0.1"]
    assert terminal.main([*command, "--examples", str(archive), *SIZE]) == 0
    options = capsys.readouterr().out.splitlines()[-1].partition("use it with ")[2].split()
    run = ["run", PROMPTS[0], *options, "--drafter", "draft_model", "-k", "2", "--max-tokens", "8"]
    assert terminal.main([*run, "--temperature", "0", "--save", str(tmp_path / "run.jsonl")]) == 0
    plain = Engine(target).race(PROMPTS[0], "none", max_tokens=8)._texts()["plain"]
    assert Trace.load(tmp_path / "run.jsonl")._texts() == {"speculative": plain, "plain": plain}


@pytest.mark.long
def test_a_run_that_is_killed_leaves_a_draft(target, archive, tmp_path) -> None:
    out = tmp_path / "draft"
    command = [sys.executable, "-m", "specdec", "train", "--target", str(target), "--out", str(out), "--minutes", "2"]
    with subprocess.Popen([*command, "--examples", str(archive), *SIZE], stdout=subprocess.PIPE, text=True) as process:
        next(line for line in process.stdout if "before the first step" in line)
        process.kill()
    family = zoo.load_pair(target, out)
    assert "draft_model" in family.drafters and not list((out / "examples").iterdir())


def test_taps_differ_in_a_target_of_few_layers() -> None:
    for depth in range(1, 30):
        taps = distinct_taps(depth)
        assert len(set(taps)) == len(taps) and 0 <= min(taps) <= max(taps) <= depth
    assert distinct_taps(24) == (2, 12, 21)


def test_what_cannot_be_trained_is_one_sentence_before_anything_is_loaded(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.png").write_text("")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    new = str(tmp_path / "new")
    wrong = {
        "'magic' is not a method of training": ("--out", new, "--method", "magic"),
        "file exists and `specdec train` did not make it; choose another --out": ("--out", str(tmp_path / "file")),
        "other exists and `specdec train`": ("--out", str(tmp_path / "other")),
        "multiple of 64, not 200": ("--out", new, "--width", "200"),
        "codec can't decode": ("--out", new, "--prompts", str(tmp_path / "bytes")),
    }
    for sentence, options in wrong.items():
        assert terminal.main(["train", "--target", str(tmp_path / "no-model"), *options]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_too_few_texts_and_files_of_something_else_are_told(target, tmp_path, monkeypatch) -> None:
    change(monkeypatch, writing__is_varied=lambda tokens: False, writing__MAX_ANSWER=8)
    change(monkeypatch, writing__rows_that_fit=lambda *_: 16, train__HOPELESS=20)
    wanted = r"at least 1,000 tokens of answers .*, but only 0 .*dropped: \d+ loops; give --prompts, or more --minutes"
    with pytest.raises(Refused, match=wanted):
        train(str(target), tmp_path / "draft", 0.001, tell=lambda line: None)
    np.savez(tmp_path / "ids.npz", tokens=np.array([2**15]), lengths=np.array([1]), starts=np.array([0]))
    (tmp_path / "photo.npz").write_bytes(b"nothing")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "short.npz", tokens=np.arange(9), lengths=np.array([4, 4]), starts=np.array([1, 1]))
    foreign = {
        "ids": "another model wrote it",
        "photo": "holds no examples",
        "empty": "holds no examples",
        "short": "holds no examples",
    }
    for name, sentence in ((f"{stem}.npz", sentence) for stem, sentence in foreign.items()):
        with pytest.raises(Refused, match=sentence):
            train(str(target), tmp_path / "new", 0.1, tell=lambda line: None, texts=[tmp_path / name])
