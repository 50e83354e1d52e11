"""Checkpoints written here in the layouts that others publish, against naive second implementations."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import models, pre_tokenizers, processors, Tokenizer

from specdec.drafters.eagle3 import Eagle3Head
from specdec.events import Failed
from specdec.families import zoo
from specdec.families.published import head_format, load_drafter
from specdec.figures import machine
from specdec.loop import generate
from specdec.models import native
from specdec.models.transformer import Transformer
from specdec.proof.enumeration import completed, output_distribution, total_variation
from specdec.proof.toys import run_loop
from specdec.task import Task
from specdec.types import SamplingParams
from tests.drafters.naiveheads import Weights
from tests.families import toypairs
from tests.tokens import ids, only
from tests.toyheads import (
    decoder,
    DRAFT_IDS,
    eagle3_config,
    eagle3_weights,
    medusa_weights,
    MODEL,
    shape,
    TARGET,
    TEXT,
    WIDTH,
)


def words(count: int, **changes: str) -> Tokenizer:
    """Token i is the word "wi", but for `changes` ("w3" to "x"); ids 0 and 1 begin and end texts."""
    vocabulary = {changes.get(f"w{i}", f"w{i}"): i for i in range(count)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w2"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([word for word, i in vocabulary.items() if i < 2])
    tokenizer.post_processor = processors.TemplateProcessing("w0 $A", special_tokens=[("w0", 0)])
    return tokenizer


def written(folder: Path, weights: Weights, config: dict[str, Any] | None) -> Path:
    folder.mkdir(parents=True)
    in_shards(folder, weights)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def in_shards(folder: Path, weights: Weights) -> None:
    names, files = sorted(weights), [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for i, file in enumerate(files):
        save_file({name: weights[name].clone() for name in names[i::2]}, folder / file)
    table = {name: files[i % 2] for i, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))


def model_folder(folder: Path, model: Any, tokenizer: Tokenizer) -> Path:
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def renamed(weights: Weights, layer: str) -> Weights:
    """`midlayer` under another name."""
    return {name.replace("midlayer.", layer): tensor for name, tensor in weights.items()}


def speculators(before_residual: bool, **facts: Any) -> dict[str, Any]:
    layer = {k: v for k, v in eagle3_config().items() if k not in ("eagle_config", "draft_vocab_size")}
    return {
        "architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "transformer_layer_config": layer,
        "draft_vocab_size": len(DRAFT_IDS), "norm_before_residual": before_residual, **facts,
    }  # fmt: skip


def plain_config(**facts: Any) -> dict[str, Any]:
    config = {k: v for k, v in eagle3_config().items() if k != "eagle_config"}
    return {**config, "architectures": ["LlamaForCausalLMEagle3"], **facts}


def test_layers_are_those_that_a_config_names_and_copies_of_the_target_are_left_out(tmp_path) -> None:
    """`test_published_logits.py` holds the numbers of each layout."""
    copies = {"verifier_lm_head.weight": torch.ones(23, WIDTH), "verifier_norm.weight": torch.ones(WIDTH)}
    named = speculators(True, eagle_aux_hidden_state_layer_ids=[1, 3, 5])
    plain = plain_config(eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 3, 4], "use_aux_hidden_state": True})
    stored = {**renamed(eagle3_weights(), "layers.0."), **copies}
    for config, weights, taps in ((plain, eagle3_weights(), (1, 4, 5)), (named, stored, (1, 3, 5))):
        head = load_drafter(written(tmp_path / str(taps), weights, config), TARGET, words(23))
        assert isinstance(head, Eagle3Head) and head.taps == taps


def without(weights: Weights, *names: str) -> Weights:
    return {name: tensor for name, tensor in weights.items() if name not in names}


ONES = torch.ones(4, 4)
REFUSED: dict[str, tuple[Weights, dict[str, Any] | None, str]] = {
    "narrower target": (
        {**eagle3_weights(), "fc.weight": torch.ones(WIDTH, 3 * 48)}, plain_config(),
        r"fc\.weight has the shape \[32, 144\]",
    ),
    "no map": (without(eagle3_weights(), "d2t"), plain_config(), r"lm_head\.weight has the shape"),
    "two layers": (
        {**renamed(eagle3_weights(), "layers.0."), "layers.1.mlp.up_proj.weight": ONES}, speculators(False),
        r"holds layers\.1\.mlp\.up_proj\.weight",
    ),
    "EAGLE-3.1 without its norms": (
        eagle3_weights(), plain_config(fc_norm=True), r"config.json says fc_norm, but the checkpoint lacks fc_norm\.0",
    ),
    "EAGLE-2": (
        {"fc.weight": torch.ones(WIDTH, 2 * WIDTH), "layers.0.self_attn.q_proj.weight": ONES}, plain_config(),
        r"fc\.weight has the shape",
    ),
    "Medusa 2": (
        {f"medusa_head.{k}": w for k, w in medusa_weights().items()} | MODEL.state_dict(), MODEL.config.to_dict(),
        "holds ",
    ),
    "a stated type that the tensors contradict": (
        eagle3_weights(), {**plain_config(), "speculators_model_type": "dflash"}, "config.json lacks block_size",
    ),
    "nothing around the weights": (eagle3_weights(), None, r"there is no config\.json"),
}  # fmt: skip
LAYER = {"layers.0.input_layernorm.weight": torch.ones(4), "layers.0.self_attn.q_proj.weight": ONES}
# what there is no loader for: tensors, config.json, the name, what runs it
IMITATIONS: dict[str, tuple[Weights, dict[str, Any] | None, str]] = {
    "EAGLE-1": ({"fc.weight": ONES, **LAYER}, {"model_type": "eagle"}, "EAGLE-1 or EAGLE-2.*vLLM and SGLang run it"),
    "EAGLE-1 by tensors": ({"fc.weight": ONES, "fc.bias": torch.ones(4), **LAYER}, MODEL.config.to_dict(), "EAGLE-1"),
    "P-EAGLE": ({**eagle3_weights(), "mask_hidden": torch.ones(1, 1, 96)}, MODEL.config.to_dict(), "P-EAGLE.*vLLM"),
    "Hydra": ({"hydra_head.0.0.linear.weight": ONES}, {"hydra_num_heads": 4}, "Hydra.*github.com/zankner/Hydra"),
    "MLP speculator": (
        {"speculator.emb.0.weight": ONES}, {"model_type": "mlp_speculator"}, "an MLP speculator.*vLLM ran it before",
    ),
    "DFlash 2": ({"fc.weight": ONES}, {"architectures": ["DFlash2DraftModel"], "model_type": "qwen3"}, "DFlash 2"),
    "Qwen3-Next": ({"mtp.fc.weight": ONES, "mtp.norm.weight": ONES}, MODEL.config.to_dict(), "Qwen3-Next's MTP layers"),
    "DeepSeek": (
        {"model.layers.61.eh_proj.weight": ONES}, {"model_type": "deepseek_v3"}, "DeepSeek's MTP layers inside a model",
    ),
    "MiMo": ({"model.mtp_layers.0.input_proj.weight": ONES}, {"model_type": "mimo"}, "MiMo's MTP layers"),
    "ReDrafter": ({"drafter.rnn_u.weight": ONES}, None, "ReDrafter.*TensorRT-LLM runs it"),
    "Domino": ({"fc.weight": ONES}, {"architectures": ["DominoDraftModel"]}, "Domino.*SpecForge runs it"),
}  # fmt: skip


@pytest.mark.parametrize("what", IMITATIONS)
def test_other_formats_are_refused_by_name_with_what_runs_them(what: str, tmp_path) -> None:
    weights, config, reason = IMITATIONS[what]
    with pytest.raises(ValueError, match=f"this is {reason}"):
        load_drafter(written(tmp_path / "part", weights, config), TARGET, words(23))


def test_a_model_with_a_part_that_drafts_is_a_draft_model() -> None:
    assert head_format({"model_type": "qwen3_5"}, [*MODEL.state_dict(), "mtp.fc.weight"]) == ""


@pytest.mark.parametrize("what", REFUSED)
def test_what_fits_no_drafter_is_refused_with_the_reason(what: str, tmp_path) -> None:
    weights, config, reason = REFUSED[what]
    folder = written(tmp_path / "part", weights, config)
    words(23).save(str(folder / "tokenizer.json"))
    with pytest.raises(ValueError, match=reason) as refusal:
        load_drafter(folder, TARGET, words(23))
    is_head = bool(head_format(config or {}, weights))
    assert ("`specdec doctor`" in str(refusal.value)) == is_head


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (words(23, w5="x"), "id 5 is 'w5' for the target and 'x' for the draft model.* of the target's own family"),
        (words(20), "id 20 is 'w20' for the target and ''"),
    ],
)
def test_a_draft_model_with_another_tokenizer_is_refused(theirs: Tokenizer, reason: str, tmp_path) -> None:
    with pytest.raises(ValueError, match=reason):
        load_drafter(model_folder(tmp_path / "draft", MODEL, theirs), TARGET, words(23))


def test_a_pickle_is_refused(tmp_path) -> None:
    torch.save(medusa_weights(), tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ValueError, match="pickles are not read"):
        load_drafter(tmp_path, TARGET, words(23))


@pytest.mark.parametrize(("target_size", "draft_size"), [(5, 7), (7, 5), (3, 4)])
def test_padded_vocabularies_keep_the_targets_distribution(target_size: int, draft_size: int, tmp_path) -> None:
    model = decoder(shape(target_size), seed=5)
    family = zoo.load_pair(
        model_folder(tmp_path / "target", model, words(3)),
        model_folder(tmp_path / "draft", decoder(shape(draft_size), seed=6), words(3)),
        dtype=torch.float32,
    )
    params = SamplingParams(1.0, max_tokens=3, ignore_end=True)

    def fresh() -> Task:
        target, drafter = family.new_drafter("draft_model", 8)
        return Task(target, [0], params, drafter, k=2, details=False)

    distribution, _ = output_distribution(run_loop(fresh))

    def row(text: tuple[int, ...]) -> list[float]:
        with torch.no_grad():
            return model(torch.tensor([[0, *text]])).logits[0, -1, :3].softmax(-1).tolist()

    assert total_variation(distribution, completed({(): 1.0}, 3, row)) < 1e-5


def greedy(family: zoo.Family, name: str, text: list[int] = TEXT) -> list[int]:
    view, drafter = family.new_drafter(name, 64)
    events = list(generate(Task(view, text, SamplingParams(0.0, max_tokens=30, ignore_end=True), drafter, k=3)))
    assert not only(events, Failed)
    return ids(events)


def test_a_pair_drafts_in_every_way_and_keeps_the_text(tmp_path) -> None:
    """Of a padded target whose padding its logits prefer, and a drafter of every kind for it."""
    big = decoder(shape(31, tie_word_embeddings=False))
    big.config.exit_layers = [2]
    big.config.eos_token_id = big.generation_config.eos_token_id = [1, 30]
    with torch.no_grad():
        big.lm_head.weight[23:] = 3 * big.lm_head.weight[:8]
    target = model_folder(tmp_path / "target", big, words(23))
    draft = model_folder(tmp_path / "draft", decoder(shape(27), seed=6), words(23))
    eagle3 = written(tmp_path / "eagle", eagle3_weights(), plain_config())
    medusa = written(tmp_path / "medusa", medusa_weights(), {})
    family = zoo.load_pair(target, draft, eagle3, medusa, draft, dtype=torch.float32)
    assert list(family.drafters) == [
        "prompt_lookup", "suffix", "none", "early_exit", "draft_model", "eagle3", "eagle3:tree", "medusa",
        "medusa:tree", "draft_model:draft", "quantised",
    ]  # fmt: skip
    assert (family.prefix, family.end_tokens, family.target.vocabulary) == ((0,), {1, 30}, 23)
    assert family.describe()["draft_model"]["layers"] == len(TARGET.layers)
    plain = Transformer.load(target)
    text = list(TEXT)
    for _ in range(30):
        text.append(int(plain.forward(text, plain.new_cache(64))[0, :23].argmax()))
    for name in family.drafters:
        assert greedy(family, name) == text[len(TEXT) :], name
    uncut = [int(plain.forward(text[:n], plain.new_cache(64))[0].argmax()) for n in range(len(TEXT), len(text))]
    assert max(uncut) >= 23  # without the cut it would have said what is no token


@pytest.mark.skipif(native.library() is None, reason="the layers in C++ cannot be had")
def test_a_large_pair_has_its_bits_in_the_layers_in_cpp(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(zoo, "SMALL", 0)
    target, draft = toypairs.pair_into(tmp_path)
    for multiplies in (True, False):
        monkeypatch.setattr(zoo, "multiplies_bfloat16", lambda device, multiplies=multiplies: multiplies)
        family = zoo.load_pair(target, draft)
        for model in (family.target, *family.drafts.values()):
            assert isinstance(model, Transformer) and model.native is not None
            assert (model.dtype, model.stored) == (torch.float32, torch.bfloat16)
        assert family.precision == "bfloat16"
        assert greedy(family, "none") == greedy(family, "draft_model")


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float32], ids=str)
def test_a_weight_needs_room_by_the_precision_of_the_run_not_of_the_file(stored: Any, tmp_path, monkeypatch) -> None:
    weights = {"a": torch.zeros(1000, 1000, dtype=stored), "b": torch.zeros((), dtype=stored)}
    save_file(weights, tmp_path / "model.safetensors")
    for dtype, needed in ((torch.float32, 5_000_000), (torch.bfloat16, 2_500_000)):
        monkeypatch.setattr(machine, "free_memory", Mock(side_effect=[needed + 999, needed - 999]))
        zoo.check_memory([("m", tmp_path)], dtype, "cpu")
        with pytest.raises(ValueError, match="m needs about"):
            zoo.check_memory([("m", tmp_path)], dtype, "cpu")
