"""Exported folders and files: whoever reads them computes what our engine computes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from specdec import cli
from specdec.drafters import Eagle3Head, MedusaHeads
from specdec.export import llama_cpp, vllm
from specdec.families.zoo import EMBEDDED, load, load_pair
from specdec.models.checkpoint import read_weights
from specdec.models.config import Config
from specdec.models.transformer import Transformer

IDS = [0, 411, 17, 3000, 262, 4095, 8]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "vllm"
    vllm.export("embedded", out)
    return out


def logits_of(model: Transformer, ids: list[int]) -> torch.Tensor:
    return model.forward(ids, model.new_cache(len(ids)), rows=len(ids)).float()


@pytest.mark.parametrize("name", ["target", "draft_model", "draft_model_large"])
def test_transformers_reads_the_folders_and_computes_our_logits(folders: Path, name: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs = AutoModelForCausalLM.from_pretrained(folders / name, dtype=torch.float32)
    ours = Transformer.load(EMBEDDED / name, torch.float32, "cpu")
    with torch.inference_mode():
        expected = theirs(torch.tensor([IDS])).logits[0]
    torch.testing.assert_close(logits_of(ours, IDS), expected, atol=2e-4, rtol=1e-4)
    words = AutoTokenizer.from_pretrained(folders / name)
    text = "In 1984, the old keeper said:\n    return x  # 30 km"
    assert words.encode(text) == load().tokenizer.encode(text, add_special_tokens=False).ids


def test_the_exported_pair_is_read_by_our_own_engine(folders: Path) -> None:
    family = load_pair(folders / "target", folders / "draft_model_large", folders / "eagle3", dtype=torch.float32)
    assert {"draft_model", "eagle3"} <= family.drafters.keys()


def test_the_head_of_eagle3_says_which_class_of_vllm_it_is(folders: Path) -> None:
    said = json.loads((folders / "eagle3" / "config.json").read_text())
    assert said["architectures"] == ["LlamaForCausalLMEagle3"] and said["draft_vocab_size"] == 3584
    assert said["eagle_aux_hidden_state_layer_ids"] == [2, 12, 21]
    stored, packed = load_file(folders / "eagle3" / "model.safetensors"), read_weights(EMBEDDED / "eagle3")
    assert all(torch.equal(stored[name], packed[name].to(stored[name].dtype)) for name in packed)
    target = load().target
    assert Eagle3Head.load(folders / "eagle3", target).taps == (2, 12, 21)


def test_medusa_heads_have_the_names_and_the_formula_of_vllm(folders: Path) -> None:
    """Its class computes x + SiLU(W x + b) by `blocks.HEAD.layers.BLOCK`, then `lm_heads.HEAD`."""
    said = json.loads((folders / "medusa" / "config.json").read_text())
    weights = load_file(folders / "medusa" / "model.safetensors")
    assert said["architectures"] == ["MedusaModel"] and said["medusa_fc_bias"]
    names = {
        f"blocks.{head}.layers.{block}.{part}" for head in range(4) for block in range(2) for part in ("weight", "bias")
    }
    assert weights.keys() == names | {f"lm_heads.{head}.weight" for head in range(said["num_heads"])}
    family = load()
    ours = MedusaHeads.load(EMBEDDED / "medusa", family.target)
    state = torch.randn(1, family.target.width, generator=torch.Generator().manual_seed(0))
    expected = ours.logits(state, 4)
    for head in range(4):
        x = family.target.normed(state)
        for block in range(said["num_hidden_layers"]):
            layer = f"blocks.{head}.layers.{block}"
            x = x + torch.nn.functional.silu(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
        torch.testing.assert_close(expected[head], (x @ weights[f"lm_heads.{head}.weight"].T)[0], atol=1e-3, rtol=1e-3)


def test_a_tuned_target_is_exported_with_the_tokenizer_and_draft_beside_it(tmp_path: Path) -> None:
    written = vllm.export("tuned", tmp_path / "out")
    assert {"target", "draft_model", "draft_model_tuned"} == {path.name for path in written}
    stored, packed = load_file(tmp_path / "out/target/model.safetensors"), read_weights(EMBEDDED / "tuned/target")
    assert all(torch.equal(stored[name], packed[name].float()) for name in packed)
    assert (tmp_path / "out/target/tokenizer.json").is_file()


@pytest.fixture(scope="module")
def ggufs(tmp_path_factory: pytest.TempPathFactory, shallow: str) -> Path:
    pytest.importorskip("gguf")
    out = tmp_path_factory.mktemp("gguf")
    for numbers in ("f32", "q8_0"):
        llama_cpp.export(shallow, out, numbers)
    return out


def test_a_gguf_file_holds_the_model_and_its_words(ggufs: Path, shallow: str) -> None:
    from gguf import GGUFReader

    config, weights = Config.load(Path(shallow) / "target"), read_weights(Path(shallow) / "target")
    read = GGUFReader(ggufs / "target-f32.gguf")
    assert read.fields["general.architecture"].contents() == "llama"
    assert read.fields["llama.block_count"].contents() == config.num_hidden_layers
    assert read.fields["llama.rope.freq_base"].contents() == config.rope["rope_theta"]
    assert read.fields["tokenizer.ggml.eos_token_id"].contents() == 0
    words = read.fields["tokenizer.ggml.tokens"].contents()
    tokenizer = load().tokenizer
    assert words == [tokenizer.id_to_token(number) for number in range(config.vocab_size)]
    tensors = {tensor.name: torch.tensor(tensor.data) for tensor in read.tensors}
    assert len(tensors) == len(weights)
    torch.testing.assert_close(tensors["token_embd.weight"], weights["model.embed_tokens.weight"].float())
    torch.testing.assert_close(tensors["blk.1.ffn_down.weight"], weights["model.layers.1.mlp.down_proj.weight"].float())


def test_queries_in_a_gguf_file_turn_as_neighbours_where_ours_turn_as_halves(ggufs: Path, shallow: str) -> None:
    """The score of a query with a key at a distance is the same by either order: its own rotary positions prove it."""
    from gguf import GGUFReader

    config, weights = Config.load(Path(shallow) / "target"), read_weights(Path(shallow) / "target")
    stored = {tensor.name: torch.tensor(tensor.data) for tensor in GGUFReader(ggufs / "target-f32.gguf").tensors}
    x = torch.randn(2, config.hidden_size, generator=torch.Generator().manual_seed(1))
    inverse, _ = config.rotary_frequencies()
    angles = torch.tensor([0.0, 5.0])[:, None, None] * inverse  # two places  # [2, 1, head_dim / 2]

    def turned(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.stack((first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()))

    def scores(name: str, table: dict[str, torch.Tensor], halves: bool) -> torch.Tensor:
        y = (x @ table[name].float().T).unflatten(1, (-1, config.head_dim))
        return turned(*y.chunk(2, -1)) if halves else turned(y[..., 0::2], y[..., 1::2])

    ours = [scores(f"model.layers.0.self_attn.{part}_proj.weight", weights, True) for part in "qk"]
    theirs = [scores(f"blk.0.attn_{part}.weight", stored, False) for part in "qk"]
    for pair in (ours, theirs):
        assert pair[0].shape == (2, 2, config.num_attention_heads, config.head_dim // 2)
    expected, found = ((pair[0][:, 1] * pair[1][:, 0]).sum((0, 2)) for pair in (ours, theirs))
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)
    wrong = weights["model.layers.0.self_attn.q_proj.weight"].float()
    assert not torch.equal(stored["blk.0.attn_q.weight"], wrong)  # the order is another, or nothing was shown


def test_eight_bits_where_rows_fill_blocks_and_sixteen_elsewhere(ggufs: Path) -> None:
    from gguf import GGUFReader

    kinds = {tensor.name: tensor.tensor_type.name for tensor in GGUFReader(ggufs / "draft_model-q8_0.gguf").tensors}
    assert kinds["blk.0.ffn_down.weight"] == "F16"  # 528 numbers are no multiple of 32
    assert kinds["blk.0.attn_q.weight"] == "Q8_0" and kinds["blk.0.attn_norm.weight"] == "F32"


def test_nothing_is_written_over(folders: Path, ggufs: Path, shallow: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.stat().st_mtime_ns for path in [*folders.rglob("*"), *ggufs.rglob("*")])
    for engine, out, family in (("vllm", folders, "embedded"), ("llama_cpp", ggufs, shallow)):
        assert cli.main(["export", engine, "--out", str(out), "--family", family]) == 2
        assert re.fullmatch(r"specdec: \S+ is there already; name another folder.*\n", capsys.readouterr().err)
    assert before == sorted(path.stat().st_mtime_ns for path in [*folders.rglob("*"), *ggufs.rglob("*")])


def test_without_gguf_there_is_a_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert cli.main(["export", "llama_cpp", "--out", str(tmp_path)]) == 2
    assert "pip install gguf" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("engine", ["vllm", "llama_cpp"])
def test_what_is_no_family_is_refused(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", engine, "--out", str(tmp_path / "out"), "--family", str(tmp_path)]) == 2
    assert "is no family" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_tokenizer_without_a_name_in_llama_cpp_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "target").mkdir()
    content = json.loads((EMBEDDED / "tokenizer" / "tokenizer.json").read_text())
    content["pre_tokenizer"] = content["pre_tokenizer"]["pretokenizers"][1]
    (tmp_path / "tokenizer" / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"no name in llama\.cpp"):
        llama_cpp.export(str(tmp_path), tmp_path / "out")
