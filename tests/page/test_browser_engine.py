"""The engine in the browser against ours: WebAssembly's logits to the bit, and runs of the same seeds."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from specdec.events import to_dict
from specdec.families import hub
from specdec.families.browser import files
from specdec.families.chat import Chat, load_chat
from specdec.families.published import load_tokenizer
from specdec.families.smollm2 import find
from specdec.families.smollm2 import NAME as SMOLLM2
from specdec.families.zoo import Family, load, load_pair
from specdec.loop import generate, Task
from specdec.models import native
from specdec.models.browser import weights
from specdec.models.grouped import GGUF, INT7
from specdec.text import ids_of
from specdec.types import SamplingParams
from specdec.ui import menu
from specdec.ui.text import prompts, questions
from tests import nodejs

TOKENS = [0, 5, 10, 200, 300, 400, 17, 99, 1200, 4095, 7, 7, 7, 31, 64, 1000, 1001]
DRAFTERS = ("draft_model", "draft_model", "prompt_lookup", "none")
MODULES = {
    "layers.wasm": nodejs.find_node, "layers_threads.wasm": nodejs.bundled_node, "relaxed.wasm": nodejs.bundled_node,
    "relaxed_threads.wasm": nodejs.bundled_node,
}  # fmt: skip
FORGED = "What does <|im_end|> do?"  # text in a prompt that looks like a control token is none


def run(number: int, family: Family) -> dict[str, object]:
    """Make one of many runs: drafters, depths, temperatures and filters take turns, texts and seeds are random."""
    chance, asked = random.Random(number), questions()
    texts = [text for kind, some in prompts().items() if (kind in asked) == bool(family.chat) for text in some]
    texts += [FORGED] if family.chat else []
    drafter, text, k = DRAFTERS[number % 4], chance.choice(texts), chance.choice((1, 3, 5, 8))
    drafter = "prompt_lookup" if family.chat and drafter == "draft_model" else drafter
    params = SamplingParams(
        temperature=chance.choice((0.0, 0.8, 1.0, 1.3)), top_k=chance.choice((0, 0, 20)),
        top_p=chance.choice((1.0, 1.0, 0.9)), max_tokens=32, seed=chance.randrange(2**31), ignore_end=True,
    )  # fmt: skip
    ids = family.encode(text)
    target, one = family.lane(drafter, min(family.target.context, len(ids) + params.max_tokens))
    task = Task(
        target, ids, params, one, k, end_tokens=family.end_tokens, token_bytes=family.pieces.bytes,
        piece=family.pieces.piece,
    )  # fmt: skip
    events = [to_dict(event) for event in generate(task)]
    told = {"text": text, "prompt": ids, "drafter": drafter, "k": k, "params": events[0]["params"]}
    return told | {"events": events}


def hold(folder: Path, numbers: range, smollm2: bool = False) -> dict[str, int]:
    assert native.library() is not None, "the bits are those of native.cpp"
    family = load_pair(SMOLLM2, dtype=GGUF) if smollm2 else load("embedded", INT7)
    content = {name.upper(): data for name, data in files(family.name).items()}
    rows = family.target.forward(TOKENS, family.target.new_cache(64), (), len(TOKENS)).tolist()
    written = content | {
        "LOGITS": json.dumps({"tokens": TOKENS, "rows": rows}).encode(),
        "RUNS": json.dumps([run(number, family) for number in numbers]).encode(),
    }
    for name, data in written.items():
        (folder / name).write_bytes(data)
    for layers, node in MODULES.items():
        if smollm2 and "relaxed" in layers:  # it does not multiply codes of 8 bits, which the output matrix has
            continue
        said = nodejs.check("python/engine.test.js", node(), **{name: folder / name for name in written}, LAYERS=layers)
        counted: dict[str, int] = json.loads(re.findall(r"# (\{.*\})", said)[0])
    return counted


@pytest.mark.long
def test_the_browser_has_our_bits_and_our_runs(tmp_path) -> None:
    assert hold(tmp_path, range(9))["runs"] == 9


@pytest.mark.long
@pytest.mark.skipif(find() is None, reason="SmolLM2 is not on this machine: specdec get smollm2")
def test_the_browser_has_the_bits_of_smollm2(tmp_path) -> None:
    assert hold(tmp_path, range(2), smollm2=True)["runs"] == 2


SPACES = "\t \n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u200b\u2028\u202f\u3000\ufeff"
ODD = [*SPACES, "a", "don't", " 12", "٣", "é", "e\u0301", "矛", "😀", "?!", "\0", "_", "👩‍👧"]
ODD += ["<|endoftext|>", "<|im_end|>"]


def hold_odd_prompts(folder: Path, tokenizer: Tokenizer, chats: Sequence[Chat | None], texts: int) -> int:
    """Node reads so many texts of `ODD` in each of the templates, and compares; how many cases that were."""
    chance = random.Random(1)
    tokenizer.encode_special_tokens = True
    odd = [*ODD, *("".join(chance.choices(ODD, k=chance.randint(2, 9))) for _ in range(texts - len(ODD)))]
    cases = [
        {
            "text": text,
            "chat": chat and vars(chat),
            "ids": chat.tokens(text, tokenizer) if chat else [0, *ids_of(text, tokenizer)],
        }
        for chat in chats
        for text in odd
    ]
    (folder / "texts.json").write_text(json.dumps(cases))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    nodejs.check("python/text.test.js", TOKENIZER=folder / "tokenizer.json", TEXTS=folder / "texts.json")
    return len(cases)


CHATS = (None, Chat("<|endoftext|>User: ", "\n<|endoftext|>", trims=True), Chat(" ", "", trims=False))


@pytest.mark.parametrize("texts", [1500, pytest.param(5000, marks=pytest.mark.long)])
def test_an_odd_prompt_has_the_same_tokens_in_the_browser(tmp_path, texts: int, record_property) -> None:
    """What looks like a control token, and spaces on which Python, Rust and JavaScript differ."""
    tokenizer = load_tokenizer(menu.FAMILY / "tokenizer")
    record_property("prompts with Python's tokens", hold_odd_prompts(tmp_path, tokenizer, CHATS, texts))


@pytest.mark.long
@pytest.mark.skipif(find() is None, reason="SmolLM2 is not on this machine: specdec get smollm2")
def test_an_odd_prompt_has_the_stars_tokens_in_the_browser(tmp_path, record_property) -> None:
    place = hub.find(SMOLLM2)
    tokenizer, chat = load_tokenizer(place), load_chat(place)
    record_property("prompts with Python's tokens", hold_odd_prompts(tmp_path, tokenizer, [chat], 5000))


def test_the_table_of_tokens_is_exact() -> None:
    family = load("embedded", INT7)
    assert torch.equal(family.target.embedding.bfloat16().float(), family.target.embedding)


def test_other_models_are_refused(tmp_path) -> None:
    config = json.loads((menu.FAMILY / "draft_model/config.json").read_text())
    shutil.copytree(menu.FAMILY / "draft_model", tmp_path / "one")
    (tmp_path / "one/config.json").write_text(json.dumps(config | {"model_type": "qwen3"}))
    with pytest.raises(ValueError, match=r"lacks|does not compute"):
        weights(tmp_path / "one")


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
def test_the_binary_is_what_its_source_compiles_to(name: str) -> None:
    wasm = pytest.importorskip("tools.wasm")
    headers = Path(wasm.COMPILE[wasm.COMPILE.index("-isystem") + 1])
    if shutil.which(wasm.COMPILE[0]) is None or not headers.is_dir():
        pytest.skip("clang, or the C++ library for wasm32-wasi, is not installed")
    assert wasm.compile_module(name) == (wasm.PLACE / name).read_bytes()
