"""A GGUF file is the model that it holds: the same ids, logits and texts. A hostile one costs a sentence."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from specdec import exposure
from specdec.families import chat, hub, presets, published, zoo
from specdec.families.zoo import load_pair
from specdec.messages import Refused
from specdec.models import gguf as reading
from specdec.models import gguf_header
from specdec.models.grouped import GGUF
from specdec.models.transformer import Transformer
from specdec.ui import menu

pytest.importorskip("gguf")
from tests.families import togguf

TOKENS = [1, *random.Random(0).choices(range(3, 259), k=40)]
TEXTS = (
    "Why is the sea salty?", "In 1984, the old keeper said:\n    return x  # 30 km", "", " ", "  two  spaces ",
    "naïve café ünïcode e\u0301 — “quotes”", "日本語のテキスト、中文。", "🙂👩‍👩‍👧‍👦 emoji",
    "don't we'll I'M\r\n\r\n\ttabs", "12345678 1,000.50 3/4", "<|im_start|>user </s> <s> [INST]", "x\u00a0y\u2009z",
    "العربية हिन्दी ไทย",
)  # fmt: skip


def forward(family: zoo.Family, tokens: list[int]) -> torch.Tensor:
    return family.target.forward(tokens, family.target.new_cache(len(tokens)), rows=len(tokens)).float()


@pytest.mark.parametrize(
    ("name", "kind"),
    [*(("llama", kind) for kind in togguf.KINDS), *((name, "Q8_0") for name in togguf.MODELS if name != "llama")],
)
def test_the_logits_are_those_of_transformers(name: str, kind: str, tmp_path) -> None:
    path = tmp_path / "model.gguf"
    expected = togguf.logits(name, togguf.write(path, name, kind), TOKENS)
    family = load_pair(path, dtype=torch.float32)
    assert family.target.vocabulary == 260  # rows of no token are cut
    assert float(expected.std()) > 0.01  # or nothing is compared
    torch.testing.assert_close(forward(family, TOKENS), expected[:, :260], atol=1e-4, rtol=1e-4)
    assert family.prefix == (1,) and family.end_tokens == {2}


def test_bfloat16_is_the_rounded_model(tmp_path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", "Q8_0")
    wide, narrow = (forward(load_pair(path, dtype=d), TOKENS) for d in (torch.float32, torch.bfloat16))
    assert 0 < float((wide - narrow).abs().max()) < 0.1 * float(wide.max() - wide.min())


def trained() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens of a small byte-level tokenizer, learnt from the texts that are compared, and merges that do not lead to
    all of them."""
    from tokenizers import models, pre_tokenizers, trainers

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    words.train_from_iterator([*TEXTS * 3, Path(__file__).read_text(encoding="utf-8")], trainer)
    model = json.loads(words.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"][:-150]]


def theirs(kind: str, vocab: dict[str, int], merges: list[tuple[str, str]]) -> Any:
    from transformers.convert_slow_tokenizer import TikTokenConverter

    if kind == "qwen2":
        return transformers.Qwen2Tokenizer(vocab=vocab, merges=merges).backend_tokenizer
    from tokenizers import models, pre_tokenizers, Regex

    if kind in ("gpt-2", "smollm"):
        words = transformers.GPT2Tokenizer(vocab=vocab, merges=merges).backend_tokenizer
        if kind == "smollm":  # as its tokenizer.json has it, which transformers' own reader of GGUF leaves out
            words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), words.pre_tokenizer])
        return words
    words = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    pattern = TikTokenConverter().pattern  # Llama 3's
    cut = pre_tokenizers.Split(Regex(pattern), "isolated")
    words.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
    return words


@pytest.mark.parametrize("kind", ["gpt-2", "smollm", "qwen2", "llama-bpe"])
def test_byte_level_words_are_cut_as_transformers_cuts_them(kind: str, tmp_path) -> None:
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
    ours, reference = published.load_tokenizer(path), theirs(kind, vocab, merges)
    ours.encode_special_tokens = True
    source = Path(__file__).read_text(encoding="utf-8").replace("<think>", "")
    for text in (*TEXTS, source):
        expected = reference.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).ids == expected and (kind == "qwen2" or ours.decode(expected) == text)
    assert ours.encode("<think>").ids == [len(names) + 1]  # a token of its own, and not a control token
    assert len(names) not in ours.encode("<|im_end|>").ids
    assert published.end_tokens(path) == {len(names)}


def test_a_sentencepiece_tokenizer_is_converted_by_transformers(tmp_path) -> None:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "h", "i", "hi", "▁hi"]

    def words(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores([-float(i) for i in range(len(tokens))])
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * 5])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", words=words)
    family = load_pair(path)
    assert family.encode("hi é") == [1, 263, 259, 3 + 0xC3, 3 + 0xA9] and family.end_tokens == {2}
    assert b"".join(map(family.pieces.bytes, family.encode("hi é")[1:])).decode() == " hi é"


