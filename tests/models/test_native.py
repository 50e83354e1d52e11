"""The layers in C++ against torch's, and against themselves to the bit; and what happens where they cannot be had."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import stat
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specdec.engine import generate, Task
from specdec.events import Failed, Finished
from specdec.models import native, transformer
from specdec.models.config import Config
from specdec.models.grouped import Grouped, rounded
from specdec.models.matrix import kept, linear
from specdec.models.native import Blocked, NativeLayers
from specdec.models.transformer import tensors_of, Transformer
from specdec.types import SamplingParams

WORDS, CONTEXT, LAYERS = 96, 128, 3
PLAIN = Config.read(
    {
        "model_type": "llama", "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 96, "hidden_act": "silu",
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
        "rms_norm_eps": 1e-5, "max_position_embeddings": CONTEXT, "tie_word_embeddings": True, "attention_bias": False,
        "mlp_bias": False, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    }
)  # fmt: skip
INNER = ("q_proj", "k_proj", "v_proj")
GROUPED = replace(PLAIN, num_key_value_heads=2)
SHAPES = {
    "plain": PLAIN,
    "grouped heads, biases": replace(GROUPED, biases=INNER),
    "one head of keys, untied": replace(PLAIN, num_key_value_heads=1, tie_word_embeddings=False),
    "three heads of keys": replace(PLAIN, num_attention_heads=12, num_key_value_heads=3, hidden_size=192),
    "inner of 100": replace(PLAIN, intermediate_size=100, hidden_size=96),
    "inner of 7": replace(GROUPED, intermediate_size=7),
    "heads of 32": replace(GROUPED, head_dim=32, biases=INNER),
    "heads of 48": replace(GROUPED, head_dim=48),
    "heads of 64": replace(PLAIN, head_dim=64, num_attention_heads=2, num_key_value_heads=1, hidden_size=128),
    "heads of 80": replace(PLAIN, head_dim=80, num_attention_heads=2, num_key_value_heads=2, hidden_size=160),
    "words of another head": replace(PLAIN, vocab_size=97, tie_word_embeddings=False),
}
LACKING = {  # what the C++ has not
    "window": (replace(GROUPED, windows={1: 8}), torch.float32),
    "QK-norm": (replace(GROUPED, qk_norm=True), torch.float32),
    "no rotary": (replace(GROUPED, layers_without_rotary=frozenset({1})), torch.float32),
    "output bias": (replace(GROUPED, biases=(*INNER, "o_proj")), torch.float32),
    "heads of 8": (replace(GROUPED, head_dim=8), torch.float32),
    "width of 48": (replace(GROUPED, hidden_size=48), torch.float32),
    "an odd number of heads": (replace(PLAIN, num_attention_heads=1, num_key_value_heads=1), torch.float32),
    "bfloat16": (GROUPED, torch.bfloat16),
}
TEXT = random.Random(0).choices(range(WORDS), k=80)
TREE = (-1, -1, 0, 0, 2, 1, 5)

needed = pytest.mark.skipif(native.library() is None, reason="no g++ here, or no processor that native.cpp is for")


def weights_of(config: Config) -> dict[str, Tensor]:
    noise = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(shape, generator=noise) * (shape[-1] ** -0.5 if len(shape) == 2 else 0.3)
        for name, shape in tensors_of(config, {}).items()
    }
    return {name: tensor + ("norm" in name) for name, tensor in weights.items()}


def made(
    config: Config, in_torch: bool = False, eight_bit: bool = False, dtype: torch.dtype = torch.float32,
    weights: dict[str, Tensor] | None = None,
) -> Transformer:  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        if in_torch:
            patch.setattr(Blocked, "pays", lambda *matrix: False)
        return Transformer(config, weights or weights_of(config), dtype, stored=torch.int8 if eight_bit else None)


def both(config: Config, eight_bit: bool = False) -> tuple[Transformer, Transformer]:
    ours, reference = made(config, eight_bit=eight_bit), made(config, True, eight_bit)
    assert ours.native is not None and reference.native is None
    return ours, reference


def passes(model: Transformer) -> list[Tensor]:
    """What it says of prompts, chains and trees, and the states that it keeps; rolled back, moved up, begun."""
    cache = model.new_cache(CONTEXT, taps=range(LAYERS + 1), exit_layer=1)
    said = [model.forward(TEXT[:40], cache, rows=40), model.forward(TEXT[40:41], cache)]
    for count in range(2, 9):
        said.append(model.forward(TEXT[41 : 41 + count], cache, rows=count))
        cache.keep(41)
    said.append(model.forward(TEXT[41:50], cache, TREE, 9))
    cache.keep(43, (1, 5, 6))
    said.append(model.forward(TEXT[50:51], cache))
    said += [model.begin([token], cache) for token in TEXT[51:53]]
    said += [model.forward(TEXT[51:54], cache, rows=3), model.forward(TEXT[54:56], cache, rows=2)]
    return [*said, *(states[: cache.length] for states in cache.states.values())]


def near(found: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    pairs = list(zip(found, expected, strict=True))
    assert all(float(y.abs().max()) > 1e-2 for _, y in pairs)  # there is something to compare
    return all(torch.allclose(x, y, rtol=1e-5, atol=1e-4) for x, y in pairs)


def equal(found: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """To the bit."""
    return all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@needed
@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_states_are_torchs(name: str) -> None:
    ours, reference = both(SHAPES[name])
    assert near(passes(ours), passes(reference))


@needed
@pytest.mark.parametrize("name", ["plain", "grouped heads, biases"])
def test_eight_bits_have_the_distribution_of_their_rounded_weights_and_inputs(name: str) -> None:
    """Up to inputs between two steps, which torch's sums round to the other side now and then. Torch rounds weights
    with the norms in them: here those change nothing."""
    weights = {key: torch.ones_like(w) if "norm" in key else w for key, w in weights_of(SHAPES[name]).items()}
    models = [
        made(SHAPES[name], in_torch, eight, weights=weights)
        for in_torch, eight in ((False, True), (True, True), (False, False))
    ]
    assert isinstance(models[0].head, Blocked) and models[0].head.struct.bits == 8
    found, expected, exact = (
        model.forward(TEXT, model.new_cache(CONTEXT), rows=len(TEXT)).softmax(-1) for model in models
    )
    apart, rounding = (float((found - other).abs().sum(-1).median()) for other in (expected, exact))
    assert rounding > 1e-3 and apart < 0.2 * rounding


@needed
@pytest.mark.parametrize("name", ["plain", "heads of 48", "heads of 80"])
def test_a_file_in_sixteen_bits_keeps_its_distribution(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms and the scale of scores stay apart from the matrices; multiplied in, they would be rounded with them."""
    config = SHAPES[name]
    weights = {key: tensor.bfloat16() for key, tensor in weights_of(config).items()}

    def found() -> list[Tensor]:
        model = Transformer(config, weights, torch.float32, stored=torch.bfloat16)
        assert model.native is not None and isinstance(model.head, Blocked) and model.head.struct.bits == 16
        return passes(model)

    def multiplied_in(matrix: Tensor, dtype: torch.dtype, device: str, stored: torch.dtype, *around: Tensor) -> object:
        before, after = (1.0 if part is None else part for part in around)
        return kept((matrix.T * after).T * before, dtype, device, stored)

    exact = passes(made(config, True, weights=weights))
    assert near(found(), exact)
    monkeypatch.setattr(transformer, "kept", multiplied_in)
    assert not near(found(), exact)


