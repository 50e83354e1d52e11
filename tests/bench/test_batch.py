"""Many texts decoded at once: every one as alone, and figures that are what their names say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from specdec.families import zoo
from specdec.models.transformer import Transformer
from tools.bench import __main__ as bench
from tools.bench import batch
from tools.bench.options import Options

TEXTS, CONTEXT, TOKENS, DEEPEST = 5, 40, 20, 5


@pytest.fixture(scope="module")
def begun(shallow: str) -> tuple[batch.Pair, batch.Batch]:
    """A pair, and texts that it has begun."""
    family = zoo.load(shallow, torch.float32)
    pair: Any = (family.target, family.draft)
    texts = batch.begin(family, pair, TEXTS, CONTEXT, TOKENS + DEEPEST + 1)
    assert len({tuple(ids) for ids in texts.ids}) == TEXTS
    return pair, texts


def decode(begun: Any, texts: int, cycles: int, k: int) -> batch.Run:
    pair, batched = begun
    return batch.decode(pair, batched.part(0, texts), cycles, k, batch.Run())


def alone(model: Transformer, ids: list[int], tokens: int) -> list[int]:
    """Greedy decoding of one text by the engine's own pass."""
    cache, new = model.new_cache(len(ids) + tokens), []
    pending = ids
    with torch.inference_mode():
        for _ in range(tokens):
            pending = [int(model.forward(pending, cache)[-1].argmax())]
            new += pending
    return new


@pytest.mark.parametrize("k", [0, 1, 3, DEEPEST])
@pytest.mark.parametrize("texts", [1, TEXTS])
def test_each_text_of_a_batch_is_what_it_is_alone(begun: Any, k: int, texts: int) -> None:
    (target, _), batched = begun
    cycles = TOKENS // (k + 1)
    run = decode(begun, texts, cycles, k)
    lengths = [len(new) for new in run.new]
    assert len(run.new) == texts and cycles <= min(lengths) <= max(lengths) <= TOKENS
    for ids, new in zip(batched.ids, run.new, strict=False):
        assert len(ids) == CONTEXT and new == alone(target, ids, len(new))
    assert run.tokens == sum(lengths) == run.accepted + cycles * texts
    assert run.accepted <= run.judged <= k * cycles * texts and (k == 0) is (run.judged == 0)
    if k and texts == TEXTS:  # else nothing is tested but equal lengths
        assert run.accepted > 0 and len(set(lengths)) > 1


def test_a_draft_reads_what_was_kept_of_the_one_before(begun: Any) -> None:
    """With the target as its own draft all is kept, in every cycle."""
    (target, _), batched = begun
    texts = batch.Batch(batched.part(0, TEXTS).ids, batched.target.part(0, TEXTS), batched.target.part(0, TEXTS))
    run = batch.decode((target, target), texts, 4, 4, batch.Run())
    assert run.accepted == run.judged == 4 * 4 * TEXTS


def test_a_points_figures() -> None:
    """Two texts, K = 2: a plain step of 0.1 s; cycles of 2.5 tokens a text, 0.04 s of drafting, a check of 0.15 s."""
    plain = batch.Run([[1] * 10, [2] * 10], cycles=10, seconds=1.25, verify_s=1.0)
    run = batch.Run([[1] * 9, [2] * 6], cycles=3, judged=12, accepted=9, seconds=0.625, draft_s=0.12, verify_s=0.45)
    point = batch.point([(run, plain)], 2, 2)
    assert point["plain_tokens_per_second"] == 16.0 and point["tokens_per_second"] == 24.0
    assert point["measured_speedup"] == 1.5 and point["measured_speedup_interval"] == [1.5, 1.5]
    assert point["plain_step_ms"] == 100.0 and point["verify_cost"] == 1.5 and point["draft_cost"] == 0.2
    assert point["alpha"] == 0.75 and point["tau"] == 2.5
    assert point["accounted_speedup"] == pytest.approx(2.5 / (2 * 0.2 + 1.5), abs=1e-4)


def test_the_suite_measures_every_batch_context_and_depth(
    shallow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BATCHES", (1, 3))
    monkeypatch.setattr(batch, "CONTEXTS", (34, 48))
    path = tmp_path / "batch.json"
    asked = ["--family", shallow, "--tokens", "12", "--repeats", "1", "-k", "2", "3", "--json", str(path)]
    assert bench.main(["--suite", "batch", *asked]) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    points = {(point["context"], point["batch"], point["k"]): point for point in report["points"]}
    assert list(points) == [(context, size, k) for context in (34, 48) for size in (1, 3) for k in (2, 3)]
    for (context, _, k), point in points.items():
        assert point["identical_to_plain"] is True
        alone = points[context, 1, k]  # the same texts, in groups of one
        assert (point["alpha"], point["tau"]) == (alone["alpha"], alone["tau"]) and point["tau"] >= 1.0
        assert all(point[name] > 0.0 for name in ("plain_step_ms", "draft_cost", "verify_cost", "measured_speedup"))
    assert report["machine"]["cores"] and report["provenance"]["measured"]


@pytest.mark.parametrize(("tokens", "k"), [(128, 2), (8, 8), (8, 0)])
def test_what_does_not_fit_is_refused(shallow: str, tokens: int, k: int) -> None:
    with pytest.raises(ValueError, match="-k must lie between 1 and --tokens, and --tokens is at most"):
        batch.measure(zoo.load(shallow, torch.float32), Options(suite="batch", tokens=tokens, k=(k,)))
