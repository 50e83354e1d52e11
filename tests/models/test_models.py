"""The lean decoder against transformers, and its cache against a fresh prefill."""

import random
from typing import Any

import pytest
import torch
import transformers

from specdec.models import native
from specdec.models.config import Config
from specdec.models.grouped import Grouped
from specdec.models.matrix import Dequantised, Prepacked
from specdec.models.native import Blocked
from specdec.models.transformer import Transformer
from specdec.types import Tree

BASE: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 4, "num_attention_heads": 4,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
FAMILIES = {
    "llama tied": transformers.LlamaConfig(**BASE, tie_word_embeddings=True),
    "llama grouped heads": transformers.LlamaConfig(**BASE, num_key_value_heads=2, attention_bias=True),
    "llama 3 rotary": transformers.LlamaConfig(**BASE, num_key_value_heads=2, rope_parameters=LLAMA3_ROPE),
    "mistral window": transformers.MistralConfig(**BASE, num_key_value_heads=2, sliding_window=8),
    "qwen2": transformers.Qwen2Config(**BASE, num_key_value_heads=2),
    "qwen3": transformers.Qwen3Config(**BASE, num_key_value_heads=2, head_dim=16),
}
IN_CPP = ("llama tied", "llama 3 rotary", "qwen2")  # the other families have what native.cpp has not
TEXT = random.Random(0).choices(range(97), k=48)


@pytest.fixture(autouse=True, params=["torch", "native"])
def way(request) -> str:
    """What computes the layers. By default that is native.cpp, so torch would go untested."""
    way: str = request.param
    if way == "torch":
        request.getfixturevalue("in_torch")
    elif native.library() is None:
        pytest.skip("no g++ here, or no processor that native.cpp is for")
    return way


