"""Training, small: every stage runs, resumes, and leaves what transformers and we can load."""

from __future__ import annotations

import json
import random
import shutil
import sysconfig
from functools import partial
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specdec.engine import generate, Task
from specdec.events import Committed, Drafted, Failed
from specdec.families import zoo
from specdec.types import SamplingParams
from tools.train import __main__ as train
from tools.train import corpus, data, draft, eagle3, facts, lessons, loop, report, target

WORDS = "the a boat sea king old young went came said saw and but then home night morning".split()


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("books"), random.Random(0)
    for book in range(3):
        paragraphs = [" ".join(rng.choices(WORDS, k=60)).capitalize() + "." for _ in range(60)]
        paragraphs.insert(4, "This paragraph speaks of an idiot and must go.")
        (folder / f"book{book}.txt").write_text("\n\n".join(paragraphs))
    return folder


def arguments(stage: str, books: Path, out: Path) -> list[str]:
    return [
        stage, "--corpus", str(books), "--out", str(out), "--tokens", "4000", "--draft-tokens", "1500",
        "--own-tokens", "512", "--lesson-tokens", "2048", "--widths", "32", "--batch-tokens", "512",
        "--length", "64", "--stories", "4", "--medusa-tokens", "1500", "--eagle3-tokens", "1500",
        "--block-tokens", "1500", "--mtp-tokens", "1500",
        "--tuned-tokens", "1500", "--tuned-draft-tokens", "1500", "--no-compile", "--device", "cpu",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def family(books: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("family")
    patch = pytest.MonkeyPatch()
    # The standard library and the questions stay real, but a few of them are enough here; and so are a few words.
    library, questions = Path(sysconfig.get_path("stdlib")), facts.documents(60, 0)
    patch.setattr(sysconfig, "get_path", lambda _: str(library / "json"))
    patch.setattr(facts, "documents", lambda *_: questions)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 1}
    patch.setattr(target, "SHAPE", {"num_hidden_layers": 6, **small})
    patch.setattr(target, "STEM", {"num_hidden_layers": 3, **small})
    for module in (data, target):
        patch.setattr(module, "VOCABULARY", 512)
    patch.setattr(eagle3, "VOCABULARY", 448)
    patch.setattr(loop, "TELL_EVERY_STEPS", 1)
    patch.setattr(lessons, "LENGTH", 64)
    patch.setattr(data, "bits_per_byte", partial(data.bits_per_byte, length=384))
    patch.setattr(corpus, "rewriting", partial(corpus.rewriting, count=40))
    patch.setattr(report, "SAMPLE_TOKENS", 8)
    patch.setattr(report, "STORY_TOKENS", 8)
    assert train.main(arguments("all", books, out)) == 0
    trained = weights(out)
    for stage in ("all", "early_exit"):  # everything is there already: nothing is trained twice
        assert train.main(arguments(stage, books, out)) == 0
    assert weights(out) == trained
    patch.undo()
    return out


def weights(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.safetensors")}


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
    controls = {"draft_model_scratch", "draft_model_story", "draft_model_large"}
    tuned = {"tuned/target", "tuned/draft_model"}
    heads = {"medusa", "eagle3", "block", "mtp"}
    assert set(record) == {"tokenizer", "target", "draft_model", "samples"} | heads | controls | tuned
    assert record["target"]["tokens_seen"] >= 4000
    for name in set(record) - {"tokenizer", "samples"}:
        tokens, losses = zip(*record[name]["losses"], strict=True)
        assert tokens[0] > 0 and tokens[-1] <= record[name]["tokens_seen"] and min(losses) > 0.0
    assert set(record["target"]["bits_per_byte_held_out"]) == set(corpus.DOMAINS)
    assert record["target"]["exit_layers"] == [2, 3]
    assert len(record["tokenizer"]["stories_sha256"]) == 3
    assert all(len(texts) == 3 for texts in record["samples"]["samples"].values())
    for path in family.rglob("config.json"):
        assert str(family) not in path.read_text()


def test_the_controls_differ_from_the_draft_in_one_thing_each(family: Path) -> None:
    record = json.loads((family / "provenance.json").read_text())
    plain, scratch, story, large = (record[f"draft_model{name}"] for name in ("", "_scratch", "_story", "_large"))
    assert plain["shape"] == scratch["shape"] == story["shape"] != large["shape"]
    assert plain["parameters"] == scratch["parameters"] == story["parameters"]
    assert 2 <= large["parameters"] / plain["parameters"] <= 3
    assert "distilled_from" not in scratch and scratch["mixture"] == data.MIXTURE
    assert {one["distilled_from"] for one in (plain, story, large)} == {"target"}
    assert story["mixture"] == {"story": 1.0} and large["mixture"] == plain["mixture"] == draft.MIXTURE
    assert all(one["tokens_seen"] >= 1500 for one in (plain, scratch, story, large))


@pytest.mark.parametrize("width", [64, 128])
def test_twice_the_width_is_two_to_three_times_the_size(width: int) -> None:
    def size(width: int) -> int:
        return sum(p.numel() for p in target.build(draft.shape(width), 0).parameters())

    assert 2 <= size(draft.LARGER * width) / size(width) <= 3


@pytest.mark.parametrize("width", [32, 64, 96])
def test_a_student_begins_with_the_words_of_its_teacher(width: int) -> None:
    """However wide it is: words that are alike to the teacher are alike to it."""
    teacher, student = (
        target.build(draft.shape(64), 0),
        target.build(draft.shape(width) | {"num_attention_heads": 1}, 1),
    )
    with torch.no_grad():
        teacher.model.embed_tokens.weight.mul_(10.0)
    draft.inherit(student, teacher)
    theirs, ours = (model.model.embed_tokens.weight.detach().float()[:200] for model in (teacher, student))
    pairs = torch.stack([(theirs @ theirs.T).flatten(), (ours @ ours.T).flatten()])
    assert torch.corrcoef(pairs)[0, 1] > 0.6  # half of the dimensions are lost at 32; by chance it is 0.2


def test_next_tokens_are_learned_without_a_teacher(tmp_path: Path) -> None:
    ids = torch.arange(33)[None] % 7
    student = target.build(draft.shape(64), 0)
    loss = draft.NextTokenLoss(student, compiled=False)
    with torch.no_grad():
        distributions = student(input_ids=ids[:, :-1]).logits.float().log_softmax(-1)
        assert loss((ids,), 0).item() == pytest.approx(-distributions[0, range(32), ids[0, 1:]].mean().item(), rel=1e-3)


def test_one_domain_gives_nothing_of_the_others(family: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(family / "tokenizer")
    texts = {
        name: corpus.Split([word * 200], [word]) for name, word in (("story", "sea "), ("code", "x"), ("facts", "Q"))
    }
    streams = data.TokenStreams(texts, tokenizer, 0)

    def said(source: data.TokenStreams) -> str:
        return "".join(tokenizer.batch_decode(source.batch(64, 16)[0], skip_special_tokens=True))

    assert set(said(streams.only("code"))) == {"x"}
    assert set(said(streams)) == set("sea xQ")
    state = streams.only("code").state()
    first = said(streams.only("code"))
    streams.only("code").restore(state)
    assert said(streams.only("code")) == first


def test_windows_of_a_whole_domain_begin_with_a_document(family: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(family / "tokenizer")
    text = corpus.Split(["sea sand"] * 100, ["sea"])
    streams = data.TokenStreams({"story": text}, tokenizer, 0)
    streams.add("edits", text, whole=True)
    ends = {name: streams.only(name).batch(32, 16)[0][:, 0] == tokenizer.eos_token_id for name in ("story", "edits")}
    assert ends["edits"].all() and not ends["story"].all()


def test_a_tuned_target_is_drafted_for_by_the_old_draft_and_by_its_own(family: Path) -> None:
    general, tuned = zoo.load(str(family), torch.float32), zoo.load(str(family / "tuned"), torch.float32)
    assert list(tuned.drafters) == ["none", "suffix", "prompt_lookup", "draft_model", "draft_model:tuned", "early_exit"]
    assert general.draft is not None and tuned.draft is not None
    assert torch.equal(tuned.draft.embedding, general.draft.embedding)
    assert not torch.equal(tuned.drafts["draft_model:tuned"].embedding, general.draft.embedding)
    assert not torch.equal(tuned.target.embedding, general.target.embedding)
    assert tuned.encode("import os") == general.encode("import os")
    record = json.loads((family / "provenance.json").read_text())
    assert record["tuned/target"]["mixture"] == data.EDITING and record["tuned/target"]["tuned_from"] == "target"
    assert set(record["tuned/target"]["bits_per_byte_held_out"]) == {*corpus.DOMAINS, "edits"}
    assert record["tuned/target"]["shape"] == record["target"]["shape"]
    assert set(record["tuned/draft_model"]["mixture"]) == {"edits", "own"}
    check_texts(tuned)


def test_heads_whose_lessons_are_there_need_no_texts(
    family: Path, books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(family, tmp_path / "family")
    for name in ("medusa", "eagle3", "block", "mtp"):
        shutil.rmtree(tmp_path / "family" / name)
        (tmp_path / "family" / "checkpoints" / f"{name}.pt").unlink()
    monkeypatch.setattr(corpus, "load", lambda *_: pytest.fail("the corpus was read"))
    for name in ("medusa", "eagle3", "block", "mtp"):
        assert train.main(arguments(name, books, tmp_path / "family")) == 0
        assert (tmp_path / "family" / name / "model.safetensors").exists()


def test_what_was_trained_drafts(family: Path) -> None:
    """Every method of the folder, on the model that it was trained for: the text is plain decoding's."""
    ours = zoo.load(str(family), torch.float32)
    assert {"draft_model", "medusa", "medusa:tree", "eagle3", "eagle3:tree", "early_exit"} < set(ours.drafters)
    assert {"block", "mtp"} < set(ours.drafters)
    assert {"draft_model:scratch", "draft_model:story", "draft_model:large"} < set(ours.drafters)
    check_texts(ours)


def check_texts(ours: zoo.Family) -> None:
    params, texts = SamplingParams(max_tokens=24, ignore_end=True), {}
    for name in ours.drafters:
        target, drafter = ours.lane(name, 48)
        assert drafter.name == name
        events = list(generate(Task(target, ours.encode("the old king"), params, drafter, k=4)))
        assert not any(isinstance(event, Failed) for event in events)
        texts[name] = [token for event in events if isinstance(event, Committed) for token in event.tokens]
        if name not in ("none", "prompt_lookup", "suffix"):
            assert any(isinstance(event, Drafted) for event in events)
    assert all(text == texts["none"] for text in texts.values())


def test_no_shard_is_above_nine_megabytes(family: Path) -> None:
    assert all(path.stat().st_size < 9_000_000 for path in family.rglob("*.safetensors"))


def test_training_lowers_the_loss_and_resumes_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "VOCABULARY", 256)

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

    shape = {"num_hidden_layers": 3, "hidden_size": 48, "intermediate_size": 96, "num_attention_heads": 1}
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


@pytest.mark.long
def test_the_whole_standard_library_is_read() -> None:
    texts = corpus.standard_library()
    assert len(texts) > 300 and sum(map(len, texts)) > 5e6
    assert not any(corpus.blocked_words().search(text) for text in texts[::20])


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
