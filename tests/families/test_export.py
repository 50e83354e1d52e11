"""Exported folders: whoever reads them computes what our engine computes."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from specdec import cli
from specdec.events import Drafted
from specdec.families.export import export, write
from specdec.families.published import load_head
from specdec.families.zoo import Family, load, load_pair
from specdec.loop import generate
from specdec.messages import Refused
from specdec.models.checkpoint import read_weights
from specdec.models.reduced import ReducedDraft, WRITES
from specdec.models.transformer import Transformer
from specdec.paths import FAMILY
from specdec.task import Task
from specdec.training.draft_model import DraftModel
from specdec.training.eagle3 import Eagle3
from specdec.types import SamplingParams
from tests.families import togguf

IDS = [0, 411, 17, 3000, 262, 4095, 8]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("export") / "models"
    export("embedded", out)
    return out


@pytest.mark.parametrize("name", ["target", "draft_model"])
def test_transformers_reads_the_folders_and_computes_our_logits(folders, name: str) -> None:
    theirs = AutoModelForCausalLM.from_pretrained(folders / name, dtype=torch.float32)
    ours = Transformer.load(FAMILY / name, torch.float32, "cpu")
    with torch.inference_mode():
        expected = theirs(torch.tensor([IDS])).logits[0]
    found = ours.forward(IDS, ours.new_cache(len(IDS)), rows=len(IDS)).float()
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)
    words = AutoTokenizer.from_pretrained(folders / name)
    for text in ("In 1984, the old keeper said:\n    return x  # 30 km", "naïve 日本 🙂"):
        assert words.encode(text) == load().tokenizer.encode(text, add_special_tokens=False).ids


def test_our_own_engine_reads_a_pair_and_vllms_head_of_eagle3(folders) -> None:
    family = load_pair(folders / "target", folders / "draft_model_story", folders / "eagle3", dtype=torch.float32)
    assert {"draft_model", "eagle3"} <= family.drafters.keys()
    said, key = json.loads((folders / "eagle3" / "config.json").read_text()), "eagle_aux_hidden_state_layer_ids"
    assert said["architectures"] == ["LlamaForCausalLMEagle3"]
    assert family.drafters["eagle3"].part.taps == tuple(said[key]) == load().drafters["eagle3"].part.taps
    assert [tap - 1 for tap in said[key]] == said["eagle_config"][key]  # SGLang counts a layer's outputs


def test_medusa_heads_have_the_names_and_the_formula_of_vllm(folders) -> None:
    """Its class computes x + SiLU(W x + b) by `blocks.HEAD.layers.BLOCK`, then `lm_heads.HEAD`."""
    said = json.loads((folders / "medusa" / "config.json").read_text())
    weights = load_file(folders / "medusa" / "model.safetensors")
    target = load().target
    medusa = load_head(FAMILY / "medusa", read_weights(FAMILY / "medusa"), target, None)
    state = torch.randn(1, target.width, generator=torch.Generator().manual_seed(0))
    for head, expected in enumerate(medusa.logits(state, said["num_heads"])):
        x = target.normed(state)
        for block in range(said["num_hidden_layers"]):
            layer = f"blocks.{head}.layers.{block}"
            x = x + torch.nn.functional.silu(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
        torch.testing.assert_close(expected, (x @ weights[f"lm_heads.{head}.weight"].T)[0], atol=1e-3, rtol=1e-3)


def test_every_model_has_the_tokenizer_beside_it_and_nothing_is_written_over(tmp_path, capsys) -> None:
    (family := tmp_path / "family").mkdir()
    for name in ("target", "tokenizer", "draft_model"):
        (family / name).symlink_to(FAMILY / name)
    command = ["export", "--target", str(family), "--out", str(tmp_path / "out")]
    assert cli.main(command) == 0
    names = {Path(line).name for line in capsys.readouterr().out.split()}
    assert names == {"target", "draft_model"} and (tmp_path / "out/draft_model/tokenizer.json").is_file()
    assert cli.main(command) == 2
    assert re.fullmatch(r"specdec: \S+ is there already; name another folder.*\n", capsys.readouterr().err)
    assert cli.main(["export", "--out", str(tmp_path / "new"), "--target", str(tmp_path)]) == 2
    assert "there is no config.json" in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_heads_that_are_refused_leave_nothing_behind(tmp_path) -> None:
    """Otherwise the second try would say that the target is there already."""
    (heads := tmp_path / "family" / "medusa").mkdir(parents=True)
    for name in ("target", "tokenizer"):
        (tmp_path / "family" / name).symlink_to(FAMILY / name)
    (heads / "config.json").write_text((FAMILY / "medusa" / "config.json").read_text())
    blocks = {name: tensor for name, tensor in read_weights(FAMILY / "medusa").items() if ".linear." in name}
    save_file(blocks, heads / "model.safetensors")
    with pytest.raises(Refused, match="share the target's output matrix"):
        export(str(tmp_path / "family"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def drafted(family: Family, name: str, prompt: str) -> list[tuple[int, ...]]:
    view, drafter = family.new_drafter(name, 100)
    params = SamplingParams(max_tokens=40, ignore_end=True)
    events = generate(Task(view, family.encode(prompt), params, drafter, k=3))
    return [event.tokens for event in events if isinstance(event, Drafted)]


def test_drafters_of_a_gguf_file_become_whole_and_draft_as_before(tmp_path) -> None:
    gguf, template = tmp_path / "target.gguf", "{{ bos_token }}[INST] {{ messages[0].content }} [/INST]"
    togguf.write(gguf, "llama", "Q8_0", tokenizer__chat_template=template)
    target = load_pair(gguf, dtype=torch.float32).target
    ids = torch.arange(5, 250, 3)
    torch.manual_seed(0)
    for name, draft in (("draft", DraftModel(target, ids, 64, 2)), ("head", Eagle3(target, ids))):
        weights = {key: tensor.detach().clone() for key, tensor in draft.weights().items()}
        if isinstance(draft, Eagle3):  # as the package's own heads are stored
            del weights["lm_head.weight"], weights["t2d"]
            weights[WRITES] = (draft.writes.T * draft.rows_scale).detach().clone()
        write(tmp_path / name, draft.config(target.vocabulary, 128), weights)
    drafts, out = [str(tmp_path / "draft"), str(tmp_path / "head")], tmp_path / "out"
    assert cli.main(["export", "--out", str(out), "--target", str(gguf), *(f"--draft={one}" for one in drafts)]) == 0

    before = load_pair(gguf, *drafts, dtype=torch.float32)
    after = load_pair(out / "target", out / "draft", out / "head", dtype=torch.float32)
    assert after.encode("Tom went home") == before.encode("Tom went home") and after.chat == before.chat
    for name in ("draft_model", "eagle3"):
        texts = [drafted(family, name, "Tom went home") for family in (before, after)]
        assert texts[0] == texts[1] and len(texts[0]) > 5
    theirs, assistant = (AutoModelForCausalLM.from_pretrained(out / name) for name in ("target", "draft"))
    tokens = torch.tensor([AutoTokenizer.from_pretrained(out / "draft")("Tom went home")["input_ids"]])
    with torch.inference_mode():
        probs = assistant(tokens).logits[0].softmax(-1)
        alone = theirs.generate(tokens, max_new_tokens=20, do_sample=False)
        assisted = theirs.generate(tokens, assistant_model=assistant, max_new_tokens=20, do_sample=False)
    assert float(probs[:, ids].sum(-1).min()) > 1 - 1e-6 and alone.tolist() == assisted.tolist()
    draft, read = before.drafts["draft_model"], tokens[0].tolist()
    assert isinstance(draft, ReducedDraft)
    logits = draft.forward(read, draft.new_cache(40), rows=len(read))
    torch.testing.assert_close(probs[:, ids], logits.float().softmax(-1), atol=1e-5, rtol=1e-3)
