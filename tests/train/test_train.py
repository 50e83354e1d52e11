"""Training the embedded family, small: every stage runs, goes on, and leaves what transformers and we can load."""

from __future__ import annotations

import json
import random
import sysconfig
from itertools import count, cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from specdec.events import Drafted, Failed
from specdec.families import zoo
from specdec.loop import generate
from specdec.task import Task
from specdec.training.loop import fit, TrainingProgress
from specdec.types import SamplingParams
from tests.tokens import ids, only
from tests.training.test_training import change
from tools.train import __main__ as train
from tools.train import corpus, data, facts, target

WORDS = "the a boat sea king old young went came said saw and but then home night morning".split()
STAGES = {"tokenizer", "target", "texts", "draft_model", "eagle3", "medusa", "block", "mtp"}


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> Path:
    folder, rng = tmp_path_factory.mktemp("books"), random.Random(0)
    for book in range(3):
        paragraphs = [" ".join(rng.choices(WORDS, k=60)).capitalize() + "." for _ in range(60)]
        paragraphs.insert(4, "This paragraph speaks of an idiot and must go.")
        (folder / f"book{book}.txt").write_text("\n\n".join(paragraphs))
    return folder


@pytest.fixture(scope="module")
def family(books, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("family")
    arguments = ["--corpus", str(books), "--out", str(out), "--minutes", "0.01", "--batch-tokens", "512"]
    arguments += ["--length", "64", "--device", "cpu"]
    with pytest.MonkeyPatch.context() as patch:
        library, questions = Path(sysconfig.get_path("stdlib")), facts.documents(60, 0)
        patch.setattr(sysconfig, "get_path", lambda _: str(library / "json"))
        patch.setattr(facts, "documents", lambda *_: questions)
        small = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1}
        patch.setattr(target, "SHAPE", {"num_hidden_layers": 8, **small})
        patch.setattr(target, "STEM", {"num_hidden_layers": 4, **small})
        for module in (data, target):
            patch.setattr(module, "VOCABULARY", 512)
        patch.setattr(train, "CORPUS_TEXTS", 30)
        patch.setattr(train, "TARGET_TEXTS", 16)
        change(patch, train__BATCH_TOKENS={"cpu": 512}, train__MIN_TOKENS=100, train__LEAST_STEPS=2)
        change(patch, writing__MAX_ANSWER=16, writing__MAX_REPETITION=1.0, draft_model__WIDTH=64)
        assert train.main(["all", *arguments]) == 0
        trained = weights(out)
        for stage in ("all", "target"):  # everything is there already: nothing is trained twice
            assert train.main([stage, *arguments]) == 0
        assert weights(out) == trained
    return out


def weights(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.safetensors")}


def test_provenance_tells_where_it_came_from(family) -> None:
    record = json.loads((family / "provenance.json").read_text())
    assert set(record) == STAGES
    for name in STAGES - {"tokenizer", "texts"}:
        assert record[name]["tokens_seen"] > 0 and {"minutes", "machine"} <= set(record[name])
    assert set(record["target"]["bits_per_byte_held_out"]) == {"story", "code", "facts"}
    assert record["target"]["exit_layers"] == [2, 4]
    assert len(record["tokenizer"]["stories_sha256"]) == 3
    for path in family.rglob("config.json"):
        if path.parent.name not in ("draft_model", "eagle3"):
            assert str(family) not in path.read_text()
    assert all(path.stat().st_size < 9_000_000 for path in family.rglob("*.safetensors"))


def test_what_was_trained_drafts(family) -> None:
    ours = zoo.load(str(family), torch.float32)
    models = {"draft_model", "medusa", "medusa:tree", "eagle3", "eagle3:tree", "early_exit", "block", "mtp"}
    assert models < set(ours.drafters)
    params, texts = SamplingParams(max_tokens=24, ignore_end=True), {}
    for name in ours.drafters:
        view, drafter = ours.new_drafter(name, 48)
        events = list(generate(Task(view, ours.encode("the old king"), params, drafter, k=4)))
        assert not only(events, Failed)
        texts[name] = ids(events)
        if name in models:
            assert only(events, Drafted)
    assert all(text == texts["none"] for text in texts.values())


def test_training_lowers_the_loss_and_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    clock = count()
    monkeypatch.setattr("specdec.training.loop.time", SimpleNamespace(monotonic=lambda: 2.0 * next(clock)))
    torch.manual_seed(0)
    model, wanted = nn.Linear(8, 8), 0.3 * torch.randn(8, 8)
    batches = [(x, len(x)) for x in torch.randn(50, 32, 8)]
    losses = list[float]()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (model(x) - x @ wanted).square().mean()

    def run(seconds: float, least_steps: int = 1) -> TrainingProgress:
        def measure(progress: TrainingProgress) -> None:
            losses.append(loss(batches[0][0]).item())

        return fit(model, [model.weight], loss, cycle(batches), seconds, tmp_path / "check.pt", measure, least_steps)

    first = run(1_000.0)
    assert losses[-1] < losses[0] / 4 and 300 < first.steps < 600 and first.tokens == 32 * first.steps
    measured = len(losses)
    assert 10 < measured < 25
    with torch.no_grad():
        model.weight.zero_()
    second = run(20.0)
    assert second.steps > first.steps and second.seconds > first.seconds
    assert losses[measured] == pytest.approx(losses[measured - 1], rel=1e-4)  # the checkpoint's weights
    assert run(0.0, 7).steps == second.steps + 7  # the time is extended


def test_blocked_paragraphs_are_left_out_and_words_are_not_parts_of_words(books, tmp_path) -> None:
    texts, blocked = corpus.stories(books), corpus.blocked_words()
    assert len(texts) > 3 and not any("idiot" in text for text in texts)
    assert blocked.search("What an Idiot!") and not blocked.search("a grape in japan, drapes")
    with pytest.raises(SystemExit, match=r"point --corpus at a folder"):
        corpus.stories(tmp_path)


def test_facts_are_true() -> None:
    text = "\n".join(facts.documents(200, seed=0))
    for line in text.splitlines():
        words = line.rstrip(".").split()
        if line.startswith("A:") and "plus" in words and "is" in words:
            assert int(words[1]) + int(words[3]) == int(words[5])
        if line.startswith("A:") and "times" in words:
            assert int(words[1]) * int(words[3]) == int(words[5])
    assert facts.documents(3, seed=4) == facts.documents(3, seed=4) != facts.documents(3, seed=5)
