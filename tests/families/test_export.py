"""Exported folders: whoever reads them computes what our engine computes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specdec import cli
from specdec.families.export import export
from specdec.families.published import load_head
from specdec.families.zoo import EMBEDDED, load, load_pair
from specdec.models.checkpoint import read_weights
from specdec.models.transformer import Transformer

IDS = [0, 411, 17, 3000, 262, 4095, 8]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "models"
    export("embedded", out)
    return out


@pytest.mark.parametrize("name", ["target", "draft_model"])
def test_transformers_reads_the_folders_and_computes_our_logits(folders: Path, name: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs = AutoModelForCausalLM.from_pretrained(folders / name, dtype=torch.float32)
    ours = Transformer.load(EMBEDDED / name, torch.float32, "cpu")
    with torch.inference_mode():
        expected = theirs(torch.tensor([IDS])).logits[0]
    found = ours.forward(IDS, ours.new_cache(len(IDS)), rows=len(IDS)).float()
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)
    words = AutoTokenizer.from_pretrained(folders / name)
    for text in ("In 1984, the old keeper said:\n    return x  # 30 km", "naïve 日本 🙂"):
        assert words.encode(text) == load().tokenizer.encode(text, add_special_tokens=False).ids


def test_our_own_engine_reads_a_pair_and_vllms_head_of_eagle3(folders: Path) -> None:
    family = load_pair(folders / "target", folders / "draft_model_story", folders / "eagle3", dtype=torch.float32)
    assert {"draft_model", "eagle3"} <= family.drafters.keys()
    said = json.loads((folders / "eagle3" / "config.json").read_text())
    assert said["architectures"] == ["LlamaForCausalLMEagle3"]
    assert family.drafters["eagle3"].part.taps == tuple(said["eagle_aux_hidden_state_layer_ids"])


def test_medusa_heads_have_the_names_and_the_formula_of_vllm(folders: Path) -> None:
    """Its class computes x + SiLU(W x + b) by `blocks.HEAD.layers.BLOCK`, then `lm_heads.HEAD`."""
    said = json.loads((folders / "medusa" / "config.json").read_text())
    weights = load_file(folders / "medusa" / "model.safetensors")
    target = load().target
    medusa = load_head(EMBEDDED / "medusa", read_weights(EMBEDDED / "medusa"), target, None)
    state = torch.randn(1, target.width, generator=torch.Generator().manual_seed(0))
    for head, expected in enumerate(medusa.logits(state, said["num_heads"])):
        x = target.normed(state)
        for block in range(said["num_hidden_layers"]):
            layer = f"blocks.{head}.layers.{block}"
            x = x + torch.nn.functional.silu(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
        torch.testing.assert_close(expected, (x @ weights[f"lm_heads.{head}.weight"].T)[0], atol=1e-3, rtol=1e-3)


def test_every_model_has_the_tokenizer_beside_it_and_nothing_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (family := tmp_path / "family").mkdir()
    for name in ("target", "tokenizer", "draft_model"):
        (family / name).symlink_to(EMBEDDED / name)
    command = ["export", "--family", str(family), "--out", str(tmp_path / "out")]
    assert cli.main(command) == 0
    names = {Path(line).name for line in capsys.readouterr().out.split()}
    assert names == {"target", "draft_model"} and (tmp_path / "out/draft_model/tokenizer.json").is_file()
    assert cli.main(command) == 2
    assert re.fullmatch(r"specdec: \S+ is there already; name another folder.*\n", capsys.readouterr().err)
    assert cli.main(["export", "--out", str(tmp_path / "new"), "--family", str(tmp_path)]) == 2
    assert "is no family" in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_heads_that_are_refused_leave_nothing_behind(tmp_path: Path) -> None:
    """Otherwise the second try would say that the target is there already."""
    (heads := tmp_path / "family" / "medusa").mkdir(parents=True)
    for name in ("target", "tokenizer"):
        (tmp_path / "family" / name).symlink_to(EMBEDDED / name)
    (heads / "config.json").write_text((EMBEDDED / "medusa" / "config.json").read_text())
    blocks = {name: tensor for name, tensor in read_weights(EMBEDDED / "medusa").items() if ".linear." in name}
    save_file(blocks, heads / "model.safetensors")
    with pytest.raises(ValueError, match="share the target's output matrix"):
        export(str(tmp_path / "family"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
