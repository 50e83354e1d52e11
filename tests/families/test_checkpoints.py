"""One mutation of a small valid checkpoint a row: read as transformers reads it, or refused with one sentence."""

from __future__ import annotations

import functools
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from test_published import in_shards, plain_config, speculators, words, written
from tokenizers import processors
from toyheads import eagle3_weights, medusa_weights, TARGET

from specdec.drafters import Eagle3Head, MedusaHeads
from specdec.families import published, zoo
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from tests.trust import garbage

VOCABULARY, WIDTH, LAYERS = 23, 32, 4
BASE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8,
    "pad_token_id": None, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
KINDS = {
    "llama": transformers.LlamaConfig, "mistral": transformers.MistralConfig, "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config, "smollm3": transformers.SmolLM3Config,
}  # fmt: skip
TEXT = random.Random(5).choices(range(VOCABULARY), k=40)
ONE = "model.layers.1.self_attn.q_proj.weight"
Edit = Callable[[Path], None]


@functools.cache
def source(kind: str, **changes: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and config.json of a random model whose norms and biases are neither ones nor zeros."""
    torch.manual_seed(3)
    config = KINDS[kind](**{**BASE, "tie_word_embeddings": False, "dtype": "float32", **changes})
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3 if "norm" in name or "bias" in name else parameter * 6)
    return {name: w.clone() for name, w in model.state_dict().items()}, model.config.to_dict()


def folder_of(path: Path, kind: str = "llama", **changes: Any) -> Path:
    weights, config = source(kind, **changes)
    path.mkdir()
    save_file(weights, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    words(VOCABULARY).save(str(path / "tokenizer.json"))
    return path


def config(*removed: str, **changes: Any) -> Edit:
    """config.json without some keys, and with others."""

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


def file(name: str, content: bytes | str) -> Edit:
    return lambda folder: (
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content) and None
    )


def both(*edits: Edit) -> Edit:
    def edit(folder: Path) -> None:
        for one in edits:
            one(folder)

    return edit


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
    "stray files beside an index": ("llama", {}, both(sharded, stray)),
    "a single file beside an index": ("llama", {}, lambda folder: in_shards(folder, {"x": torch.ones(2)})),
    "defaults of llama": (
        "llama", {"num_key_value_heads": 4},
        config("num_key_value_heads", "head_dim", "rms_norm_eps", "rope_parameters", "attention_bias", "hidden_act"),
    ),
    "mistral's window": ("mistral", {"sliding_window": 8}, config()),
    "mistral's default window": (
        "mistral", {"sliding_window": 4096}, config("sliding_window", "max_position_embeddings"),
    ),
    "qwen2 without use_sliding_window": (
        "qwen2", {}, config("use_sliding_window", "layer_types", sliding_window=8, max_window_layers=0),
    ),
    "qwen3 without use_sliding_window": (
        "qwen3", {}, config("use_sliding_window", "layer_types", sliding_window=8, max_window_layers=0),
    ),
    "qwen3's windows from a layer on": (
        "qwen3", {}, config("layer_types", use_sliding_window=True, sliding_window=8, max_window_layers=2),
    ),
    "qwen3's head_dim by default": ("qwen3", {"head_dim": 128}, config("head_dim")),
    "qwen3 with biases": ("qwen3", {"attention_bias": True}, config()),
    "smollm3 without no_rope_layers": ("smollm3", {}, config("no_rope_layers")),
    "smollm3's interval": ("smollm3", {}, config("no_rope_layers", no_rope_layer_interval=2)),
    "smollm3's theta": ("smollm3", {}, config("rope_parameters")),
    "smollm3's windows": (
        "smollm3", {}, config("layer_types", use_sliding_window=True, sliding_window=8),
    ),
    "old theta": ("qwen2", {}, config("rope_parameters", rope_theta=100.0)),
    "rope_scaling before rope_parameters": ("llama", {}, config(rope_scaling={"type": "linear", "factor": 2.0})),
    "old YaRN": ("llama", {}, config("rope_parameters", rope_theta=500.0, rope_scaling=YARN)),
    "YaRN of a fine-tune": ("mistral", {}, config("rope_parameters", rope_scaling={**YARN, "finetuned": True})),
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
    "llama's unused window": ("llama", {}, config(sliding_window=8)),
    "old frequencies in the file": (
        "llama", {}, weights(**{"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}),
    ),
    "bfloat16": ("llama", {}, lambda folder: halved(folder)),
}  # fmt: skip


def halved(folder: Path) -> None:
    file = folder / "model.safetensors"
    save_file({name: w.bfloat16() for name, w in load_file(file).items()}, file)


@pytest.mark.parametrize("what", SAME)
def test_a_checkpoint_is_read_as_transformers_reads_it(what: str, tmp_path: Path) -> None:
    kind, changes, edit = SAME[what]
    folder = folder_of(tmp_path / "model", kind, **changes)
    edit(folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ours = Transformer.load(folder)
    with torch.no_grad():
        expected = theirs(torch.tensor([TEXT])).logits[0]
    rows = ours.forward(TEXT, ours.new_cache(64), rows=len(TEXT))
    assert torch.allclose(rows, expected, atol=2e-5 * max(1.0, float(expected.abs().max())))


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


LAYER = "model.layers.1"
EIGHT = zeros(WIDTH, WIDTH, dtype=torch.int8)
NAN = zeros(WIDTH, WIDTH).index_fill(0, torch.tensor(3), float("nan"))
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
REFUSED: dict[str, tuple[str, Edit, str]] = {
    # Files.
    "no weights": ("llama", lambda folder: (folder / "model.safetensors").unlink(), r"no \.safetensors"),
    "empty weights": ("llama", file("model.safetensors", b""), r"model\.safetensors is empty; download"),
    "LFS pointer": ("llama", file("model.safetensors", POINTER), "Git LFS pointer.* `git lfs pull`"),
    "half a header": ("llama", file("model.safetensors", b"\x90\x01\0\0\0\0\0\0{"), r"model\.safetensors is damaged"),
    "truncated": (
        "llama", lambda folder: truncate(folder / "model.safetensors", -40), r"model\.safetensors is damaged",
    ),
    "no tensors": ("llama", file("model.safetensors", b"\x02\0\0\0\0\0\0\0{}"), r"lacks model\.embed_tokens"),
    "a shard missing": (
        "llama", both(sharded, lambda f: (f / "model-00002-of-00002.safetensors").unlink()), "no model-00002-of-00002",
    ),
    "a shard without its tensor": (
        "llama",
        both(sharded, lambda f: save_file({"x": zeros(2)}, f / "model-00002-of-00002.safetensors")),
        "index.json says that .* is in model-00002",
    ),
    "an index that leads out": (
        "llama", both(sharded, file("model.safetensors.index.json", '{"weight_map": {"x": "../y.safetensors"}}')),
        "names no file in its folder",
    ),
    "an index of nothing": (
        "llama", both(sharded, file("model.safetensors.index.json", '{"weight_map": []}')), "no weight_map",
    ),
    "several files without an index": (
        "llama", both(sharded, lambda f: (f / "model.safetensors.index.json").unlink()), "2 .safetensors files, and no",
    ),
    "no config.json": ("llama", lambda folder: (folder / "config.json").unlink(), r"no config\.json"),
    "config.json is a list": ("llama", file("config.json", "[1]"), "holds no JSON object, but a list"),
    "config.json is no JSON": ("llama", file("config.json", '{"model_type": '), r"config\.json is no JSON"),
    "config.json is no text": ("llama", file("config.json", b"\xff\xfe\x00"), r"config\.json is no JSON"),
    "config.json is deep": ("llama", file("config.json", "[" * 99_999), r"config\.json is no JSON"),
    "tokenizer.json is broken": ("llama", file("tokenizer.json", '{"model": 3}'), r"tokenizer\.json cannot be read"),
    "tokenizer.json is empty": ("llama", file("tokenizer.json", ""), r"tokenizer\.json cannot be read"),
    "no tokenizer.json": ("llama", lambda folder: (folder / "tokenizer.json").unlink(), r"no tokenizer\.json"),
    "end token is a word": ("llama", config(eos_token_id="</s>"), "eos_token_id is '</s>'"),
    "generation_config.json is a list": (
        "llama", file("generation_config.json", "[]"), "generation_config.json holds no",
    ),
    # Configurations.
    "no vocab_size": ("llama", config("vocab_size"), "config.json lacks vocab_size"),
    "no num_hidden_layers": ("llama", config("num_hidden_layers"), "config.json lacks num_hidden_layers"),
    "no hidden_size": ("llama", config("hidden_size"), "config.json lacks hidden_size"),
    "no num_attention_heads": ("llama", config("num_attention_heads"), "config.json lacks num_attention_heads"),
    "no head_dim where one is needed": (
        "llama", config("head_dim", num_attention_heads=2), "proj.weight has the shape",
    ),
    "qwen3 without head_dim": (
        "qwen3", config("head_dim"), r"has the shape \[32, 32\]; config.json makes it \[512, 32\]",
    ),
    "a number as a string": (
        "llama", config(hidden_size="32"), "hidden_size in config.json is '32'; it would be a whole",
    ),
    "a count as a float": ("llama", config(num_hidden_layers=4.0), "num_hidden_layers in config.json is 4.0"),
    "a count as a truth": ("llama", config(num_attention_heads=True), "num_attention_heads in config.json is True"),
    "no layers": ("llama", config(num_hidden_layers=0), "num_hidden_layers in config.json is 0"),
    "layers without end": (
        "qwen3", config(num_hidden_layers=10**12), "num_hidden_layers in config.json is 1000000000000",
    ),
    "a context without end": (
        "llama", config(max_position_embeddings=10**12), "max_position_embeddings in config.json",
    ),
    "a word for tied": ("llama", config(tie_word_embeddings="false"), "tie_word_embeddings.*'?false'?"),
    "negative epsilon": ("llama", config(rms_norm_eps=-1.0), "rms_norm_eps in config.json is -1.0"),
    "infinite theta": (
        "llama", config(rope_parameters={"rope_type": "default", "rope_theta": float("inf")}),
        "rope_theta in config.json",
    ),
    "no model_type": ("llama", config("model_type"), "None models are not among"),
    "other heads": ("llama", config(num_key_value_heads=3), "4 heads cannot share 3"),
    "an odd head": ("llama", config(head_dim=7), "head_dim"),
    "another activation": ("llama", config(hidden_act="gelu"), "activation gelu"),
    "unknown rotary": (
        "llama", config(rope_parameters={"rope_type": "spiral"}), "rotary scaling 'spiral' is not among",
    ),
    "mrope": (
        "qwen2", config("rope_parameters", rope_scaling={"type": "mrope", "mrope_section": [2, 1, 1]}),
        "'mrope' is not",
    ),
    "dynamic": ("llama", config(rope_scaling={"type": "dynamic", "factor": 2.0}), "length of the text"),
    "yarn without factor": ("llama", config(rope_parameters={"rope_type": "yarn"}), "yarn in config.json lacks factor"),
    "yarn with a word": (
        "llama", config(rope_parameters={"rope_type": "yarn", "factor": 2.0, "beta_fast": "x"}),
        "beta_fast of rotary scaling yarn in config.json is 'x'",
    ),
    "llama3 without its factors": (
        "llama", config(rope_parameters={"rope_type": "llama3", "factor": 2.0}), "llama3 in config.json lacks low_freq",
    ),
    "rotary is a list": ("llama", config(rope_parameters=[1]), "rope_parameters in config.json is"),
    "no theta": (
        "llama", config(rope_parameters={"rope_type": "default", "rope_theta": 0}), "rope_theta in config.json",
    ),
    "partial rotary": ("llama", config(partial_rotary_factor=0.5), "partial_rotary_factor is not 1"),
    "partial rotary, inside": (
        "llama", config(rope_parameters={"rope_type": "default", "rope_theta": 9.0, "partial_rotary_factor": 0.5}),
        "partial_rotary_factor is not 1",
    ),
    "windows without a size": (
        "qwen3", config(layer_types=["sliding_attention"] * LAYERS, use_sliding_window=False),
        "sliding_window in config",
    ),
    "mistral with two kinds of layers": (
        "mistral", config(sliding_window=8, layer_types=["full_attention", "sliding_attention"] * 2),
        "layer_types has no",
    ),
    "chunks": ("qwen3", config(layer_types=["chunked_attention"] * LAYERS), "names chunked_attention"),
    "too few entries": ("smollm3", config("layer_types", no_rope_layers=[1, 0]), r"config\.json"),
    # Tensors.
    "fewer tokens than said": ("llama", config(vocab_size=24), r"embed_tokens.weight has the shape \[23, 32\]"),
    "more layers than said": ("llama", config(num_hidden_layers=3), r"holds model\.layers\.3"),
    "fewer layers than said": ("llama", config(num_hidden_layers=5), r"lacks model\.layers\.4\..* and 8 more"),
    "biases that the config denies": (
        "llama", weights(**{f"{LAYER}.self_attn.q_proj.bias": zeros(WIDTH)}),
        "holds .*q_proj.bias, which by its config",
    ),
    "biases that the file lacks": ("llama", config(attention_bias=True), r"lacks .*q_proj\.bias"),
    "qwen2 without biases": ("qwen2", weights(f"{LAYER}.self_attn.k_proj.bias"), r"lacks .*1\.self_attn\.k_proj\.bias"),
    "QK-norm in a llama": ("llama", weights(**{f"{LAYER}.self_attn.q_norm.weight": zeros(8)}), "holds .*q_norm"),
    "no head, not tied": ("llama", weights("lm_head.weight"), r"lacks lm_head\.weight"),
    "a classifier": ("llama", weights("lm_head.weight", **{"score.weight": zeros(2, WIDTH)}), r"lacks lm_head\.weight"),
    "a classifier beside the head": ("llama", weights(**{"score.weight": zeros(2, WIDTH)}), r"holds score\.weight"),
    "left over": ("llama", weights(**{"model.vision.weight": zeros(2, 2)}), r"holds model\.vision\.weight"),
    "NaN": ("llama", weights(**{ONE: NAN}), "q_proj.weight holds NaN or infinity"),
    "infinity": ("llama", weights(**{ONE: 1 / zeros(WIDTH, WIDTH)}), "q_proj.weight holds NaN or infinity"),
    "one number": ("llama", weights(**{ONE: torch.tensor(1.0)}), "q_proj.weight is a single number"),
    "whole numbers": ("llama", weights(**{ONE: EIGHT.long()}), "q_proj.weight is stored as int64"),
    # Quantised: by config.json, by what stands beside a weight, by its type.
    "FP8": (
        "qwen3", config(quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]}),
        r"quantised \(config\.json names fp8\), which is not supported; use the one that is not",
    ),
    "compressed-tensors, old": ("llama", config(compression_config={"format": "int"}), "quantised"),
    "FP8 tensors": ("llama", weights(**{ONE: EIGHT.to(torch.float8_e4m3fn)}), "quantised .*stored as float8_e4m3fn"),
    "FP8's scales": ("llama", weights(**{f"{ONE}_scale_inv": zeros(1, 1)}), "quantised .*scale_inv"),
    "INT8": ("llama", weights(**{ONE: EIGHT}), "quantised .*stored as int8"),
    "INT8's scales": ("llama", weights(**{f"{ONE}_scale": zeros(WIDTH, 1)}), "quantised .*weight_scale"),
    "bitsandbytes": ("llama", weights(**{f"{LAYER}.mlp.up_proj.SCB": zeros(48)}), "quantised .*SCB"),
    "4 bits of bitsandbytes": (
        "llama", weights(**{ONE: zeros(99, 1, dtype=torch.uint8), f"{ONE}.absmax": zeros(9)}), "quantised",
    ),
    "4 bits of GPTQ": (
        "llama", weights(ONE, **{f"{LAYER}.self_attn.q_proj.qweight": EIGHT.int()}), "quantised .*qweight",
    ),
}  # fmt: skip


def truncate(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def refusal(call: Callable[[], Any], folder: Path) -> str:
    """The one sentence of the ValueError; every other exception goes through."""
    with pytest.raises(ValueError) as caught:
        call()
    reason = str(caught.value)
    assert type(caught.value) is ValueError and reason.startswith(f"{folder}")
    assert "\n" not in reason and len(reason.removeprefix(str(folder))) < 400
    return reason


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_be_read_wrongly_is_refused_with_one_sentence(what: str, tmp_path: Path) -> None:
    kind, edit, reason = REFUSED[what]
    folder = folder_of(tmp_path / "model", kind)
    edit(folder)
    said = refusal(lambda: zoo.load_pair(folder, dtype=torch.float32), folder)
    assert re.search(reason, said), said


def test_a_config_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(2**40)  # it takes no place on the disk
    with pytest.raises(ValueError, match=r"config\.json .* larger than [\d,]+ bytes"):
        Config.load(tmp_path)


@pytest.mark.parametrize(
    "name, value",
    [
        ("model_type", {"a" * 5_000: 1}),
        ("hidden_act", "a" * 5_000),
        ("rope_parameters", {"rope_type": "default", "rope_theta": 1e4, "a" * 5_000: "b"}),
    ],
)
def test_what_a_config_says_at_length_is_quoted_in_short(name: str, value: Any) -> None:
    _, config = source("qwen3")
    with pytest.raises(ValueError) as told:
        Config.read({**config, name: value})
    assert "aaa" in str(told.value) and len(str(told.value)) < 500


def test_the_embedded_configs_are_read_without_transformers_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [json.loads(path.read_text()) for path in zoo.EMBEDDED.rglob("config.json")]
    found = [data for data in found if "model_type" in data]
    completed = [Config.read({name: v for name, v in data.items() if name != "hidden_act"}) for data in found]
    monkeypatch.setitem(sys.modules, "transformers", None)  # an import of it fails
    monkeypatch.setitem(sys.modules, "transformers.models.auto.configuration_auto", None)
    assert [Config.read(data) for data in found] == completed and len(found) >= 5


# Heads.
def head(folder: Path, edit: Edit, kind: str) -> Path:
    parts = {"eagle3": (eagle3_weights(), plain_config()), "medusa": (medusa_weights(), {})}
    tensors, said = parts[kind]
    folder.mkdir()
    save_file({name: w.contiguous() for name, w in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(said))
    edit(folder)
    return folder


def choices(*paths: Any) -> Edit:
    return config(medusa_choices=list(paths))


HEADS: dict[str, tuple[str, Edit, str]] = {
    "empty file": ("eagle3", file("model.safetensors", b""), "is empty"),
    "LFS pointer": ("medusa", file("model.safetensors", POINTER), "Git LFS pointer"),
    "damaged": ("medusa", lambda f: truncate(f / "model.safetensors", 99), "is damaged"),
    "NaN": ("eagle3", weights(**{"norm.weight": zeros(WIDTH) / 0}), "norm.weight holds NaN"),
    "quantised": ("eagle3", config(quantization_config={"quant_method": "gptq"}), "quantised"),
    "int8": ("medusa", weights(**{"0.0.linear.weight": EIGHT}), "quantised"),
    "config is a list": ("medusa", file("config.json", "[]"), "holds no JSON object"),
    "left over": ("eagle3", weights(**{"midlayer.self_attn.sinks": zeros(4)}), "holds midlayer.self_attn.sinks"),
    "left over in Medusa": ("medusa", weights(**{"4.1.weight": zeros(23, WIDTH)}), r"holds 4\.1\.weight"),
    "a flat fc": ("eagle3", weights(**{"fc.weight": zeros(9)}), "fuses 9 numbers into 1"),
    "a map of fractions": ("eagle3", weights(d2t=zeros(15)), "its map d2t"),
    "layers by name": (
        "eagle3", config(eagle_config={"eagle_aux_hidden_state_layer_ids": "low"}), "reads layers 'low'",
    ),
    "eagle_config is a list": ("eagle3", config(eagle_config=[1]), "eagle_config in config.json"),
    "no window": ("eagle3", config(layer_types=["sliding_attention"]), "sliding_window in config.json is None"),
    "which window": (
        "eagle3", config(layer_types=["sliding_attention", "full_attention"], sliding_window=4), "tells no window",
    ),
    "choices too deep": (
        "medusa", choices([0], [0, 0], [0, 0, 0], [0] * 4, [0] * 5), "5 tokens deep; there are 4 heads",
    ),
    "choices without a parent": ("medusa", choices([0], [1, 0]), r"names \[1, 0\] and not its parent \[1\]"),
    "choices below 0": ("medusa", choices([0], [-1]), r"the ranks \[-1\]; a rank lies between 0 and 22"),
    "choices beyond the tokens": ("medusa", choices([23]), "a rank lies between 0 and 22"),
    "choices of fractions": ("medusa", choices([0.5]), "a rank lies between"),
    "too many choices": (
        "medusa", choices(*([i] for i in range(23)), *([0, i] for i in range(23)), *([1, i] for i in range(23))),
        "69 nodes; 64 is the most",
    ),
    "choices twice": ("medusa", choices([0], [0]), "names a node twice"),
    "choices of numbers": ("medusa", choices(0, 1), "would be a list of paths"),
    "choices are a word": ("medusa", config(medusa_choices="mc_sim_7b_63"), "would be a list of paths"),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADS)
def test_a_head_that_would_be_read_wrongly_is_refused_with_one_sentence(what: str, tmp_path: Path) -> None:
    kind, edit, reason = HEADS[what]
    folder = head(tmp_path / "head", edit, kind)
    said = refusal(lambda: published.load_drafter(folder, TARGET, words(VOCABULARY)), folder)
    assert re.search(reason, said), said


def test_a_familys_own_head_is_refused_alike(tmp_path: Path) -> None:
    folder = head(tmp_path / "medusa", choices([0], [0] * 5), "medusa")
    assert "tokens deep" in refusal(lambda: MedusaHeads.load(folder, TARGET), folder)


def test_heads_without_choices_get_a_tree_as_deep_as_they_are() -> None:
    assert max(map(len, MedusaHeads(medusa_weights(2), TARGET).tree)) == 2


def test_a_heads_window_is_kept(tmp_path: Path) -> None:
    said = speculators(False)
    said["transformer_layer_config"] |= {"layer_types": ["sliding_attention"], "sliding_window": 3}
    found = published.load_drafter(written(tmp_path / "head", eagle3_weights(), said), TARGET, words(VOCABULARY))
    plain = published.load_drafter(written(tmp_path / "plain", eagle3_weights(), plain_config()), TARGET, words(23))
    features = torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(0))
    assert isinstance(found, Eagle3Head) and isinstance(plain, Eagle3Head)
    rows = [one.read(features, [1, 2, 3, 4, 5, 6], one.new_cache(9)) for one in (found, plain)]
    # Logits up to 11, where a last digit of float32 is 1e-6: another mask sums in another order.
    assert torch.allclose(rows[0][:3], rows[1][:3], atol=1e-5) and not torch.allclose(rows[0][3], rows[1][3], atol=1e-3)
    tail = plain.read(features[3:], [4, 5, 6], plain.new_cache(9))
    assert torch.allclose(rows[0][5], tail[2], atol=1e-5)  # rotary positions are relative: it sees the last three alone


# Tokenizers.
def test_a_tokenizer_neither_cuts_nor_pads(tmp_path: Path) -> None:
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


# Whatever the bytes are.
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_random_damage_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    """Bytes changed, cut out, put in, or the rest lost, or values put wrong: a ValueError of one sentence, or a model
    that can be asked."""
    chance = random.Random(name)
    folder = folder_of(tmp_path / "model", tie_word_embeddings=True)
    whole = (folder / name).read_bytes()
    end = min(len(whole), 8 + int.from_bytes(whole[:8], "little")) if name == "model.safetensors" else len(whole)
    refused = 0
    for _ in range(150):
        data, at = bytearray(whole), chance.randrange(end)
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = chance.choice([b"9", b"-", b"null", b"[", b'"', b"\xff", b"\0\0", b"1e999"])
        else:
            del data[at:]
        if name == "config.json" and chance.random() < 0.5:
            data[:] = garbage.written(garbage.spoiled(json.loads(whole), chance, 0.06))
        (folder / name).write_bytes(data)
        try:
            model, tokenizer = Transformer.load(folder), published.read_tokenizer(folder)
            published.cut_vocabulary(model, published.shared_vocabulary(model, tokenizer))
            tokens = [*published.prefix(tokenizer), *published.end_tokens(folder), 3][:1]
        except ValueError as error:
            assert type(error) is ValueError and "\n" not in str(error) and len(str(error)) < 600
            refused += 1
        else:
            if 0 <= tokens[0] < model.vocabulary:
                model.forward(tokens, model.new_cache(16))
    assert refused > 30