def reference(config: Any) -> Any:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():  # fresh norms are ones and fresh biases zeros: neither would be tested
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def lean(name: Any, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Transformer:
    config = FAMILIES[name] if isinstance(name, str) else name
    return Transformer(Config.parse(config.to_dict()), reference(config).state_dict(), dtype, device)


def in_pieces(model: Any, text: list[int], first: int, second: int) -> torch.Tensor:
    """Logits of a text that is read as a prompt, a draft and single tokens, after a draft that was rejected."""
    cache = model.new_cache(64)
    rows = [model.forward(part, cache, rows=len(part)) for part in (text[:first], text[first:second])]
    model.forward([1, 2, 3], cache)
    cache.keep(second)
    return torch.cat([*rows, *(model.forward([token], cache) for token in text[second:])])


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_equal_those_of_transformers(name: str, way, tmp_path) -> None:
    model = reference(FAMILIES[name])
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ours = Transformer.load(tmp_path)
    assert ours.parameters == model.num_parameters()
    assert (ours.native is not None) == (way == "native" and name in IN_CPP)
    with torch.no_grad():
        expected = model(torch.tensor([TEXT])).logits[0]
    assert torch.allclose(in_pieces(ours, TEXT, 30, 35), expected, atol=2e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tree_is_its_paths(name: str) -> None:
    ours, rng = lean(name), random.Random(3)
    for size in (1, 2, 4, 7):
        parents = [-1, *(rng.randrange(-1, node) for node in range(1, size))]
        tokens = [rng.randrange(97) for _ in range(size)]
        cache = ours.new_cache(64)
        ours.forward(TEXT[:20], cache)
        rows = ours.forward([TEXT[20], *tokens], cache, parents, size + 1)
        for node in range(size):
            path = Tree(tuple(parents)).path(node)
            alone = ours.new_cache(64)
            expected = ours.forward([*TEXT[:21], *(tokens[i] for i in path)], alone)[0]
            assert torch.allclose(rows[node + 1], expected, atol=1e-5)
        cache.keep(21, path)
        assert cache.length == 21 + len(path)
        continued, fresh = ours.forward([5], cache)[0], ours.new_cache(64)
        assert torch.allclose(continued, ours.forward([*TEXT[:21], *(tokens[i] for i in path), 5], fresh)[0], atol=1e-4)


def test_in_bfloat16_a_row_alone_is_nearly_the_row_among_others() -> None:
    ours = lean("llama tied", torch.bfloat16)
    cache = ours.new_cache(64)
    ours.forward(TEXT[:20], cache)
    together = ours.forward(TEXT[20:25], cache, rows=5)
    cache.keep(20)
    alone = torch.cat([ours.forward([token], cache) for token in TEXT[20:25]])
    assert cache.length == 25
    assert torch.allclose(together.float(), alone.float(), atol=0.02)


def test_a_full_cache_says_so() -> None:
    ours = lean("llama tied")
    with pytest.raises(ValueError, match="do not fit"):
        ours.forward(TEXT[:9], ours.new_cache(8))


@pytest.mark.parametrize("kept", [0, 2])  # 0: all of them, without being told so
@pytest.mark.parametrize("begun", [1, 2, 3, 4])
def test_verification_goes_on_from_the_exit_and_what_was_begun_alone_does_no_harm(begun: int, kept: int) -> None:
    ours, draft = lean("llama tied"), [5, 7, 11, 13]
    for block in (draft, [5], [5, 8, 9], [6, 7]):
        plain, early = ours.new_cache(64), ours.new_cache(64, exit_layer=2)
        for cache in (plain, early):
            ours.forward(TEXT[:20], cache)
        for token in draft[:begun]:
            ours.begin([token], early)
        expected, rows = (ours.forward(block, cache, rows=len(block)) for cache in (plain, early))
        assert torch.allclose(rows, expected, atol=1e-5)
        for cache in (plain, early) if kept else ():
            cache.keep(20 + min(kept, len(block)))
        assert torch.allclose(ours.forward([3], early), ours.forward([3], plain), atol=1e-5)


def test_early_logits_are_those_of_the_first_layers_alone() -> None:
    model = reference(FAMILIES["llama tied"])
    ours = lean("llama tied")
    cache = ours.new_cache(64, exit_layer=2)
    with torch.no_grad():
        hidden = model(torch.tensor([TEXT[:9]]), output_hidden_states=True).hidden_states[2]
        expected = model.lm_head(model.model.norm(hidden))[0, -1:]
    ours.forward(TEXT[:6], cache)
    assert torch.allclose(ours.begin(TEXT[6:9], cache), expected, atol=2e-5)


@pytest.mark.parametrize("shape", [(7, 32), (97, 64), (33, 96)])
def test_eight_bits_round_every_weight_to_its_nearest_step(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape) * torch.logspace(-3, 3, shape[0])[:, None]
    matrix[0] = 0.0
    eight = Grouped.quantise(matrix)
    steps = eight.scales.float().repeat_interleave(32, 1)
    assert bool(((matrix - eight.dequantised()).abs() <= 0.51 * steps + 1e-7).all())
    again = Grouped.quantise(eight.dequantised())
    assert torch.equal(again.codes, eight.codes) and torch.equal(again.scales, eight.scales)


@pytest.mark.parametrize(("width", "rounded"), [(64, True), (48, False)])
def test_a_model_in_eight_bits_says_nearly_the_same(width: int, rounded: bool) -> None:
    shape = {"hidden_size": width, "intermediate_size": 96, "tie_word_embeddings": True}
    model = reference(transformers.LlamaConfig(**{**BASE, **shape}))
    config, weights = Config.parse(model.config.to_dict()), dict(model.state_dict())
    models = [Transformer(config, weights, torch.float32, stored=stored) for stored in (None, torch.int8)]
    distributions = [m.forward(TEXT, m.new_cache(64), rows=48).softmax(-1) for m in models]
    distance = float(0.5 * (distributions[0] - distributions[1]).abs().sum(-1).mean())
    assert 0.0 < distance < 0.02
    assert models[0].parameters == models[1].parameters
    head = models[1].head
    assert (isinstance(head, Dequantised) or (isinstance(head, Blocked) and head.struct.bits == 8)) is rounded


@pytest.mark.parametrize("pays", [True, False])
def test_bfloat16_is_packed_where_the_processor_multiplies_it(pays: bool, monkeypatch) -> None:
    if pays and not Prepacked.pays(torch.zeros(8, 8, dtype=torch.bfloat16)):
        pytest.skip("this processor does not multiply bfloat16")
    monkeypatch.setattr(Prepacked, "pays", lambda matrix: pays and matrix.dtype == torch.bfloat16)
    exact, rough = (lean("llama tied", dtype) for dtype in (torch.float32, torch.bfloat16))
    assert isinstance(rough.head, Prepacked) is pays
    a, b = (model.forward(TEXT, model.new_cache(64), rows=48) for model in (exact, rough))
    assert b.dtype == torch.bfloat16 and torch.allclose(a, b.float(), atol=0.05)
