"""The layers in C++ against torch's, and against themselves to the bit; and what happens where they cannot be had."""

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specdec.events import Failed
from specdec.loop import generate
from specdec.models import build, folding, native
from specdec.models.config import Config
from specdec.models.grouped import Grouped, rounded
from specdec.models.matrix import linear, pack_weight
from specdec.models.native import Blocked
from specdec.models.transformer import Transformer
from specdec.task import Task
from specdec.types import SamplingParams, Tree

WORDS, CONTEXT, LAYERS = 96, 128, 3
PLAIN = Config.parse(
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
        for name, shape in config.tensors({}).items()
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
    found, expected, exact = (m.forward(TEXT, m.new_cache(CONTEXT), rows=len(TEXT)).softmax(-1) for m in models)
    apart, rounding = (float((found - other).abs().sum(-1).median()) for other in (expected, exact))
    assert rounding > 1e-3 and apart < 0.2 * rounding


@needed
@pytest.mark.parametrize("name", ["plain", "heads of 48", "heads of 80"])
def test_a_file_in_sixteen_bits_keeps_its_distribution(name: str, monkeypatch) -> None:
    """Norms and the scale of scores stay apart from the matrices; multiplied in, they would be rounded with them."""
    config = SHAPES[name]
    weights = {key: tensor.bfloat16() for key, tensor in weights_of(config).items()}

    def found() -> list[Tensor]:
        model = Transformer(config, weights, torch.float32, stored=torch.bfloat16)
        assert model.native is not None and isinstance(model.head, Blocked) and model.head.struct.bits == 16
        return passes(model)

    def multiplied_in(matrix: Tensor, dtype: torch.dtype, device: str, stored: torch.dtype, *around: Tensor) -> object:
        before, after = (1.0 if part is None else part for part in around)
        return pack_weight((matrix.T * after).T * before, dtype, device, stored)

    exact = passes(made(config, True, weights=weights))
    assert near(found(), exact)
    monkeypatch.setattr(folding, "pack_weight", multiplied_in)
    assert not near(found(), exact)


KINDS = {  # how weights may be coded: bits, zero, minima, scales
    "Q8_0": (8, 128, False, torch.float16),
    "8 bits with minima": (8, 0, True, torch.float32),
    "Q4_0": (4, 8, False, torch.float16),
    "Q4_1": (4, 0, True, torch.float16),
    "4 bits, fine scales": (4, 0, True, torch.float32),
}


def coded(kind: str, outputs: int, inputs: int, scale: float = 1.0) -> Grouped:
    bits, zero, minima, dtype = KINDS[kind]
    noise = torch.Generator().manual_seed(0)
    codes = torch.randint(2**bits, (outputs, inputs), generator=noise, dtype=torch.uint8)
    scales, least = (scale * torch.rand(outputs, inputs // 32, generator=noise).to(dtype) for _ in range(2))
    return Grouped(codes, scales, -8 * least if minima else None, zero, bits)


def products_of_codes() -> list[Tensor]:
    """In all kinds, 1 to 17 rows; each checked against sums in float64."""
    said = []
    for kind in KINDS:
        matrix, noise = coded(kind, 96, 160), torch.Generator().manual_seed(1)
        before, after, x = (torch.randn(size, generator=noise) for size in (160, 96, (17, 160)))
        codes, scales = (part.double() for part in rounded(x * before))
        expected = (codes * scales).flatten(1) @ matrix.dequantised().double().T * after
        unrounded = (x * before).double() @ matrix.dequantised().double().T * after
        blocked = Blocked.pack(matrix, before, after)
        for rows in range(1, 18):
            said.append(blocked.times(x[:rows]))
            bound = 1e-5 * float(expected.abs().amax())
            assert float((said[-1] - expected[:rows]).abs().amax()) < bound, (kind, rows)
            assert float((said[-1] - unrounded[:rows]).abs().amax()) > bound
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
    ones = torch.ones(32, 2, dtype=torch.float16)
    for code in (0, 1, 2**bits - 1):
        for zero in (0, 2 ** (bits - 1)):
            matrix = Grouped(torch.full((32, 64), code, dtype=torch.uint8), ones, None, zero, bits)
            said = Blocked.pack(matrix).times(torch.full((9, 64), 127.0 * sign))
            assert torch.equal(said, torch.full((9, 32), 127.0 * sign * 64 * (code - zero)))


@needed
@pytest.mark.parametrize("name", ["plain", "one head of keys, untied"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_what_attention_reads_and_sees(name: str, count: int) -> None:
    torch.manual_seed(0)
    x, read = torch.randn(count, SHAPES[name].hidden_size), torch.randn(SHAPES[name].hidden_size, count).T
    kept = x.clone()
    models = both(SHAPES[name])
    for options in ({"causal": False}, {"read": read}, {"read": read, "causal": False}):
        caches = [model.new_cache(CONTEXT) for model in models]
        for model, cache in zip(models, caches, strict=True):
            model.forward(TEXT[:9], cache)
        found, expected = (m.run_layers(x, cache, 9, **options) for m, cache in zip(models, caches, strict=True))
        assert near([found, caches[0].data], [expected, caches[1].data]) and torch.equal(x, kept)


LARGE = {f"{n} words": replace(GROUPED, vocab_size=n, num_hidden_layers=1) for n in (97, 1000, 49_151, 49_153)}
ROWS = {name: SHAPES[name] for name in ("grouped heads, biases", "heads of 48", "heads of 64")} | LARGE


@needed
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows_together_are_rows_one_by_one_to_the_bit(name: str, stored: torch.dtype) -> None:
    model = Transformer(ROWS[name], weights_of(ROWS[name]), torch.float32, stored=stored)
    assert model.native is not None
    last = model.depth
    cache = model.new_cache(CONTEXT, taps=(1, last))
    model.forward(TEXT[:5], cache)
    alone = torch.cat([model.forward([token], cache) for token in TEXT[5:40]])
    states = cache.states[last][:40].clone()
    for count in (*range(1, 18), 35):
        cache.keep(5)
        said = model.forward(TEXT[5 : 5 + count], cache, rows=count)
        assert said.shape == (count, ROWS[name].vocab_size) and torch.equal(said, alone[:count]), count
    assert torch.equal(cache.states[last][:40], states)


@needed
@pytest.mark.parametrize("stored", ["float32", "bfloat16", "int8", "4 bits"])
def test_a_kept_path_of_a_tree_has_the_bits_of_plain_decoding(stored: str, monkeypatch) -> None:
    if stored == "4 bits":
        monkeypatch.setattr(Grouped, "quantise", lambda matrix, _: coded("Q4_1", *matrix.shape, scale=0.05))
    config, rng = SHAPES["grouped heads, biases"], random.Random(stored)
    dtype = torch.int8 if stored == "4 bits" else getattr(torch, stored)
    model, taps = Transformer(config, weights_of(config), torch.float32, stored=dtype), (1, LAYERS)
    assert model.native is not None and isinstance(model.head, Blocked)
    assert model.head.struct.bits == (4 if stored == "4 bits" else 8 * dtype.itemsize)
    for size in (*range(2, 13), *range(2, 13)):
        start, chain = rng.randrange(1, 60), rng.randrange(1, 4)
        parents = [-1, *(rng.randrange(-1, node) for node in range(1, size))]
        tokens = rng.choices(range(WORDS), k=chain + size)
        path = Tree(tuple(parents)).path(rng.randrange(size))
        plain, tree = (model.new_cache(CONTEXT, taps) for _ in range(2))
        tree.data.fill_(float("nan"))  # nothing is read behind the text
        for cache in (plain, tree):
            model.forward(TEXT[:start], cache)
        rows = model.forward(tokens, tree, parents, size + 1)[[0, *(node + 1 for node in path)]]
        alone = [model.forward([token], plain) for token in (*tokens[:chain], *(tokens[chain + i] for i in path))]
        tree.keep(start + chain, path)
        assert equal([rows], [torch.cat(alone[chain - 1 :])]), parents
        kept = [[c.data[:, :, : c.length], *(s[: c.length] for s in c.states.values())] for c in (plain, tree)]
        assert equal(*kept) and equal(*([model.forward(TEXT[60:63], c, rows=3)] for c in (plain, tree))), parents


@needed
def test_threads_change_no_bit() -> None:
    """Of three blocks of outputs two threads have one and two: who is done early must wait."""
    model, found = made(replace(GROUPED, hidden_size=96, intermediate_size=2048, biases=INNER)), []
    for count in (2, 3, 4, 1):  # the last is what the other tests have
        torch.set_num_threads(count)
        cache = model.new_cache(CONTEXT)
        said = [model.forward(TEXT[:40], cache, rows=40), model.forward(TEXT[40:41], cache)]
        found.append([*said, model.forward(TEXT[41:50], cache, TREE, 9), cache.data])
    assert all(equal(others, found[0]) for others in found[1:])


@needed
@pytest.mark.parametrize("name", LACKING)
def test_what_the_source_lacks_runs_in_torch(name: str) -> None:
    config, dtype = LACKING[name]
    ours, reference = made(config, dtype=dtype), made(config, True, dtype=dtype)
    assert ours.native is None and near(passes(ours), passes(reference))


@needed
def test_what_fits_no_matrix_is_refused_and_not_read() -> None:
    model = made(GROUPED)
    cache = model.new_cache(CONTEXT + 9)
    assert isinstance(model.head, Blocked)
    for wrong in (torch.randn(2, 32), torch.randn(2, 64, dtype=torch.float64), torch.randn(64)):
        with pytest.raises(ValueError, match=r"not float32 \[n, 64\]"):
            linear(wrong, model.head)
    with pytest.raises(ValueError, match=r"not float32 \[n, 64\]"):
        model.run_layers(torch.randn(2, 32), cache, 0)
    with pytest.raises(ValueError, match="do not fit the angles"):
        model.run_layers(torch.randn(2, 64), cache, CONTEXT - 1)


@needed
@pytest.mark.parametrize("stored", [None, torch.int8])
def test_weights_that_are_no_numbers_end_in_an_error(stored: torch.dtype | None) -> None:
    weights = weights_of(GROUPED)
    weights["model.layers.1.mlp.up_proj.weight"][3, 3] = float("nan")
    model = Transformer(GROUPED, weights, torch.float32, stored=stored)
    assert model.native is not None
    events = list(generate(Task(model, TEXT[:9], SamplingParams(max_tokens=20))))
    assert any(isinstance(event, Failed) and "not finite" in event.reason for event in events)


@pytest.fixture
def fresh(tmp_path, monkeypatch) -> Iterator[Path]:
    """As on a machine that has compiled nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(native.OFF, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    native.library_or_reason.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    native.library_or_reason.cache_clear()


def compiler(folder: Path, does: str) -> str:
    """A g++ that tells its version and then `does`."""
    file = folder / "g++"
    file.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 12 && exit\n{does}\n')
    file.chmod(0o755)
    return str(file)


def loads_anew() -> bool:
    native.library_or_reason.cache_clear()
    return native.library() is not None


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux tells its processor so")
@pytest.mark.parametrize("does", [None, "exit 1", 'for last; do :; done; echo nonsense > "$last"', "exit 0"])
def test_where_it_cannot_be_compiled_torch_runs_the_model(does: str | None, fresh, monkeypatch) -> None:
    found = None if does is None else compiler(fresh, does)
    monkeypatch.setattr(build.shutil, "which", lambda name: found)
    model, again = made(GROUPED), made(GROUPED, in_torch=True)
    assert model.native is None and native.missing() and str(fresh / "g++") not in native.missing()
    assert equal(*([one.forward(TEXT[:9], one.new_cache(9), rows=9)] for one in (model, again)))


# Compiles in no time, and counts.
STUB = """for last; do :; done
echo 'void specdec_layers() {{}} void specdec_normalise() {{}} void specdec_product() {{}}' |
    cc -x c - -shared -fPIC -o "$last"
echo >> "{count}"
"""


def damage(file: Path) -> None:
    code = bytearray(file.read_bytes())
    code[-40] ^= 1
    file.write_bytes(code)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty, as a full disk leaves it": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:5000]),
    "a flipped bit": damage,
    "writable by others": lambda file: file.chmod(0o666),
    "another's": lambda file: os.chown(file, 12345, 12345),
}


@needed
@pytest.mark.parametrize("how", DAMAGES)
def test_it_is_compiled_once_and_again_where_it_was_damaged(how: str, fresh, monkeypatch) -> None:
    if how == "another's" and os.geteuid():
        pytest.skip("only root can give a file away")
    count = fresh / "count"
    found = compiler(fresh, STUB.format(count=count))
    monkeypatch.setattr(build.shutil, "which", lambda name: found)
    assert loads_anew() and loads_anew() and count.read_text() == "\n"
    (file,) = (fresh / "cache" / "specdec").glob("*.so")
    other = fresh / "other" / "specdec"  # the loader knows the first one's place by now
    other.mkdir(parents=True, mode=0o700)
    DAMAGES[how](shutil.copy(file, other / file.name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh / "other"))
    assert loads_anew() and loads_anew() and count.read_text() == "\n\n"
    other.chmod(0o777)
    assert not loads_anew() and "others can write" in native.missing()


@pytest.mark.parametrize("why", ["switched off", "another processor"])
def test_where_it_is_not_wanted_nothing_is_compiled(why: str, fresh, monkeypatch) -> None:
    monkeypatch.setattr(build, "library_file", lambda: 1 / 0)
    if why == "switched off":
        monkeypatch.setenv(native.OFF, "0")
    else:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert native.library() is None and made(GROUPED).native is None


@needed
@pytest.mark.long
def test_without_avx512_it_says_the_same(monkeypatch, request) -> None:
    as_compiled = products_of_codes()
    request.getfixturevalue("fresh")
    plain = [flag for flag in build.COMPILE if flag != "-march=native"]
    assert len(plain) < len(build.COMPILE)
    monkeypatch.setattr(build, "COMPILE", [*plain, "-mavx2", "-mfma", "-mf16c"])
    native.library_or_reason.cache_clear()
    assert equal(products_of_codes(), as_compiled)
