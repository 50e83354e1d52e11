"""The doctor names what was planted in heads that were trained, and finds nothing in those that are right."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from specdec import cli
from specdec.cli.judges import record
from specdec.engine import Engine
from specdec.families import doctor, zoo
from specdec.families.chat import Chat
from specdec.families.doctor import Convention, Examination, Text
from specdec.families.export import write
from specdec.models.checkpoint import read_config, read_weights
from specdec.paths import FAMILY
from tests.shallow import rewrite

Plant = Callable[[dict[str, Any], doctor.Weights], tuple[dict[str, Any], doctor.Weights]]


@pytest.fixture(scope="module")
def family() -> zoo.Family:
    return zoo.load("embedded")


@pytest.fixture(scope="module")
def texts(family) -> list[Text]:
    return list(doctor.own_texts(family, doctor.prompts_of(family)[:3]))


def planted(folder: Path, head: str, plant: Plant) -> Path:
    config, weights = plant(read_config(FAMILY / head), read_weights(FAMILY / head))
    write(folder, config, {name: tensor.clone() for name, tensor in weights.items()})
    return folder


def keys(**changes: Any) -> Plant:
    return lambda config, weights: (config | changes, weights)


def of(head: str, kind: str) -> Convention:
    config, weights = read_config(FAMILY / head), read_weights(FAMILY / head)
    return next(way for way in doctor.conventions(config, weights, zoo.load("embedded")) if way.kind == kind)


def both(config: dict[str, Any], weights: doctor.Weights) -> tuple[dict[str, Any], doctor.Weights]:
    change = of("mtp", "order").tensors
    return config | {"head_dim": 32, "num_attention_heads": 6, "num_key_value_heads": 6}, change(weights)


def bits(as_float16: bool) -> Plant:
    """Matrices of 16 bits beside norms of 32; wrongly, bfloat16 by the name of float16."""

    def stored(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() < 2:
            return tensor
        return tensor.bfloat16().view(torch.float16) if as_float16 else tensor.bfloat16()

    return lambda config, weights: (config, {name: stored(tensor) for name, tensor in weights.items()})


def uneven_norm(config: dict[str, Any], weights: doctor.Weights) -> tuple[dict[str, Any], doctor.Weights]:
    """The embedded layer's own norm has nearly equal weights, so that it hardly matters where it is."""
    norm = weights["shared_head.norm.weight"]
    uneven = norm * (0.6 * torch.randn(len(norm), generator=torch.Generator().manual_seed(0))).exp()
    return config | {"norm_output": True}, weights | {"shared_head.norm.weight": uneven}


FAULTS: list[tuple[str, Plant, set[str]]] = [
    ("mtp", uneven_norm, {"norm_output"}),
    ("eagle3", bits(as_float16=True), {"dtype"}),
    ("eagle3", keys(norm_output=True), {"norm_output"}),
    ("mtp", lambda config, weights: (config, of("mtp", "norms").tensors(weights)), {"norms"}),  # undoes itself
    ("mtp", both, {"attention", "order"}),
    ("block", keys(architectures=["DFlashDraftModel"]), {"sample_from_anchor"}),
]


@pytest.mark.parametrize(("head", "plant", "kinds"), FAULTS, ids=[" ".join((h, *sorted(k))) for h, _, k in FAULTS])
def test_a_planted_fault_is_named(head: str, plant: Plant, kinds: set[str], family, texts, tmp_path) -> None:
    found = Examination(family, planted(tmp_path, head, plant), texts).diagnose()
    assert (found.status, {way.kind for way in found.best.conventions}) == (1, kinds)
    assert found.attempts[0] is found.best


@pytest.mark.parametrize(("head", "plant"), [("medusa", keys()), ("mtp", keys()), ("eagle3", bits(as_float16=False))])
def test_nothing_is_found_in_a_head_that_is_right(head: str, plant: Plant, family, texts, tmp_path) -> None:
    found = Examination(family, planted(tmp_path, head, plant), texts).diagnose()
    assert found.status == 0 and found.best is found.stated


CHATS = {  # what the target writes with it -> whether the head, which was trained without any, is at fault
    Chat("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", trims=False): True,
    Chat("", "<think>\n\n</think>\n\n", trims=False): True,
    Chat("Question: ", "\nAnswer: ", trims=False): False,
}


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: chat.after.split("\n")[0] or "plain")
def test_a_head_of_texts_without_the_template_is_told(chat: Chat, monkeypatch) -> None:
    family = zoo.load("embedded")
    prompts = doctor.prompts_of(family)
    monkeypatch.setattr(family, "chat", chat)
    found = Examination(family, FAMILY / "eagle3", list(doctor.own_texts(family, prompts[:4])), prompts).diagnose()
    kinds = {way.kind for way in found.best.conventions}
    assert (found.status, kinds) == ((1, {"template"}) if CHATS[chat] else (0, set()))
    ways = Examination(family, FAMILY / "mtp", [], prompts).ways
    assert ("<think>" in chat.after) == ("thinking on" in {way.says for way in ways})


def test_a_run_that_breaks_off_is_not_kept(tmp_path, monkeypatch, capsys) -> None:
    engine = Engine(device="cpu")
    monkeypatch.setattr(engine.models.target, "forward", Mock(side_effect=OSError("the cable is out")))
    record(engine, "eagle3", "Tom went home.", tmp_path / "run.jsonl")
    assert "is not kept: the lane speculative broke off: OSError: the cable is out" in capsys.readouterr().out
    assert not (tmp_path / "run.jsonl").exists()


def test_an_untrained_head_is_told_apart(family, texts, tmp_path) -> None:
    def untrained(config: dict[str, Any], weights: doctor.Weights) -> tuple[dict[str, Any], doctor.Weights]:
        torch.manual_seed(0)
        return config, {name: torch.randn_like(w) * w.std() if w.dim() == 2 else w for name, w in weights.items()}

    assert Examination(family, planted(tmp_path, "mtp", untrained), texts).diagnose().status == 2


def test_the_command_mends_a_config(tmp_path, capsys) -> None:
    shutil.copytree(FAMILY / "eagle3", tmp_path / "head")
    rewrite(tmp_path / "head", {"norm_output": True})
    (tmp_path / "prompts.txt").write_text("def main(argv):\n\nThe old man\n")
    command = ["doctor", "--target", "embedded", "--draft", str(tmp_path / "head")]
    assert cli.main([*command, "--prompts", str(tmp_path / "prompts.txt"), "--fix"]) == 1
    out = capsys.readouterr().out
    assert "A convention is wrong." in out and '"norm_output": false' in out
    assert read_config(tmp_path / "head") == read_config(FAMILY / "eagle3") | {"norm_output": False}
    assert cli.main(["doctor", "--target", "embedded", "--draft", "someone/head", "--fix"]) == 2
    assert "download the head, and name its folder" in capsys.readouterr().err
    assert cli.main(["doctor", "--target", "embedded", "--draft", str(FAMILY / "draft_model")]) == 2
    assert "this is a draft model" in capsys.readouterr().err


def test_a_config_is_mended_in_full_or_not_at_all(tmp_path) -> None:
    rewrite(shutil.copytree(FAMILY / "mtp", tmp_path / "head"), {"norm_output": True})
    written = (tmp_path / "head" / "config.json").read_bytes()
    edit, order = Convention("norm_output", "off", {"norm_output": False}), of("mtp", "order")
    assert not doctor.fix(tmp_path / "head", [edit, order])
    assert (tmp_path / "head" / "config.json").read_bytes() == written
    assert doctor.fix(tmp_path / "head", [edit]) and not read_config(tmp_path / "head")["norm_output"]
