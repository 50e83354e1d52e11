"""Models that transformers runs for us, against transformers itself: small random checkpoints, saved as on the Hub."""

import copy
import functools
import json
import random
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from specdec.events import PEER, PLAIN
from specdec.families import zoo
from specdec.lanes.race import race_lanes
from specdec.models.hugging_face import HuggingFaceModel
from specdec.settings import RunRequest
from specdec.types import SamplingParams
from tests.families.test_published import greedy, model_folder, words
from tests.models.test_models import in_pieces
from tests.shallow import rewrite
from tests.tokens import ids
from tests.toyheads import decoder, LAYERS, medusa_weights, WIDTH

pytestmark = pytest.mark.filterwarnings("error::FutureWarning")  # the names that transformers is about to take away

VOCABULARY, CONTEXT, WINDOW = 23, 96, 8
BASE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "max_position_embeddings": CONTEXT, "pad_token_id": None, "bos_token_id": 0,
    "eos_token_id": 1,
}  # fmt: skip
GROUPED = {**BASE, "num_key_value_heads": 2}
HEADS = {**GROUPED, "head_dim": 8}
EXPERTS = {**HEADS, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
WINDOWED = {"sliding_window": WINDOW}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 1e4}
OLD = {
    "vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": 4, "n_positions": CONTEXT,
    "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
FAMILIES: dict[str, dict[str, Any]] = {
    "cohere2": {**GROUPED, **WINDOWED},
    "deepseek_v3": {
        **EXPERTS, "num_key_value_heads": 4, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 8,
    },
    "exaone4": {**GROUPED, **WINDOWED, "sliding_window_pattern": 2},
    "falcon": {**BASE, "alibi": False},
    "gemma": HEADS,
    "gemma2": {**HEADS, **WINDOWED},
    "gemma3_text": {**HEADS, **WINDOWED, "sliding_window_pattern": 2},
    "glm4": HEADS,
    "gpt2": OLD,
    "gpt_neox": BASE,
    "gpt_oss": {**EXPERTS, **WINDOWED, "num_local_experts": 4, "rope_parameters": PLAIN_ROPE},
    "gptj": {**OLD, "rotary_dim": 4},
    "granite": {**GROUPED, "logits_scaling": 2.0},
    "mixtral": {**GROUPED, **WINDOWED, "num_local_experts": 4},
    "nemotron": GROUPED,
    "olmo2": GROUPED,
    "olmo3": {**GROUPED, **WINDOWED},
    "opt": {**BASE, "ffn_dim": 48, "word_embed_proj_dim": WIDTH},
    "phi": BASE,
    "phi3": {**GROUPED, **WINDOWED},
    "qwen3_moe": {**EXPERTS, **WINDOWED, "num_experts": 4, "use_sliding_window": True},
    "seed_oss": HEADS,
    "smollm3": GROUPED,
    "stablelm": GROUPED,
    "starcoder2": {**GROUPED, **WINDOWED},
    "gpt_neo": {**BASE, "num_heads": 4, "window_size": WINDOW},
    "falcon_alibi": {**BASE, "alibi": True},
    "gemma4_text": {**HEADS, **WINDOWED, "vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8},
}  # fmt: skip
OFTEN = ("gemma3_text", "gpt2", "phi3")  # windows of both kinds, learned positions
WRITING = (*OFTEN, "deepseek_v3", "gpt_oss", "falcon_alibi", "gemma4_text")  # each with another cache or mask
TEXT = random.Random(0).choices(range(VOCABULARY), k=40)


def grid(names: Any) -> list[Any]:
    return [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in names]


@functools.cache
def reference(kind: str, seed: int = 0, layers: int = LAYERS) -> Any:
    said = FAMILIES[kind] | {"n_layer": layers, "num_hidden_layers": layers}
    if kind == "gpt_neo":
        said |= {"num_layers": layers, "attention_types": [[["global", "local"], layers // 2]]}
    return decoder(transformers.AutoConfig.for_model(kind.removesuffix("_alibi"), **said), seed)


folder_of = functools.partial(model_folder, tokenizer=words(VOCABULARY))


@pytest.mark.parametrize("kind", grid(FAMILIES))
def test_logits_equal_those_of_transformers(kind: str, tmp_path) -> None:
    model = reference(kind)
    ours = HuggingFaceModel.load(folder_of(tmp_path, model))
    assert (ours.depth, ours.width, ours.context) == (LAYERS, WIDTH, CONTEXT)
    assert ours.parameters == model.num_parameters()
    with torch.no_grad():
        expected = model(torch.tensor([TEXT])).logits[0]
    found = in_pieces(ours, TEXT, 22, 26)
    assert torch.allclose(found, expected, atol=1e-4 * float(expected.abs().max()), rtol=0.0)
    with pytest.raises(ValueError, match="65 tokens do not fit a cache of 64"):
        ours.forward([1] * 65, ours.new_cache(64))


def generated(model: Any) -> list[int]:
    model = copy.copy(model)  # its own settings would fill in an end token
    model.generation_config = transformers.GenerationConfig(max_new_tokens=30, do_sample=False, pad_token_id=0)
    return model.generate(torch.tensor([TEXT[:9]]))[0, 9:].tolist()


@pytest.mark.parametrize("kind", grid(WRITING))
def test_greedy_text_is_that_of_its_own_generation(kind: str, tmp_path) -> None:
    model = reference(kind)
    small = folder_of(tmp_path / "draft", reference(kind, seed=1, layers=2))
    family = zoo.load_pair(folder_of(tmp_path / "target", model), small, dtype=torch.float32)
    assert (
        isinstance(family.drafts["draft_model"], HuggingFaceModel) and family.describe()["draft_model"]["layers"] == 2
    )
    assert greedy(family, "draft_model", TEXT[:9]) == generated(model)


@pytest.fixture(scope="module")
def gemma(tmp_path_factory) -> zoo.Family:
    """With a draft model of our own decoder."""
    base = tmp_path_factory.mktemp("gemma")
    config = transformers.LlamaConfig(**{**BASE, "num_hidden_layers": 2})
    llama = folder_of(base / "llama", transformers.AutoModelForCausalLM.from_config(config))
    target = folder_of(base / "target", reference("gemma3_text"))
    return zoo.load_pair(target, llama, dtype=torch.float32)


def test_every_drafter_keeps_the_text(gemma) -> None:
    assert set(gemma.drafters) == {"draft_model", "suffix", "prompt_lookup", "none"}
    expected = generated(reference("gemma3_text"))
    for name in gemma.drafters:
        assert greedy(gemma, name, TEXT[:9]) == expected, name


def test_its_own_assisted_generation_races_beside_ours(gemma) -> None:
    params = SamplingParams(max_tokens=12, ignore_end=True)
    events = list(race_lanes(gemma, RunRequest("w3 w4 w5", "draft_model", 3, params, peer=True)))
    peer, plain = (ids(events, lane) for lane in (PEER, PLAIN))
    assert peer == plain and len(plain) == 12


def test_what_is_not_offered_with_such_a_target_is_said(tmp_path) -> None:
    target = folder_of(tmp_path / "target", reference("gpt_neo", layers=2))
    (tmp_path / "medusa").mkdir()
    save_file(medusa_weights(), tmp_path / "medusa" / "model.safetensors")
    with pytest.raises(ValueError, match="heads need a target that SpecDec"):
        zoo.load_pair(target, tmp_path / "medusa")
    family = zoo.load_pair(target, dtype=torch.bfloat16)
    assert family.describe() | {"threads": 0} == {
        "family": str(target), "target": {"parameters": family.target.parameters, "layers": 2, "hidden_size": WIDTH},
        "dtype": "bfloat16", "device": "cpu", "threads": 0,
    }  # fmt: skip
    cache = family.target.new_cache(9)
    with pytest.raises(ValueError, match="gpt_neo models cannot verify trees"):
        family.target.forward([1, 2, 3], cache, (-1, -1))


# What cannot run here.
STATE = "keep a state that cannot be rolled back by length"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mamba": (BASE, STATE),
    "rwkv": (BASE, STATE),
    "recurrent_gemma": (BASE, STATE),
    "jamba": (GROUPED, STATE),
    "qwen3_next": (GROUPED, STATE),
    "lfm2": ({**GROUPED, "layer_types": ["conv", "full_attention"] * 3}, STATE),
    "minimax": ({**GROUPED, "layer_types": ["linear_attention", "full_attention"] * 3}, STATE),
    "gemma3": (BASE, "read more than text"),
    "bloom": ({**OLD, "hidden_size": WIDTH}, "do not state how many positions"),
    "whisper_of_tomorrow": (BASE, "cannot read this config.json"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_run_here_is_refused_before_its_weights_are_read(kind: str, tmp_path) -> None:
    said, reason = REFUSED[kind]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, **said}))
    with pytest.raises(ValueError, match=reason) as caught:
        HuggingFaceModel.load(tmp_path)
    assert "\n" not in str(caught.value)


ONE = "model.layers.1.self_attn.q_proj.weight"
DAMAGED: dict[str, tuple[dict[str, Any], dict[str, torch.Tensor | None], str]] = {
    "a tensor missing": ({}, {ONE: None}, f"lacks {ONE}"),
    "a tensor too many": ({}, {"model.vision.weight": torch.zeros(2)}, r"holds model\.vision\.weight"),
    "another shape": ({}, {ONE: torch.zeros(3, 3)}, "cannot build this gemma3_text model"),
    "quantised": ({"quantization_config": {"quant_method": "mxfp4"}}, {}, "mxfp4"),
    "more layers": ({"num_hidden_layers": 8, "layer_types": None}, {}, r"lacks model\.layers\.6\."),
    "a number as a word": ({"hidden_size": "32"}, {}, "hidden_size"),
    "tokens that see those to come": ({"is_causal": False}, {}, "different logits after a roll-back"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_a_checkpoint_that_does_not_fit_together_is_refused_with_one_sentence(what: str, tmp_path) -> None:
    said, tensors, reason = DAMAGED[what]
    folder = folder_of(tmp_path / "model", reference("gemma3_text"))
    rewrite(folder, said)
    weights = load_file(folder / "model.safetensors") | tensors
    save_file({name: w for name, w in weights.items() if w is not None}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=f"^{folder}: .*{reason}") as caught:
        zoo.load_pair(folder, dtype=torch.float32)
    assert "\n" not in str(caught.value)
