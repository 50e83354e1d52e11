"""The target's own copy in fewer bits: what it is made of, where it is offered, what a run keeps of it."""

from pathlib import Path

import pytest
import torch

from specdec import SamplingParams
from specdec.families import zoo
from specdec.families.zoo import Family, load_pair
from specdec.figures import machine
from specdec.figures.stats import LaneStats
from specdec.lanes.race import make_task
from specdec.loop import generate
from specdec.models.grouped import GGUF
from specdec.paths import FAMILY
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import run_loop
from specdec.settings import RunRequest
from specdec.task import Task
from tests.families import togguf
from tests.toyheads import exact_texts


def text(family: Family, drafter: str, k: int, params: SamplingParams) -> LaneStats:
    tokens = family.encode("def add(a, b):\n    ")
    task = make_task(family, tokens, RunRequest(tokens, drafter, k, params), details=False)
    return LaneStats.from_events(list(generate(task)), task.lane)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The embedded target, as others would bring it."""
    place = tmp_path_factory.mktemp("alone")
    for file in (*(FAMILY / "target").iterdir(), *(FAMILY / "tokenizer").iterdir()):
        (place / file.name).symlink_to(file)
    return place


@pytest.fixture(scope="module")
def alone(folder) -> Family:
    return load_pair(folder, dtype=torch.float32)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_nearly_all_of_its_guesses_are_kept_and_greedy_text_is_plain(alone, temperature: float) -> None:
    params = SamplingParams(temperature, max_tokens=64, seed=3, ignore_end=True)
    found = text(alone, "quantised", 5, params)
    assert found.judged > 30 and found.accepted > 0.8 * found.judged
    if not temperature:
        assert found.ids == text(alone, "none", 0, params).ids


def test_every_random_path_of_its_lane_gives_the_targets_distribution(alone) -> None:
    prompt, params = alone.encode("def add(a"), SamplingParams(0.7, top_k=2, max_tokens=3, ignore_end=True)

    def task() -> Task:
        target, drafter = alone.new_drafter("quantised", 64)
        return Task(target, prompt, params, drafter, k=2, details=False)

    distribution, _ = output_distribution(run_loop(task))
    assert total_variation(distribution, exact_texts(alone.target, prompt, params)) < 1e-5


def test_its_matrices_are_rounded_and_its_embeddings_are_the_targets(alone) -> None:
    copy = alone.drafters["quantised"].part
    assert copy.model() is copy.model() and copy.model().stored == torch.int8
    assert copy.model().embedding is alone.target.embedding


@pytest.mark.parametrize(("kind", "stored"), [("Q4_1", GGUF), ("Q5_0", torch.int8)])
def test_a_file_drafts_with_its_own_codes_where_they_are_multiplied(kind: str, stored: torch.dtype, tmp_path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", kind)
    assert load_pair(path, dtype=torch.float32).drafters["quantised"].part.model().stored == stored


def test_without_room_it_is_not_offered(folder, monkeypatch) -> None:
    monkeypatch.setattr(zoo, "check_memory", lambda *_: None)
    monkeypatch.setattr(machine, "free_memory", lambda: 1_000)
    assert "quantised" not in load_pair(folder, dtype=torch.float32).drafters
