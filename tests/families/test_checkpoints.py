"""One mutation of a small valid checkpoint a row: read as transformers reads it, or refused with one sentence."""

import functools
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import processors

from specdec.drafters.eagle3 import Eagle3Head
from specdec.families import published, zoo
from specdec.messages import Refused
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from specdec.paths import FAMILY
from tests.families.test_published import in_shards, plain_config, speculators, words, written
from tests.toyheads import decoder, eagle3_weights, TARGET

VOCABULARY, WIDTH, LAYERS = 23, 32, 4
BASE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8,
    "pad_token_id": None, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
KINDS = {
    "llama": transformers.LlamaConfig, "mistral": transformers.MistralConfig, "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config,
}  # fmt: skip
TEXT = random.Random(5).choices(range(VOCABULARY), k=40)
ONE = "model.layers.1.self_attn.q_proj.weight"
Edit = Callable[[Path], object]


@functools.cache
def source(kind: str, **changes: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and config.json of a random model whose norms and biases are neither ones nor zeros."""
    model = decoder(KINDS[kind](**{**BASE, "tie_word_embeddings": False, "dtype": "float32", **changes}), seed=3)
    return {name: w.clone() for name, w in model.state_dict().items()}, model.config.to_dict()


def folder_of(path: Path, kind: str = "llama", **changes: Any) -> Path:
    weights, config = source(kind, **changes)
    path.mkdir()
    save_file(weights, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    words(VOCABULARY).save(str(path / "tokenizer.json"))
    return path


def config(*removed: str, **changes: Any) -> Edit:
    def edit(folder: Path) -> None:
        data = json.loads((folder / "config.json").read_text())
        data = {name: value for name, value in data.items() if name not in removed} | changes
        (folder / "config.json").write_text(json.dumps(data))

    return edit


def weights(*removed: str, **changes: torch.Tensor) -> Edit:
    def edit(folder: Path) -> None:
        file = folder / "model.safetensors"
        tensors = load_file(file)
        save_file({name: w for name, w in tensors.items() if name not in removed} | changes, file)

    return edit


def file(name: str, content: str) -> Edit:
    return lambda folder: (folder / name).write_text(content)


def sharded(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    in_shards(folder, tensors)


def stray(folder: Path) -> None:
    """The weights once more, all wrong: authors' own layout, an average, an older shard."""
    for name in ("consolidated", "ema", "model-00003-of-00003"):
        save_file({ONE: torch.full((WIDTH, WIDTH), 9.0), "x": torch.ones(2)}, folder / f"{name}.safetensors")


OTHER = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(1))
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
SAME: dict[str, tuple[str, dict[str, Any], Edit]] = {
    "as it is": ("llama", {}, config()),
    "stray files beside a whole one": ("llama", {}, stray),
    "defaults of llama": (
        "llama", {"num_key_value_heads": 4},
        config("num_key_value_heads", "head_dim", "rms_norm_eps", "rope_parameters", "attention_bias", "hidden_act"),
    ),
    "mistral's window": ("mistral", {"sliding_window": 8}, config()),
    "qwen3 without use_sliding_window": (
        "qwen3", {}, config("use_sliding_window", "layer_types", sliding_window=8, max_window_layers=0),
    ),
    "qwen3 with biases": ("qwen3", {"attention_bias": True}, config()),
    "old theta": ("qwen2", {}, config("rope_parameters", rope_theta=100.0)),
    "rope_scaling before rope_parameters": ("llama", {}, config(rope_scaling={"type": "linear", "factor": 2.0})),
    "old YaRN": ("llama", {}, config("rope_parameters", rope_theta=500.0, rope_scaling=YARN)),
    "YaRN whose first length stands outside": (
        "llama", {},
        config("rope_parameters", rope_scaling={"type": "yarn", "factor": 4.0}, original_max_position_embeddings=16),
    ),
    "YaRN without a first length": (
        "mistral", {}, config("rope_parameters", rope_scaling={"type": "yarn", "factor": 2.0}),
    ),
    "a head that is not the embedding": (
        "llama", {"tie_word_embeddings": True}, weights(**{"lm_head.weight": OTHER}),
    ),
    "a tied head stored twice": ("llama", {"tie_word_embeddings": True}, config()),
    "a tied head left out": ("llama", {"tie_word_embeddings": True}, weights("lm_head.weight")),
    "old frequencies in the file": (
        "llama", {}, weights(**{"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}),
    ),
    "bfloat16": ("llama", {}, lambda folder: halved(folder)),
}  # fmt: skip


def halved(folder: Path) -> None:
    file = folder / "model.safetensors"
    save_file({name: w.bfloat16() for name, w in load_file(file).items()}, file)


@pytest.mark.parametrize("what", SAME)
def test_a_checkpoint_is_read_as_transformers_reads_it(what: str, tmp_path) -> None:
    kind, changes, edit = SAME[what]
    folder = folder_of(tmp_path / "model", kind, **changes)
    edit(folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ours = Transformer.load(folder)
    with torch.no_grad():
        expected = theirs(torch.tensor([TEXT])).logits[0]
    rows = ours.forward(TEXT, ours.new_cache(64), rows=len(TEXT))
    assert torch.allclose(rows, expected, atol=2e-5 * max(1.0, float(expected.abs().max())))


LAYER = "model.layers.1"
REFUSED: dict[str, tuple[str, Edit, str]] = {
    # Files.
    "no weights": ("llama", lambda folder: (folder / "model.safetensors").unlink(), r"no model\.safetensors"),
    "truncated": (
        "llama", lambda f: os.truncate(f / "model.safetensors", os.path.getsize(f / "model.safetensors") - 40),
        r"model\.safetensors cannot be read",
    ),
    "a shard missing": (
        "llama", lambda f: (sharded(f), (f / "model-00002-of-00002.safetensors").unlink()),
        "00002-of-00002.safetensors cannot be read",
    ),
    "config.json is broken": ("llama", file("config.json", "{1"), "config.json is not valid JSON"),
    "tokenizer.json is broken": ("llama", file("tokenizer.json", '{"model": 3}'), r"tokenizer\.json cannot be read"),
    # Configurations.
    "no vocab_size": ("llama", config("vocab_size"), r"config.json requires \[32000, 32\]"),
    "qwen3 without head_dim": (
        "qwen3", config("head_dim"), r"has the shape \[32, 32\]; config.json requires \[512, 32\]",
    ),
    "a word for a number": ("qwen2", config(hidden_size="32"), "cannot read this config.json: .*hidden_size"),
    "no model_type": ("llama", config("model_type"), "None models are not among"),
    "dynamic": ("llama", config(rope_scaling={"type": "dynamic", "factor": 2.0}), "scaling dynamic is not among"),
    "llama3 without its factors": (
        "llama", config(rope_parameters={"rope_type": "llama3", "factor": 2.0}), "low_freq",
    ),
    "another activation": ("llama", config(hidden_act="relu"), "the activation relu is not supported"),
    "partial rotary": ("llama", config(partial_rotary_factor=0.5), "partial_rotary_factor is not 1"),
    # Tensors.
    "more layers than said": ("llama", config(num_hidden_layers=3), r"holds model\.layers\.3"),
    "fewer layers than said": ("llama", config(num_hidden_layers=5), r"lacks model\.layers\.4\."),
    "biases that the config denies": (
        "llama", weights(**{f"{LAYER}.self_attn.q_proj.bias": torch.zeros(WIDTH)}),
        "holds .*q_proj.bias, which its config",
    ),
    "qwen2 without biases": ("qwen2", weights(f"{LAYER}.self_attn.k_proj.bias"), r"lacks .*1\.self_attn\.k_proj\.bias"),
    "no head, not tied": ("llama", weights("lm_head.weight"), r"lacks lm_head\.weight"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_be_read_wrongly_is_refused_with_one_sentence(what: str, tmp_path) -> None:
    kind, edit, reason = REFUSED[what]
    folder = folder_of(tmp_path / "model", kind)
    edit(folder)
    with pytest.raises(Refused, match=f"^{folder}.*{reason}") as caught:
        zoo.load_pair(folder, dtype=torch.float32)
    assert "\n" not in str(caught.value) and len(str(caught.value).removeprefix(str(folder))) < 400


def test_the_embedded_configs_are_read_without_transformers_and_alike(monkeypatch) -> None:
    found = [json.loads(path.read_text()) for path in FAMILY.rglob("config.json")]
    found = [data for data in found if "model_type" in data]
    completed = [Config.parse({name: v for name, v in data.items() if name != "hidden_act"}) for data in found]
    monkeypatch.setitem(sys.modules, "transformers", None)  # an import of it fails
    monkeypatch.setitem(sys.modules, "transformers.models.auto.configuration_auto", None)
    assert [Config.parse(data) for data in found] == completed and len(found) >= 5


def test_a_heads_window_is_kept(tmp_path) -> None:
    said = speculators(False)
    said["transformer_layer_config"] |= {"layer_types": ["sliding_attention"], "sliding_window": 3}
    found = published.load_drafter(written(tmp_path / "head", eagle3_weights(), said), TARGET, words(VOCABULARY))
    plain = published.load_drafter(written(tmp_path / "plain", eagle3_weights(), plain_config()), TARGET, words(23))
    features = torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(0))
    assert isinstance(found, Eagle3Head) and isinstance(plain, Eagle3Head)
    rows = [one.forward(features, [1, 2, 3, 4, 5, 6], one.new_cache(9)) for one in (found, plain)]
    # Logits up to 11, where a last digit of float32 is 1e-6: another mask sums in another order.
    assert torch.allclose(rows[0][:3], rows[1][:3], atol=1e-5) and not torch.allclose(rows[0][3], rows[1][3], atol=1e-3)
    tail = plain.forward(features[3:], [4, 5, 6], plain.new_cache(9))
    assert torch.allclose(rows[0][5], tail[2], atol=1e-5)  # rotary positions are relative: it sees the last three alone


# Tokenizers.
def test_a_tokenizer_neither_cuts_nor_pads(tmp_path) -> None:
    tokenizer = words(VOCABULARY)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=20)
    folder = folder_of(tmp_path / "model")
    tokenizer.save(str(folder / "tokenizer.json"))
    family = zoo.load_pair(folder, dtype=torch.float32)
    assert family.encode("w3 w4 w5 w6 w7 w8") == [0, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("template", "prefix"),
    [("$A", ()), ("w0 $A", (0,)), ("$A w1", ()), ("w0 $A w1", (0,)), ("w0 w1 $A w1", (0, 1))],
)
def test_what_a_template_puts_before_a_text_is_kept_whole(template: str, prefix: tuple[int, ...]) -> None:
    tokenizer = words(VOCABULARY)
    tokenizer.post_processor = processors.TemplateProcessing(template, special_tokens=[("w0", 0), ("w1", 1)])
    assert published.prefix(tokenizer) == prefix