def test_the_chat_template_of_a_file_stands_around_the_prompt(tmp_path) -> None:
    template = "{{ bos_token }}[INST] {{ messages[0].content }} [/INST]"
    togguf.write(tmp_path / "model.gguf", "llama", tokenizer__chat_template=template)
    assert chat.load_chat(tmp_path / "model.gguf") == chat.Chat("<s>[INST] ", " [/INST]", False)
    togguf.write(tmp_path / "plain.gguf", "llama")
    assert chat.load_chat(tmp_path / "plain.gguf") is None


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "model.gguf"
    togguf.write(path, "llama", "Q8_0", general__name="x", tokenizer__chat_template="{{ messages[0].content }}")
    return path.read_bytes()


DAMAGED = {
    "not a GGUF file": lambda data: b"PK\3\4" + data[4:],
    "not a GGUF file, or damaged": lambda data: data[:3_000],
    "or damaged, or newer": lambda data: data[:24] + (2**40).to_bytes(8, "little") + data[32:],
    "cannot be read .KeyError: 'token_embd": lambda data: data.replace(b"token_embd", b"token_embx"),
    "the file ends too early": lambda data: data[: len(data) // 2],
    "mamba models are not among llama": lambda data: data.replace(b"llama", b"mamba", 1),
    "ffn_ux.weight, which no model of llama": lambda data: data.replace(b"blk.1.ffn_up", b"blk.1.ffn_ux"),
    "lacks model.layers.1.mlp.up": lambda data: data.replace(b"blk.1.ffn_up", b"blk.7.ffn_up"),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_a_damaged_or_foreign_file_is_told_in_a_sentence(reason: str, whole, tmp_path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(DAMAGED[reason](whole))
    with pytest.raises(Refused, match=f"^{path}: .*{reason}") as caught:
        load_pair(path)
    assert "\n" not in str(caught.value)


def test_a_scaling_of_positions_is_refused_in_a_sentence(tmp_path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", llama__rope__scaling__type="yarn", llama__rope__scaling__factor=4.0)
    with pytest.raises(Refused, match=r"rotary scaling \(yarn, factor 4\) is not supported in GGUF files"):
        load_pair(path)


def test_a_file_is_a_target_wherever_a_folder_is(whole, tmp_path, monkeypatch) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    assert presets.parse(f"{path} + {path}") == presets.ModelNames("pair", str(path), (str(path),))
    assert hub.is_here(str(path)) and hub.find(path) == path
    with pytest.raises(Refused, match="no GGUF file"):
        hub.find(tmp_path / "other.gguf")
    assert menu.is_offered(str(path))
    monkeypatch.setattr(exposure, "host", exposure.Host("public"))
    assert not menu.is_offered(str(path))


@pytest.mark.parametrize("kind", reading.BLOCKS)
@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_the_codes_of_a_file_are_its_numbers(name: str, kind: str, tmp_path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, name, kind)
    stored = reading.Stored(gguf_header.read_header(path))
    matrices = [key for key, tensor in stored.meta_tensors.items() if tensor.dim() == 2]
    assert len(matrices) > 7 and all(torch.equal(stored.codes(key).dequantised(), stored[key]) for key in matrices)


@pytest.mark.parametrize("kind", reading.BLOCKS)
def test_a_target_in_the_files_codes_is_the_same_in_torch(kind: str, tmp_path, monkeypatch) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", kind)
    exact, family = load_pair(path, dtype=torch.float32), load_pair(path, dtype=GGUF)
    assert family.precision == "gguf" and family.describe()["target"]["weights"] == "gguf"
    ours = forward(family, TOKENS)
    assert 0.0 < (moved := distance(forward(exact, TOKENS), ours)) < 0.02
    rows = [int(row.argmax()) for row in ours]
    cache = family.target.new_cache(len(TOKENS))
    assert rows == [int(family.target.forward([token], cache).argmax()) for token in TOKENS]
    monkeypatch.setattr("specdec.models.native.library", lambda: None)
    in_torch = load_pair(path, dtype=GGUF)
    assert isinstance(in_torch.target, Transformer) and in_torch.target.native is None
    assert distance(forward(in_torch, TOKENS), ours) < 0.7 * moved


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(0.5 * (one.softmax(-1) - other.softmax(-1)).abs().sum(-1).mean())


@pytest.mark.parametrize("kind", ["Q5_0", "Q6_K", "F16"])
def test_other_kinds_of_codes_are_refused(kind: str, tmp_path) -> None:
    path = tmp_path / "model.gguf"
    togguf.write(path, "llama", kind)
    with pytest.raises(Refused, match=f"is {kind}; only Q4_0, Q4_1, Q8_0 can .* stored; choose int8"):
        load_pair(path, dtype=GGUF)
