"""Training, small: every stage runs, resumes, and leaves what transformers and we can load."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specdec import zoo
from specdec.engine import generate, Task
from specdec.events import Committed, Drafted, Failed
from specdec.train import __main__ as train
from specdec.train import corpus, facts, loop, target
from specdec.types import SamplingParams

WORDS = "the a boat sea king old young went came said saw and but then home night morning".split()


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("books"), random.Random(0)
    for book in range(3):
        paragraphs = [" ".join(rng.choices(WORDS, k=60)).capitalize() + "." for _ in range(200)]
        paragraphs.insert(4, "This paragraph speaks of an idiot and must go.")
        (folder / f"book{book}.txt").write_text("\n\n".join(paragraphs))
    return folder


@pytest.fixture(scope="module")
def family(books: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("family")
    patch = pytest.MonkeyPatch()
    # The standard library stays real, but a twentieth of it is enough here.
    whole = corpus.standard_library()
    patch.setattr(corpus, "standard_library", lambda: whole[::20])
    small = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 1}
    patch.setattr(target, "SHAPE", {"num_hidden_layers": 6, **small})
    arguments = [
        "all", "--corpus", str(books), "--out", str(out), "--tokens", "6000", "--draft-tokens", "4000",
        "--own-tokens", "1024", "--lesson-tokens", "2048", "--widths", "64", "--batch-tokens", "1024",
        "--length", "64", "--stories", "4", "--medusa-tokens", "4000", "--eagle3-tokens", "4000", "--no-compile",
        "--device", "cpu",
    ]  # fmt: skip
    assert train.main(arguments) == 0
    assert train.main(arguments) == 0  # everything is there already: nothing is trained twice
    patch.undo()
    return out


def test_transformers_loads_what_was_saved_and_agrees_with_us(family: Path) -> None:
    ours = zoo.load(str(family), torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(family / "target", dtype=torch.float32).eval()
    ids = ours.encode("the old king")
    assert ids[1:] == AutoTokenizer.from_pretrained(family / "tokenizer").encode(
        "the old king", add_special_tokens=False
    )
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0]
    assert torch.allclose(ours.target.forward(ids, ours.target.new_cache(64), rows=len(ids)), expected, atol=1e-4)


def test_provenance_tells_where_it_came_from(family: Path) -> None:
    record = json.loads((family / "provenance.json").read_text())
    assert set(record) == {"tokenizer", "target", "draft_model", "medusa", "eagle3", "samples"}
    assert record["target"]["tokens_seen"] >= 6000
    assert record["target"]["losses"] == [] or record["target"]["losses"][0][0] > 0
    assert set(record["target"]["bits_per_byte_held_out"]) == set(corpus.DOMAINS)
    assert record["target"]["exit_layers"] == [2, 3]
    assert len(record["tokenizer"]["stories_sha256"]) == 3
    assert all(len(texts) == 3 for texts in record["samples"]["samples"].values())


def test_what_was_trained_drafts(family: Path) -> None:
    """Every method of the folder, on the model that it was trained for: the text is plain decoding's."""
    ours = zoo.load(str(family), torch.float32)
    params, texts = SamplingParams(max_tokens=24, ignore_end=True), {}
    for name in ours.drafters:
        target, drafter = ours.lane(name, 48)
        events = list(generate(Task(target, ours.encode("the old king"), params, drafter, k=4)))
        assert not any(isinstance(event, Failed) for event in events)
        texts[name] = [token for event in events if isinstance(event, Committed) for token in event.tokens]
        if name not in ("none", "prompt_lookup"):
            assert any(isinstance(event, Drafted) for event in events)
    assert {"medusa", "medusa:tree", "eagle3", "eagle3:tree", "early_exit"} < set(texts)
    assert all(text == texts["none"] for text in texts.values())


def test_no_shard_is_above_nine_megabytes(family: Path) -> None:
    assert all(path.stat().st_size < 9_000_000 for path in family.rglob("*.safetensors"))


def test_training_lowers_the_loss_and_resumes_where_it_stopped(tmp_path: Path) -> None:
    class Stream:
        def __init__(self) -> None:
            self.calls = 0

        def batch(self, rows: int, length: int) -> tuple[torch.Tensor]:
            self.calls += 1
            return ((torch.arange(length + 1)[None] + torch.arange(rows)[:, None]) % 7,)

        def state(self) -> dict[str, int]:
            return {"calls": self.calls}

        def restore(self, state: dict[str, int]) -> None:
            self.calls = state["calls"]

    shape = {"num_hidden_layers": 6, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 1}
    model, stream = target.build(shape, 0), Stream()
    loss = target.TargetLoss(model, compiled=False)
    before = loss(stream.batch(4, 32), 0).item()

    def fit(tokens: int) -> loop.Result:
        return loop.fit(
            model, loss, stream, loop.Budget(tokens), tmp_path / "check.pt", batch_tokens=256, micro_rows=4, length=32,
            long_length=64,
        )  # fmt: skip

    first = fit(10_000)
    assert loss(stream.batch(4, 32), 0).item() < before / 4
    second = fit(12_000)
    assert second.tokens >= 12_000 > first.tokens >= 10_000
    assert second.seconds > first.seconds


def test_blocked_paragraphs_are_left_out(books: Path) -> None:
    texts = corpus.stories(books)
    assert len(texts) > 3
    assert not any("idiot" in text for text in texts)


def test_the_filter_finds_words_and_not_parts_of_words() -> None:
    blocked = corpus.blocked_words()
    assert blocked.search("What an Idiot!") and blocked.search("IDIOTS")
    assert not blocked.search("a grape in japan, drapes")


def test_facts_are_true() -> None:
    text = "\n".join(facts.documents(200, seed=0))
    for line in text.splitlines():
        words = line.rstrip(".").split()
        if line.startswith("A:") and "plus" in words and "is" in words:
            assert int(words[1]) + int(words[3]) == int(words[5])
        if line.startswith("A:") and "times" in words:
            assert int(words[1]) * int(words[3]) == int(words[5])


def test_facts_of_one_seed_are_the_same() -> None:
    assert facts.documents(3, seed=4) == facts.documents(3, seed=4) != facts.documents(3, seed=5)


def test_an_empty_folder_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"point --corpus at a folder"):
        corpus.stories(tmp_path)
