"""A draft that reads and writes by the target's own matrices, and knows a part of the vocabulary."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from specdec.drafters.draft_model import DraftModelDrafter
from specdec.families import published, zoo
from specdec.lanes.race import race_lanes
from specdec.lanes.transformers import usual_drafter
from specdec.models.config import Config
from specdec.models.packed import FILE, pack_rows
from specdec.models.reduced import MAP, output_rows, READS, reduced_tensors, ReducedDraft, WRITES
from specdec.models.transformer import Transformer
from specdec.models.view import TargetView
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import run_loop
from specdec.settings import RunRequest
from specdec.task import Task
from specdec.types import SamplingParams
from tests.families.toypairs import model_into
from tests.toyheads import exact_texts, shape, WIDTH


def facts(vocabulary: int) -> dict[str, Any]:
    changes = {"num_hidden_layers": 1, "max_position_embeddings": 512}
    return shape(vocabulary, tie_word_embeddings=False).to_dict() | changes


def weights(target: Transformer, known: list[int]) -> dict[str, Tensor]:
    torch.manual_seed(3)
    shapes = reduced_tensors(Config.parse(facts(target.vocabulary)), target.width)
    made = {name: torch.ones(shape) if len(shape) == 1 else torch.randn(shape) for name, shape in shapes.items()}
    return made | {MAP: (torch.tensor(known) - torch.arange(len(known))).int()}


def written(folder: Path, tensors: dict[str, Tensor], vocabulary: int, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(facts(vocabulary)))
    if packed:
        save_file(pack_rows(tensors), folder / FILE)
    else:
        save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Path:
    return model_into(tmp_path_factory.mktemp("reduced") / "target", 2)


def test_logits_are_those_of_the_two_matrices_and_the_target_s_own(target) -> None:
    model = Transformer.load(target)
    tensors = weights(model, [4, 9, 2])
    draft = ReducedDraft(Config.parse(facts(model.vocabulary)), tensors, model)
    whole = {name: tensor for name, tensor in tensors.items() if name not in (READS, WRITES, MAP)}
    whole["model.embed_tokens.weight"] = model.embedding @ tensors[READS].T
    whole["lm_head.weight"] = model.embedding @ tensors[WRITES].T
    plain = Transformer(Config.parse(facts(model.vocabulary)), whole, torch.float32)
    found, meant = (one.forward([5, 6, 7], one.new_cache(8), rows=3) for one in (draft, plain))
    torch.testing.assert_close(found, meant[:, [4, 9, 2]], rtol=1e-4, atol=1e-4)
    spread = draft.draft_vocabulary.spread(found)
    assert torch.equal(spread[:, [4, 9, 2]], found) and spread.shape == meant.shape and spread.count_nonzero() == 9
    assert draft.parameters == sum(tensor.numel() for tensor in tensors.values()) - 3


def test_a_norm_with_a_weight_of_zero_blanks_one_column_of_the_output_matrix_and_no_more(target) -> None:
    model = Transformer.load(target)
    whole = weights(model, [4, 9, 2])
    whole["model.norm.weight"][1] = 0.0
    whole["model.embed_tokens.weight"] = whole["lm_head.weight"] = torch.randn(model.vocabulary, WIDTH)
    blanked = whole["lm_head.weight"].clone()
    blanked[:, 1] = 0.0
    zeroed = Transformer(Config.parse(facts(model.vocabulary)), whole, torch.float32)
    torch.testing.assert_close(output_rows(zeroed, torch.tensor([9, 4])), blanked[[9, 4]])


@pytest.mark.parametrize("params", [SamplingParams(0.8, top_k=3, max_tokens=3), SamplingParams(0.8, max_tokens=2)])
def test_the_output_is_the_target_s_distribution_over_every_random_path(target, params: SamplingParams) -> None:
    model = Transformer.load(target)
    model.cut_vocabulary(7)
    draft = ReducedDraft(Config.parse(facts(7)), weights(model, [1, 4, 6]), model)

    def task() -> Task:
        return Task(TargetView(model), [0], params, DraftModelDrafter(draft, 8), k=2, details=False)

    distribution, _ = output_distribution(run_loop(task))
    assert total_variation(distribution, exact_texts(model, [0], params)) < 1e-5


def test_a_folder_is_loaded_as_the_target_s_draft_and_greedy_text_stays(target, tmp_path) -> None:
    model = Transformer.load(target)
    folder = written(tmp_path / "draft", weights(model, list(range(3, model.vocabulary, 2))), model.vocabulary)
    family = zoo.load_pair(target, folder)
    assert isinstance(family.drafts["draft_model"], ReducedDraft)
    assert usual_drafter(family) == "prompt_lookup" and usual_drafter(zoo.load_pair(target, target)) == "draft_model"
    with pytest.raises(ValueError, match="the target's embedding and output matrices"):
        race_lanes(family, RunRequest("Tom went home.", "draft_model", 4, SamplingParams(), peer=True))
    ids, texts = family.encode("Tom went home."), []
    for name, k in (("none", 0), ("draft_model", 4)):
        view, drafter = family.new_drafter(name, len(ids) + 24)
        task = Task(view, ids, SamplingParams(max_tokens=16), drafter, k, details=False)
        texts.append(output_distribution(run_loop(lambda task=task: task))[0])
    assert texts[0] == texts[1] and len(next(iter(texts[0]))) == 16


def test_what_fits_no_target_is_refused(target, tmp_path) -> None:
    model = Transformer.load(target)
    good = weights(model, [1, 4, 6])
    load = partial(published.load_drafter, target=model, tokenizer=published.load_tokenizer(target))
    wrong = {
        "lacks writes.weight": {name: good[name] for name in good if name != WRITES},
        "does not name 3 different tokens": good | {MAP: good[MAP] + model.vocabulary},
        "not name 3 different tokens": good | {MAP: torch.tensor([1, 0, 1], dtype=torch.int32)},
        r"reads.weight has the shape \[32, 16\]": good | {READS: good[READS][:, :16].clone()},
        "lacks model.norm.weight": {name: good[name] for name in good if name != "model.norm.weight"},
    }
    for i, (said, tensors) in enumerate(wrong.items()):
        with pytest.raises(ValueError, match=said):
            load(written(tmp_path / str(i), tensors, model.vocabulary, packed=False))
