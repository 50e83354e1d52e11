"""A drafter for a tiny target, from its own writing: examples, loss, loop and folder."""

from __future__ import annotations

import json
import random
import shutil
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from toypairs import model_into

from specdec import cli as terminal
from specdec.drafters import DraftModelDrafter, Eagle3Drafter, Eagle3Head
from specdec.engine import generate, Task
from specdec.events import Committed
from specdec.families import zoo
from specdec.families.published import load_drafter
from specdec.models.checkpoint import read_weights
from specdec.models.packed import FILE, pack_rows
from specdec.models.reduced import MAP, ReducedDraft, WRITES
from specdec.training.draft_model import DraftModel
from specdec.training.eagle3 import Eagle3, STEPS
from specdec.training.examples import ANSWER, Example, KEPT, likely, load, save, Writer
from specdec.training.loop import batches, joined, rate
from specdec.training.loss import Divergence, divergence, LOW
from specdec.training.train import train
from specdec.types import SamplingParams
from tools.train.pack import without_outputs

PROMPTS = ["Tom went home.", "The cat sat on the mat.", "Anna likes the sea."]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded target as others publish theirs: with its tokenizer."""
    folder = tmp_path_factory.mktemp("training") / "target"
    for part in ("target", "tokenizer"):
        shutil.copytree(zoo.EMBEDDED / part, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def examples(target: Path) -> list[Example]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specdec.training.examples.LONGEST_ANSWER", 24)
        written = Writer(zoo.load_pair(target), PROMPTS, rows=24).examples()
        return [example for example in islice(written, 72) if example is not None]


def test_a_example_says_what_the_target_says_at_each_place_of_an_answer(target: Path, examples: list[Example]) -> None:
    family = zoo.load_pair(target)
    assert len(examples) > 20
    starts = {tuple(family.encode(prompt)) for prompt in PROMPTS}
    for example in examples[:4]:
        tokens, first = example.tokens.tolist(), int(example.places[0])
        assert tuple(tokens[: first + 1]) in starts
        assert example.places.tolist() == list(range(first, len(tokens) - 1))
        logits = family.target.forward(tokens[:-1], family.target.new_cache(len(tokens)), rows=len(example.places))
        found, ids = logits.log_softmax(-1).topk(KEPT)
        torch.testing.assert_close(example.logs.float(), found, rtol=1e-3, atol=2e-2)
        assert float((example.likeliest[:, 0] == ids[:, 0]).float().mean()) > 0.99
        if example.temperature == 0.0:
            assert tokens[first + 1 :] == example.likeliest[:, 0].tolist()


def test_a_chat_model_writes_the_prompts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers begin where the template ends; a prompt that was written before is not kept."""
    family = zoo.load_pair(model_into(tmp_path / "target", 1))
    assert family.chat is not None
    writer = Writer(family, rows=4)
    monkeypatch.setattr("specdec.training.examples.OPENED", 0.0)
    end = writer.after[0]
    turns = [*family.tokenizer.encode("Tom went home").ids, end]  # what every prompt is
    row = writer.begin()
    assert row.tokens == writer.before and not row.answering
    assert {writer.write(row, token) for token in turns} == {None} and row.answering
    assert row.forced == writer.after[1:]
    again = writer.begin()
    assert [writer.write(again, token) for token in turns][-1] is False
    answered = [writer.write(row, token) for token in (9, 10, 11, end)]
    assert answered == [None, None, None, True] and row.marks[-4:] == [ANSWER] * 4


def test_prompts_begin_as_given_and_none_is_measured_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = zoo.load_pair(model_into(tmp_path / "target", 1))
    writer = Writer(family, rows=4)
    monkeypatch.setattr("specdec.training.examples.OPENED", 1.0)
    row = writer.begin()
    assert row.forced in writer.openings and not row.answering
    question = family.tokenizer.encode("What is a black hole?").ids
    assert not writer.is_new(question) and writer.is_new(family.tokenizer.encode("What is a black cat?").ids)


