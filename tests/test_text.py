import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, Tokenizer, trainers

from specdec.text import Pieces, TextStream


def chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return [*parts, data[at:]]


texts = st.text(max_size=30)
cuts = st.lists(st.integers(0, 4), max_size=40)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(texts, cuts)
def test_pieces_of_any_cut_join_to_the_text(text: str, sizes: list[int]) -> None:
    parts = chunks(text.encode(), sizes)
    stream = TextStream()
    shown = list(map(stream.push, parts))
    assert "".join(shown) + stream.flush() == text
    assert all("\ufffd" not in piece for piece in shown) or "\ufffd" in text


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.text("ab", min_size=1, max_size=30), cuts, st.text("ab", min_size=1, max_size=4))
def test_a_stop_string_cuts_at_its_first_place(text: str, sizes: list[int], stop: str) -> None:
    parts = chunks(text.encode(), sizes)
    stream = TextStream((stop,))
    shown = ""
    for part in parts:
        shown += stream.push(part)
        assert stop not in shown
        if stream.stopped:
            break
    assert shown + stream.flush() == text.partition(stop)[0]
    assert stream.stopped == (stop in text)


@pytest.fixture(scope="module")
def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        ["a few words, a few more"] * 3,
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        ),
    )
    return tokenizer


@settings(derandomize=True, max_examples=200, deadline=None)
@given(text=texts)
def test_bytes_of_tokens_join_to_the_text(byte_level, text: str) -> None:
    pieces = Pieces(byte_level)
    assert b"".join(map(pieces.bytes, byte_level.encode(text).ids)) == text.encode()


def test_odd_tokens_have_pieces_for_people(byte_level) -> None:
    pieces = Pieces(byte_level)
    assert pieces.piece(byte_level.token_to_id("<|end|>")) == "<|end|>"
    assert pieces.bytes(byte_level.token_to_id("<|end|>")) == b""
    assert [pieces.piece(i) for i in byte_level.encode("€").ids] == ["<0xE2>", "<0x82>", "<0xAC>"]
    assert pieces.bytes(99_999) == b""


def test_sentencepiece_tokens() -> None:
    tokenizer = Tokenizer(models.BPE({"▁the": 0, "<0xF0>": 1, "x": 2}, [], byte_fallback=True))
    pieces = Pieces(tokenizer)
    assert [pieces.bytes(i) for i in range(3)] == [b" the", b"\xf0", b"x"]


def test_what_only_looks_like_a_byte_token_is_text() -> None:
    words = ["<0xZZ>", "<0x+1>", "<0x41x"]
    pieces = Pieces(Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [])))
    assert [pieces.bytes(i) for i in range(3)] == [word.encode() for word in words]


def test_no_control_token_looks_like_text() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_special_tokens(["\u2581<EOT>", "<|end|>"])
    assert [Pieces(tokenizer).piece(token) for token in range(3)] == ["a", "<\u2581<EOT>>", "<|end|>"]
