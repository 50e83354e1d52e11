"""The engine in the browser against ours: WebAssembly's logits to the bit, and runs of the same seeds."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest
import torch

from specdec.events import to_dict
from specdec.families import hub
from specdec.families.chat import Chat, load_chat
from specdec.families.export import browser_files
from specdec.families.published import load_tokenizer
from specdec.families.smollm2 import find
from specdec.families.smollm2 import NAME as SMOLLM2
from specdec.families.zoo import Family, load, load_pair
from specdec.loop import generate
from specdec.models import native
from specdec.models.browser import weights
from specdec.models.grouped import GGUF, INT7
from specdec.task import Task
from specdec.text import ids_of
from specdec.types import SamplingParams
from specdec.ui import menu
from specdec.ui.text import prompts, questions
from tests import nodejs
from tests.shallow import rewrite

TOKENS = [0, 5, 10, 200, 300, 400, 17, 99, 1200, 4095, 7, 7, 7, 31, 64, 1000, 1001]
DRAFTERS = ("draft_model", "draft_model", "prompt_lookup", "none")
MODULES = {
    "layers.wasm": nodejs.find_node, "layers_threads.wasm": nodejs.bundled_node, "relaxed.wasm": nodejs.bundled_node,
    "relaxed_threads.wasm": nodejs.bundled_node,
}  # fmt: skip
FORGED = "What does <|im_end|> do?"  # text in a prompt that looks like a control token is none
STAR = pytest.mark.skipif(find() is None, reason="SmolLM2 is not on this machine: specdec get smollm2")


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
    capacity = min(family.target.context, len(ids) + params.max_tokens)
    target, one = family.new_drafter(drafter, capacity, family.template_counts(text))
    task = Task(
        target, ids, params, one, k, end_tokens=family.end_tokens, token_bytes=family.pieces.bytes,
        piece=family.pieces.piece,
    )  # fmt: skip
    events = [to_dict(event) for event in generate(task)]
    told = {"text": text, "prompt": ids, "drafter": drafter, "k": k, "params": events[0]["params"]}
    return told | {"events": events}


@pytest.mark.long
@pytest.mark.parametrize(("name", "runs"), [("embedded", 9), pytest.param(SMOLLM2, 2, marks=STAR)])
def test_the_browser_has_our_bits_and_our_runs(tmp_path, name: str, runs: int) -> None:
    assert native.library() is not None, "the bits are those of native.cpp"
    family = load_pair(SMOLLM2, dtype=GGUF) if name == SMOLLM2 else load("embedded", INT7)
    rows = family.target.forward(TOKENS, family.target.new_cache(64), (), len(TOKENS)).tolist()
    written = {file.upper(): data for file, data in browser_files(family.name).items()} | {
        "LOGITS": json.dumps({"tokens": TOKENS, "rows": rows}).encode(),
        "RUNS": json.dumps([run(number, family) for number in range(runs)]).encode(),
    }
    places = {file: tmp_path / file for file in written}
    for file, data in written.items():
        places[file].write_bytes(data)
    for layers, node in MODULES.items():
        if name == SMOLLM2 and "relaxed" in layers:  # it does not multiply codes of 8 bits, which the output matrix has
            continue
        said = nodejs.check("python/engine.test.js", node(), LAYERS=layers, **places)
        assert json.loads(re.findall(r"# (\{.*\})", said)[0])["runs"] == runs


SPACES = "\t \n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u200b\u2028\u202f\u3000\ufeff"
ODD = [*SPACES, "a", "don't", " 12", "٣", "é", "e\u0301", "矛", "😀", "?!", "\0", "_", "👩‍👧"]
ODD += ["<|endoftext|>", "<|im_end|>"]
CHATS = (None, Chat("<|endoftext|>User: ", "\n<|endoftext|>", trims=True), Chat(" ", "", trims=False))


@pytest.mark.parametrize("name", ["embedded", pytest.param(SMOLLM2, marks=[pytest.mark.long, STAR])])
def test_an_odd_prompt_has_the_same_tokens_in_the_browser(tmp_path, name: str, record_property) -> None:
    """What looks like a control token, and spaces on which Python, Rust and JavaScript differ."""
    place = hub.find(SMOLLM2) if name == SMOLLM2 else menu.FAMILY / "tokenizer"
    chats, tokenizer = [load_chat(place)] if name == SMOLLM2 else CHATS, load_tokenizer(place)
    chance = random.Random(1)
    tokenizer.encode_special_tokens = True
    odd = [*ODD, *("".join(chance.choices(ODD, k=chance.randint(2, 9))) for _ in range(5000 - len(ODD)))]
    cases = [
        {
            "text": text,
            "chat": chat and vars(chat),
            "ids": chat.tokens(text, tokenizer) if chat else [0, *ids_of(text, tokenizer)],
        }
        for chat in chats
        for text in odd
    ]
    (tmp_path / "texts.json").write_text(json.dumps(cases))
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_str())
    nodejs.check("python/text.test.js", TOKENIZER=tmp_path / "tokenizer.json", TEXTS=tmp_path / "texts.json")
    record_property("prompts with Python's tokens", len(cases))


def test_the_table_of_tokens_is_exact() -> None:
    family = load("embedded", INT7)
    assert torch.equal(family.target.embedding.bfloat16().float(), family.target.embedding)


def test_other_models_are_refused(tmp_path) -> None:
    shutil.copytree(menu.FAMILY / "draft_model", tmp_path / "one")
    rewrite(tmp_path / "one", {"model_type": "qwen3"})
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