KINDS = {  # how weights may be coded: bits, zero, minima, scales
    "Q8_0": (8, 128, False, torch.float16),
    "8 bits with minima": (8, 0, True, torch.float32),
    "Q4_0": (4, 8, False, torch.float16),
    "Q4_1": (4, 0, True, torch.float16),
    "4 bits, fine scales": (4, 0, True, torch.float32),
}


def coded(kind: str, outputs: int, inputs: int) -> Grouped:
    bits, zero, minima, dtype = KINDS[kind]
    noise = torch.Generator().manual_seed(0)
    codes = torch.randint(2**bits, (outputs, inputs), generator=noise, dtype=torch.uint8)
    scales, least = (torch.rand(outputs, inputs // 32, generator=noise).to(dtype) for _ in range(2))
    return Grouped(codes, scales, -8 * least if minima else None, zero, bits)


def products_of_codes() -> list[Tensor]:
    """In all kinds, 1 to 17 rows; each checked against sums in float64."""
    said = []
    for kind in KINDS:
        matrix, noise = coded(kind, 96, 160), torch.Generator().manual_seed(1)
        before, after, x = (torch.randn(size, generator=noise) for size in (160, 96, (17, 160)))
        codes, scales = (part.double() for part in rounded(x * before))
        expected = (codes * scales).flatten(1) @ matrix.wide().double().T * after
        unrounded = (x * before).double() @ matrix.wide().double().T * after
        blocked = Blocked.of(matrix, before, after)
        for rows in range(1, 18):
            said.append(blocked.times(x[:rows]))
            bound = 1e-5 * float(expected.abs().amax())
            assert float((said[-1] - expected[:rows]).abs().amax()) < bound, (kind, rows)
            assert float((said[-1] - unrounded[:rows]).abs().amax()) > bound  # which tells rounded inputs from others
    return said


@needed
def test_products_of_codes_are_those_of_rounded_inputs() -> None:
    said = products_of_codes()
    for first in range(0, len(said), 17):
        for rows in range(1, 18):
            assert torch.equal(said[first + rows - 1], said[first + 16][:rows])


@needed
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_codes_are_exact_at_their_extremes(bits: int, sign: int) -> None:
    """Sums that saturate, as those of 16 bits do, would lose some."""
    ones = torch.ones(32, 2, dtype=torch.float16)
    for code in (0, 1, 2**bits - 1):
        for zero in (0, 2 ** (bits - 1)):
            matrix = Grouped(torch.full((32, 64), code, dtype=torch.uint8), ones, None, zero, bits)
            said = Blocked.of(matrix).times(torch.full((9, 64), 127.0 * sign))
            assert torch.equal(said, torch.full((9, 32), 127.0 * sign * 64 * (code - zero)))


@needed
def test_inputs_of_no_size_and_of_no_number() -> None:
    blocked = Blocked.of(coded("Q4_1", 32, 64))
    assert torch.equal(blocked.times(torch.zeros(2, 64)), torch.zeros(2, 32))
    assert torch.equal(blocked.times(torch.full((2, 64), 1e-38)).abs() < 1e-30, torch.ones(2, 32, dtype=torch.bool))
    for wrong in (float("nan"), float("inf")):
        x = torch.ones(3, 64)
        x[1, 40] = wrong
        said = blocked.times(x)
        assert bool(said[1].isnan().all()) and bool(said[[0, 2]].isfinite().all())


@needed
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("words", [97, 1000, 49_151, 49_153])
def test_logits_are_the_same_to_the_bit_beside_any_other_rows(words: int, stored: torch.dtype) -> None:
    """Whatever the size of the vocabulary, and however many rows are asked for."""
    config = replace(GROUPED, vocab_size=words, num_hidden_layers=1)
    model = Transformer(config, weights_of(config), torch.float32, stored=stored)
    assert model.native is not None
    cache = model.new_cache(17)
    one_by_one = [model.forward([token], cache) for token in TEXT[:17]]
    for count in range(1, 18):
        cache.keep(0)
        said = model.forward(TEXT[:count], cache, rows=count)
        assert said.shape == (count, words) and torch.equal(said, torch.cat(one_by_one[:count])), count


@needed
@pytest.mark.parametrize("name", ["plain", "one head of keys, untied"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_what_attention_reads_and_sees(name: str, count: int) -> None:
    """A head of its own may tell the first layer what to read, and a block sees itself whole."""
    torch.manual_seed(0)
    x, read = torch.randn(count, SHAPES[name].hidden_size), torch.randn(SHAPES[name].hidden_size, count).T
    kept = x.clone()
    models = both(SHAPES[name])
    for options in ({"causal": False}, {"read": read}, {"read": read, "causal": False}):
        caches = [model.new_cache(CONTEXT) for model in models]
        for model, cache in zip(models, caches, strict=True):
            model.forward(TEXT[:9], cache)
        found, expected = (
            model.run_layers(x, cache, 9, **options)  # type: ignore[arg-type]
            for model, cache in zip(models, caches, strict=True)
        )
        assert near([found, caches[0].data], [expected, caches[1].data]) and torch.equal(x, kept)


@needed
def test_a_first_layer_may_read_more_than_the_width() -> None:
    """As EAGLE-3's."""
    config = replace(GROUPED, num_hidden_layers=1)
    weights, read = weights_of(config), torch.randn(3, 128)
    for part in "qkv":
        name = f"model.layers.0.self_attn.{part}_proj.weight"
        weights[name] = weights[name].repeat(1, 2) / 2
    weights["model.layers.0.input_layernorm.weight"] = torch.ones(128)
    ours, reference = Transformer(config, weights, torch.float32), made(config, True)
    folded, x = read.view(3, 2, 64).mean(1), torch.randn(3, 64)
    norm = weights_of(config)["model.layers.0.input_layernorm.weight"]
    found = ours.run_layers(x, ours.new_cache(9), 0, read=read)
    assert near([found], [reference.run_layers(x, reference.new_cache(9), 0, read=folded / norm)])
    with pytest.raises(ValueError, match=r"no float32 \[n, 128\]"):
        ours.run_layers(x, ours.new_cache(9), 0)


@needed
@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize("name", ["grouped heads, biases", "heads of 48", "heads of 64"])
def test_rows_together_are_rows_one_by_one_to_the_bit(name: str, eight_bit: bool) -> None:
    model = made(SHAPES[name], eight_bit=eight_bit)
    cache = model.new_cache(CONTEXT, taps=(1, LAYERS))
    model.forward(TEXT[:5], cache)
    alone = torch.cat([model.forward([token], cache) for token in TEXT[5:40]])
    states = cache.states[LAYERS][:40].clone()
    for count in (*range(2, 14), 35):
        cache.keep(5)
        assert equal([model.forward(TEXT[5 : 5 + count], cache, rows=count)], [alone[:count]])
    assert equal([cache.states[LAYERS][:40]], [states])


@needed
@pytest.mark.parametrize("name", ["grouped heads, biases", "heads of 48"])
def test_a_prompt_in_parts_is_the_whole_to_the_bit(name: str) -> None:
    model = made(SHAPES[name])
    whole = model.new_cache(CONTEXT)
    expected = model.forward(TEXT, whole, rows=80)
    for length in (7, 32, 33, 79):
        parts = model.new_cache(CONTEXT)
        said = [
            model.forward(some, parts, rows=len(some))
            for first in range(0, 80, length)
            if (some := TEXT[first : first + length])
        ]
        assert equal([torch.cat(said), parts.data], [expected, whole.data])


@needed
def test_threads_change_no_bit(threads: None) -> None:
    """Of three blocks of outputs two threads have one and two: who is done early must wait. Four have more than enough.

    They are few passes: beside busy processes threads wait long for each other.
    """
    model, found = made(replace(GROUPED, hidden_size=96, intermediate_size=2048, biases=INNER)), []
    for count in (1, 2, 3, 4):
        torch.set_num_threads(count)
        cache = model.new_cache(CONTEXT)
        said = [model.forward(TEXT[:40], cache, rows=40), model.forward(TEXT[40:41], cache)]
        found.append([*said, model.forward(TEXT[41:50], cache, TREE, 9), cache.data])
    assert all(equal(others, found[0]) for others in found[1:])


@needed
def test_a_rejected_draft_leaves_no_trace() -> None:
    """Nor is anything read that lies after the text: what is no number there would be seen."""
    model = made(GROUPED)
    plain, tried = model.new_cache(CONTEXT), model.new_cache(CONTEXT)
    tried.data.fill_(float("nan"))
    for cache in (plain, tried):
        model.forward(TEXT[:20], cache)
    model.forward([TEXT[20], 1, 2, 3, 4], tried, rows=5)
    tried.keep(20)
    model.forward([TEXT[20], 1, 2, 3, 4], tried, (-1, -1, 0, 0), 5)
    tried.keep(20)
    for first, last in ((20, 24), (24, 25), (25, 32)):
        said = [model.forward(TEXT[first:last], cache, rows=last - first) for cache in (plain, tried)]
        assert equal(said[:1], said[1:])


@needed
@pytest.mark.parametrize("name", LACKING)
def test_what_the_source_lacks_runs_in_torch(name: str) -> None:
    config, dtype = LACKING[name]
    ours, reference = made(config, dtype=dtype), made(config, True, dtype=dtype)
    assert ours.native is None and near(passes(ours), passes(reference))


@needed
def test_a_lone_row_may_be_padded() -> None:
    said = []
    for model in both(GROUPED):
        model.pad_single_rows = True
        cache = model.new_cache(CONTEXT, taps=(0, LAYERS))
        said.append([model.forward(TEXT[:3], cache), model.forward(TEXT[3:4], cache), model.forward(TEXT[4:5], cache)])
        said[-1] += [states[:5] for states in cache.states.values()]
    assert near(*said)


@needed
def test_no_layers_change_nothing() -> None:
    model, x = made(GROUPED), torch.randn(2, 64)
    for layer in range(LAYERS + 1):
        assert torch.equal(model.run_layers(x, model.new_cache(9), 0, layer, layer), x)


@needed
def test_a_gate_far_below_zero_is_shut() -> None:
    weights = weights_of(PLAIN)
    weights["model.embed_tokens.weight"].abs_()
    for name, tensor in weights.items():
        if "o_proj" in name:
            tensor.zero_()
        if "gate" in name:
            tensor.abs_().mul_(-1e36)
    for in_torch in (False, True):
        model = made(PLAIN, in_torch, weights=weights)
        states = model.run_layers(TEXT[:4], model.new_cache(9), 0)
        assert torch.allclose(states, model.embedding[TEXT[:4]], atol=1e-20)


@needed
def test_what_fits_no_matrix_is_refused_and_not_read() -> None:
    model, narrow = made(GROUPED), torch.randn(2, 32)
    cache = model.new_cache(CONTEXT + 9)
    assert isinstance(model.head, Blocked)
    for wrong in (narrow, torch.randn(2, 64, dtype=torch.float64), torch.randn(64)):
        with pytest.raises(ValueError, match=r"no float32 \[n, 64\]"):
            linear(wrong, model.head)
    for states, read in ((narrow, None), (torch.randn(2, 64), narrow)):
        with pytest.raises(ValueError, match=r"no float32 \[n, 64\]"):
            model.run_layers(states, cache, 0, read=read)
    with pytest.raises(ValueError, match="2 states cannot read 1 rows"):
        model.run_layers(torch.randn(2, 64), cache, 0, read=torch.randn(1, 64))
    with pytest.raises(ValueError, match="more than there are positions"):
        model.run_layers(torch.randn(2, 64), cache, CONTEXT - 1)


@needed
def test_layers_that_do_not_fit_each_other_stay_in_torch() -> None:
    def of(bias: Tensor | None = None, **shapes: tuple[int, int]) -> NativeLayers | None:
        whole = {"qkv": (128, 64), "out": (64, 64), "gate_up": (192, 64), "down": (64, 96), **shapes}
        return NativeLayers.of([[Blocked.of(torch.zeros(shape)) for shape in whole.values()]], [bias], 4, 2, 16, 0.1)

    assert of() is not None and of(torch.zeros(128)) is not None
    assert of(torch.zeros(64)) is None and of(torch.zeros(128, dtype=torch.float64)) is None
    for wrong in ({"qkv": (96, 64)}, {"out": (64, 32)}, {"gate_up": (96, 64)}, {"down": (32, 96)}, {"down": (64, 32)}):
        assert of(**wrong) is None  # type: ignore[arg-type]


@needed
def test_its_weights_live_as_long_as_it_does() -> None:
    model = made(replace(GROUPED, biases=INNER))
    layers, bias, matrix = model.native, model.layers[1].qkv_bias, model.layers[0].down
    assert isinstance(matrix, Blocked) and bias is not None
    there = [weakref.ref(bias), weakref.ref(matrix.weights)]
    del model, bias, matrix
    gc.collect()
    assert layers is not None and all(ref() is not None for ref in there)
    del layers
    gc.collect()
    assert not any(ref() is not None for ref in there)


@needed
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("stored", [None, torch.int8])
@pytest.mark.parametrize("part", ["layers.1.mlp.up_proj", "layers.0.self_attn.k_proj"])
def test_weights_that_are_no_numbers_end_in_an_error(
    part: str, stored: torch.dtype | None, count: int, threads: None
) -> None:
    torch.set_num_threads(count)
    weights = weights_of(GROUPED)
    weights[f"model.{part}.weight"][3, 3] = float("nan")
    model = Transformer(GROUPED, weights, torch.float32, stored=stored)
    assert model.native is not None
    events = list(generate(Task(model, TEXT[:9], SamplingParams(max_tokens=20))))
    assert any(isinstance(event, Failed) and "not finite" in event.reason for event in events)
    assert isinstance(events[-1], Finished) and events[-1].reason == "failed"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """As on a machine that has compiled nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(native.OFF, raising=False)
    monkeypatch.setattr(native, "missing", "")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    native.library.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    native.library.cache_clear()


def compiler(folder: Path, does: str) -> str:
    """A g++ that tells its version and then `does`."""
    file = folder / "g++"
    file.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 12 && exit\n{does}\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def late(*arguments: object, **options: object) -> None:
    raise subprocess.TimeoutExpired("g++", 300)


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


FAILURES = "no g++", "it fails", "it writes nonsense", "it writes nothing", "it takes too long", "no place", "no home"


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux tells its processor so")
@pytest.mark.parametrize("failure", FAILURES)
def test_where_it_cannot_be_compiled_torch_runs_the_model(
    failure: str, fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    does = {"it writes nonsense": 'for last; do :; done; echo nonsense > "$last"', "it writes nothing": "exit 0"}
    found = None if failure == "no g++" else compiler(fresh, does.get(failure, "echo error: no >&2; exit 1"))
    monkeypatch.setattr(native.shutil, "which", lambda name: found)
    if failure == "it takes too long":
        monkeypatch.setattr(native.subprocess, "run", late)
    if failure == "no place":
        (fresh / "cache").write_text("a file")
    if failure == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(native.Path, "home", homeless)
    with caplog.at_level("INFO"):
        model = made(GROUPED)
        said = model.forward(TEXT[:9], model.new_cache(9), rows=9)
    assert native.library() is None and model.native is None
    assert native.missing and str(fresh) not in native.missing
    assert not any(isinstance(matrix, Blocked) for matrix in (model.head, model.layers[0].qkv, model.layers[0].down))
    waits = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(waits) <= 1 and all("compiling" in told and "ten seconds" in told for told in waits)
    failed = [record.message.split(":")[0] for record in caplog.records if record.levelname == "INFO"]
    assert failed == ["small models run in torch"]
    assert capfd.readouterr() == ("", "")
    assert not [path for path in (fresh / "cache").rglob("*") if path.is_dir() and path.name != "specdec"]
    monkeypatch.undo()
    native.library.cache_clear()
    again = made(GROUPED, in_torch=True)
    assert torch.equal(said, again.forward(TEXT[:9], again.new_cache(9), rows=9))


# Compiles in no time, and tells that it was loaded.
FUNCTIONS = "".join(f"void specdec_{name}() {{}} " for name in ("layers", "normalise", "product"))
STUB = """for last; do :; done
echo '{functions}' | cc -x c - -shared -fPIC -o "$last"; echo >> "{count}"
"""
PLANT = """#include <stdio.h>
__attribute__((constructor)) void run() {{ fclose(fopen("{ran}", "w")); }}
{functions}
"""


@pytest.fixture
def stub(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a compiler that is fast; the file in which it counts."""
    counted = fresh / "compiled"
    found = compiler(fresh, STUB.format(functions=FUNCTIONS, count=counted))
    monkeypatch.setattr(native.shutil, "which", lambda name: found)
    monkeypatch.setenv("TMPDIR", str(fresh))
    monkeypatch.setattr(native.tempfile, "tempdir", None)
    return counted


def loaded_anew() -> bool:
    native.library.cache_clear()
    return native.library() is not None


def kept_file(fresh: Path) -> Path:
    (file,) = (fresh / "cache" / "specdec").iterdir()
    return file


def planted(file: Path, fresh: Path) -> Path:
    """A sound library in that place, which leaves a file behind when it is loaded."""
    ran = fresh / "ran"
    source = fresh / "plant.c"
    source.write_text(PLANT.format(functions=FUNCTIONS, ran=ran))
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(fresh / "plant.so")], check=True)
    library = (fresh / "plant.so").read_bytes()
    file.unlink(missing_ok=True)
    file.write_bytes(library + native.hashlib.sha256(library).digest())
    file.chmod(0o600)
    return ran


@needed
def test_what_is_kept_is_its_owners_alone_and_is_used_again(stub: Path, fresh: Path) -> None:
    before = os.umask(0)
    try:
        assert loaded_anew()
    finally:
        os.umask(before)
    file = kept_file(fresh)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    ran = planted(file, fresh)
    assert loaded_anew() and ran.exists()  # one's own, which nobody else could write
    assert stub.read_text().count("\n") == 1


DAMAGE = {
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "a page short": lambda file: os.truncate(file, file.stat().st_size - 4096),
    "empty": lambda file: os.truncate(file, 0),
    "the digest of nothing": lambda file: file.write_bytes(hashlib.sha256(b"").digest()),
    "one bit": lambda file: file.write_bytes(bytes([*file.read_bytes()[:-1], file.read_bytes()[-1] ^ 1])),
    "nonsense": lambda file: file.write_bytes(b"nonsense" * 999),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a link to nothing": lambda file: (file.unlink(), file.symlink_to("nothing")),
}


@needed
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_library_is_compiled_once_more(
    how: str, stub: Path, fresh: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert loaded_anew()
    DAMAGE[how](kept_file(fresh))
    caplog.clear()
    if how == "a folder":  # is in the way for good
        assert not loaded_anew() and "directory" in native.missing.lower()
        return
    assert loaded_anew()
    said = [record.message for record in caplog.records if "not used" in record.message]
    assert len(said) == 1 and stub.read_text().count("\n") == 2
    assert loaded_anew() and stub.read_text().count("\n") == 2


@needed
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602, 0o777])
def test_a_library_that_others_could_have_written_is_not_run(mode: int, stub: Path, fresh: Path) -> None:
    assert loaded_anew()
    ran = planted(kept_file(fresh), fresh)
    kept_file(fresh).chmod(mode)
    assert loaded_anew() and not ran.exists()
    assert stub.read_text().count("\n") == 2


@needed
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
@pytest.mark.parametrize("what", ["file", "folder", "link to a folder", "link to a file", "both folders"])
def test_what_another_user_has_planted_is_not_run(what: str, stub: Path, fresh: Path) -> None:
    """Even where that user brings the right digest: owner and mode decide."""
    assert loaded_anew()
    file, other = kept_file(fresh), 65534
    ran = planted(file, fresh)
    if what == "file":
        os.chown(file, other, other)
    elif what == "link to a file":
        there = file.replace(fresh / "there.so")
        file.symlink_to(there)
    elif what == "link to a folder":
        there = file.parent.rename(fresh / "there")
        (fresh / "cache" / "specdec").symlink_to(there)
    else:
        os.chown(file.parent, other, other)
    if what == "both folders":
        (fresh / f"specdec-{os.geteuid()}").mkdir()
        os.chown(fresh / f"specdec-{os.geteuid()}", other, other)
        assert not loaded_anew() and "another user" in native.missing
    else:
        assert loaded_anew()
    assert not ran.exists()


@needed
def test_a_library_without_the_functions_leaves_it_to_torch(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = compiler(fresh, 'for last; do :; done; echo "int x;" | cc -x c - -shared -fPIC -o "$last"')
    monkeypatch.setattr(native.shutil, "which", lambda name: found)
    with caplog.at_level("INFO"):
        assert not loaded_anew()
    assert "specdec_product" in native.missing and made(GROUPED).native is None
    assert sum("small models run in torch" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("why", ["switched off", "another processor"])
def test_where_it_is_not_wanted_nothing_is_compiled(why: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiles() -> Path:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(native, "built", compiles)
    if why == "switched off":
        monkeypatch.setenv(native.OFF, "0")
    else:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert native.library() is None and made(GROUPED).native is None


@needed
@pytest.mark.long
@pytest.mark.exhaustive  # two compilers on two cores take half a minute
def test_two_processes_may_compile_at_once(tmp_path: Path) -> None:
    code = "from specdec.models import native; assert native.library() is not None"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert [path.suffix for path in (tmp_path / "specdec").iterdir()] == [".so"]


@pytest.fixture
def as_compiled() -> list[Tensor]:
    return products_of_codes()


@needed
@pytest.mark.long
def test_without_avx512_it_says_the_same(
    as_compiled: list[Tensor], fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a processor that has it, as it is compiled for one that has not."""
    plain = [flag for flag in native.COMPILE if flag != "-march=native"]
    assert len(plain) < len(native.COMPILE)
    monkeypatch.setattr(native, "COMPILE", [*plain, "-mavx2", "-mfma", "-mf16c"])
    native.library.cache_clear()
    assert equal(products_of_codes(), as_compiled)
    for bits in (8, 4):
        test_sums_of_codes_are_exact_at_their_extremes(bits, -1)
    for name, config in SHAPES.items():
        ours, reference = both(config)
        assert near(passes(ours), passes(reference)), name
    for name in ("grouped heads, biases", "heads of 48"):
        for eight_bit in (False, True):
            test_rows_together_are_rows_one_by_one_to_the_bit(name, eight_bit)
        test_a_prompt_in_parts_is_the_whole_to_the_bit(name)
    library = native.library()
    assert library is not None and str(fresh) in os.readlink(library._name)