def test_the_loss_is_the_divergence_and_so_is_its_gradient() -> None:
    torch.manual_seed(0)
    states, rows = torch.randn(300, 8, requires_grad=True), torch.randn(50, 8, requires_grad=True)
    logits = torch.randn(300, 50) * 2
    p, tokens = logits.softmax(-1).topk(50)
    found = Divergence.apply(states, rows, tokens, p, 0.8)
    found.backward()
    gradients = states.grad, rows.grad
    states.grad = rows.grad = None
    meant = divergence(logits.log_softmax(-1), (states @ rows.T / 0.8).log_softmax(-1))
    torch.autograd.backward(meant)
    torch.testing.assert_close(found, meant, rtol=1e-4, atol=1e-5)
    for one, other in zip(gradients, (states.grad, rows.grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_what_is_exported_computes_what_was_trained(target: Path, examples: list[Example], tmp_path: Path) -> None:
    family = zoo.load_pair(target)
    model = DraftModel(family.target, likely(examples, family.target.vocabulary, 300), width=64, layers=1)
    (tmp_path / "config.json").write_text(json.dumps(model.config(family.target.vocabulary, 512)))
    save_file(model.weights(), tmp_path / "model.safetensors")
    draft = load_drafter(tmp_path, family.target, family.tokenizer)
    assert isinstance(draft, ReducedDraft) and draft.known.tolist() == model.known.tolist()
    tokens = examples[0].tokens[:20]
    found = draft.forward(tokens.tolist(), draft.new_cache(20), rows=20)[:, model.known]
    with torch.no_grad():
        meant = (model(tokens[None])[0].to(LOW) @ model.outputs().T).float()
    assert float((found - meant).abs().mean() / meant.abs().mean()) < 0.05


def test_a_head_computes_what_was_trained_at_every_step(target: Path, examples: list[Example], tmp_path: Path) -> None:
    """With the target's features, then with its own outputs; in the authors' layout, and packed without its outputs."""
    family = zoo.load_pair(target)
    torch.manual_seed(3)
    model = Eagle3(family.target, likely(examples, family.target.vocabulary, 300))
    for parameter in model.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    (tmp_path / "config.json").write_text(json.dumps(model.config(family.target.vocabulary, 512)))
    save_file(model.weights(), tmp_path / "model.safetensors")
    tokens = examples[0].tokens[:20]
    cache = family.target.new_cache(20, model.taps)
    family.target.forward(tokens.tolist(), cache)
    features, last = model.features([Example(tokens, *[torch.empty(0)] * 3, 0.0)]), 20 - STEPS
    with torch.no_grad():
        meant = [(outputs[0] @ model.rows.T).float() for outputs in model(tokens[None], features)]

    small = without_outputs(model.weights(), family.target)
    assert WRITES in small and "lm_head.weight" not in small
    for packed in (False, True):
        if packed:
            (tmp_path / "model.safetensors").unlink()
            save_file(pack_rows(small), tmp_path / FILE)
        head = load_drafter(tmp_path, family.target, family.tokenizer)
        assert isinstance(head, Eagle3Head) and head.ids.tolist() == model.known.tolist()
        own = head.new_cache(20)
        states, begin = head.fuse(cache.states, slice(0, last)), 1
        for step in range(STEPS):
            states = head.read(states, tokens[begin : last + 1 + step].tolist(), own)[-1:]
            found, wanted, begin = head.known_logits(states)[0].float(), meant[step][last - 1], last + 1 + step
            assert float((found - wanted).abs().mean() / wanted.abs().mean()) < 0.05


def test_examples_are_kept_as_they_are(examples: list[Example], tmp_path: Path) -> None:
    save(examples, tmp_path / "0.safetensors")
    for one, other in zip(examples, load(tmp_path / "0.safetensors"), strict=True):
        assert torch.equal(one.tokens, other.tokens) and torch.equal(one.places, other.places)
        assert torch.equal(one.likeliest, other.likeliest) and torch.equal(one.logs, other.logs)
    (tmp_path / "1.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"1\.safetensors holds no examples"):
        load(tmp_path / "1.safetensors")


def test_batches_hold_whole_examples_of_one_length_or_several_in_a_row(examples: list[Example]) -> None:
    for batch in islice(batches(examples, 400, random.Random(0)), 20):
        for example in batch:
            assert len(example.places) == len(example.likeliest) == len(example.logs)
    row = joined(examples[:3])[0]
    own, first = examples[0].places, len(examples[0].tokens)
    assert torch.equal(row.tokens[row.places[: len(own)]], examples[0].tokens[own])
    assert int(row.places[len(own)]) == first + int(examples[1].places[0])
    assert rate(0.0) < rate(0.2) == 1.0 > rate(0.7) > rate(1.0) > 0.0


@pytest.mark.parametrize(("method", "kind"), [("draft_model", DraftModelDrafter), ("eagle3", Eagle3Drafter)])
def test_a_drafter_trained_for_seconds_foresees_more_and_the_text_stays(
    target: Path, examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, kind: type
) -> None:
    out, told, clock = tmp_path / "draft", list[str](), count()
    (out / "examples").mkdir(parents=True)
    save(examples, out / "examples" / "0000.safetensors")
    monkeypatch.setattr("specdec.training.train.ENOUGH", 1)  # none are written
    monkeypatch.setattr("specdec.training.loop.BATCH", 1_024)
    for name in ("train", "loop"):  # a step takes a second, however fast the machine
        monkeypatch.setattr(f"specdec.training.{name}.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    figures = train(str(target), out, 0.5, method, tell=told.append, width=64, layers=1)
    before = float(next(line for line in told if "favourite" in line).split("favourite")[1].split()[0])
    assert figures["agreement"] > before + 0.05 and 20 < figures["steps"] < 40
    known = read_weights(out)[MAP]
    assert len(known) <= 8_192 and json.loads((out / "config.json").read_text())["trained"]["target"] == str(target)

    family = zoo.load_pair(target, out)
    ids, texts = family.encode(PROMPTS[0]), []
    for name, k in (("none", 0), (method, 4)):
        view, drafter = family.lane(name, len(ids) + 40)
        assert k == 0 or isinstance(drafter, kind)
        task = Task(view, ids, SamplingParams(max_tokens=32, ignore_end=True), drafter, k, details=False)
        texts.append([token for event in generate(task) if isinstance(event, Committed) for token in event.tokens])
    assert texts[0] == texts[1] and len(texts[0]) == 32

    steps = figures["steps"]
    again = train(str(target), out, 0.2, method, tell=told.append, width=64, layers=1)
    assert again["steps"] > steps  # it went on
    assert len(list((out / "examples").iterdir())) == 1
    with pytest.raises(ValueError, match="a drafter of another method"):
        train(str(target), out, 0.2, "eagle3" if method == "draft_model" else "draft_model")


def test_what_cannot_be_trained_is_one_sentence_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.png").write_text("")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    new = str(tmp_path / "new")
    wrong = {
        "no way to train 'magic'": ("--out", new, "--method", "magic"),
        "is a file; --out names a folder": ("--out", str(tmp_path / "file")),
        "holds other files": ("--out", str(tmp_path / "other")),
        "holds no prompt": ("--out", new, "--prompts", str(tmp_path / "file")),
        "one prompt a line, in UTF-8": ("--out", new, "--prompts", str(tmp_path / "bytes")),
    }
    for said, options in wrong.items():
        assert terminal.main(["train", "--target", str(tmp_path / "no-model"), *options]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_target_that_writes_nothing_of_use_is_told(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specdec.training.examples.is_varied", lambda tokens: False)
    monkeypatch.setattr("specdec.training.examples.LONGEST_ANSWER", 8)
    with pytest.raises(ValueError, match="wrote 0 texts that can be used; give more --minutes"):
        train(str(target), tmp_path / "draft", 0.0, tell=lambda line: None, rows=2)
