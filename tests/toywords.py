"""Tokenizers unlike the target's: a toy, and the embedded draft model with a part of its own vocabulary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file, save_file

from specdec.drafters import ForeignModel
from specdec.paths import ASSETS
from specdec.proof.toys import TableModel

EMBEDDED = ASSETS / "family"


class Chunks:
    """Token i stands for the bytes of `chunks[i]`, "" is a control token.

    A text is cut into the longest, from the left; what no chunk begins is left out.
    """

    def __init__(self, chunks: Sequence[str | bytes]) -> None:
        self.chunks = [chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks]

    def bytes(self, token: int) -> bytes:
        return self.chunks[token]

    def piece(self, token: int) -> str:
        return self.chunks[token].decode(errors="backslashreplace") or f"<|{token}|>"

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), list[int]()
        while data:
            fitting = [i for i, chunk in enumerate(self.chunks) if chunk and data.startswith(chunk)]
            longest = max(fitting, key=lambda i: len(self.chunks[i]), default=None)
            ids += [] if longest is None else [longest]
            data = data[1 if longest is None else len(self.chunks[longest]) :]
        return ids


def foreign(target: str, own: str, seed: int = 4, prefix: tuple[int, ...] = (), context: int = 64) -> ForeignModel:
    """Chunks are written with spaces between; "-" is a control token."""
    ours, theirs = (Chunks(["" if chunk == "-" else chunk for chunk in words.split()]) for words in (target, own))
    model = TableModel(len(theirs.chunks), seed, context=context)
    return ForeignModel(model, theirs, ours, len(ours.chunks), prefix)


def embedded_target_into(folder: Path) -> Path:
    """The embedded target with its tokenizer beside it, as the Hub has it."""
    shutil.copytree(EMBEDDED / "target", folder)
    shutil.copytree(EMBEDDED / "tokenizer", folder, dirs_exist_ok=True)
    return folder


def shortened_draft_into(folder: Path, count: int) -> Path:
    """The embedded draft model with the first `count` of its 4,096 tokens, numbered from the other end.

    A byte-level BPE with fewer merges: words fall into more pieces than the model was trained on, and no id means
    what it means to the target.
    """
    shutil.copytree(EMBEDDED / "draft_model", folder)
    (weights,) = folder.glob("*.safetensors")
    tensors = load_file(weights)
    name = "model.embed_tokens.weight"
    tensors[name] = tensors[name][:count].flip(0).contiguous()
    save_file(tensors, weights, {"format": "pt"})
    for path in (folder / "config.json", folder / "generation_config.json"):
        facts = json.loads(path.read_text())
        facts |= {key: count - 1 for key in ("bos_token_id", "eos_token_id") if key in facts}
        path.write_text(json.dumps(facts | ({"vocab_size": count} if "vocab_size" in facts else {})))
    data = json.loads((EMBEDDED / "tokenizer" / "tokenizer.json").read_text(encoding="utf-8"))
    model = data["model"]
    model["vocab"] = {piece: count - 1 - token for piece, token in model["vocab"].items() if token < count}
    model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= model["vocab"].keys()]
    data["added_tokens"][0]["id"] = count - 1
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    return folder
