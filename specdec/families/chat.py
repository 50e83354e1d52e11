"""What a model trained on conversations expects around a prompt: its chat template, rendered once.

Control tokens come from the template alone; text from people never becomes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..models import gguf
from ..models.checkpoint import read_json
from ..text import ids_of
from . import gguf_tokenizer
from .template import around, FILE, TABLE

LARGEST = 2**20  # characters of a template


@dataclass(frozen=True)
class Chat:
    """The text before and after a prompt. `trims` says that the template strips the prompt."""

    before: str
    after: str
    trims: bool

    def tokens(self, prompt: str, tokenizer: Tokenizer) -> list[int]:
        """As if the template had been rendered with that prompt; but what looks like a control token in it is none."""
        prompt = prompt.strip() if self.trims else prompt
        known = tokenizer.get_added_tokens_decoder()
        own, *around = (
            with_controls(text, tokenizer) for text in (self.before + prompt + self.after, self.before, self.after)
        )
        if sum(token in known for token in own) == sum(token in known for part in around for token in part):
            return own
        before, after = around
        return [*before, *ids_of(prompt, tokenizer), *after]

    def around(self, tokenizer: Tokenizer) -> tuple[int, int]:
        """How many tokens stand before and after a prompt."""
        return len(with_controls(self.before, tokenizer)), len(with_controls(self.after, tokenizer))


def with_controls(text: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of a template's text, control tokens among them."""
    tokenizer.encode_special_tokens = False
    try:
        return ids_of(text, tokenizer)
    finally:
        tokenizer.encode_special_tokens = True


def read(folder: Path) -> Chat | None:
    """The template of a checkpoint, without thinking where it can be left out; None for a model without one.

    ValueError where the template cannot be rendered, or leaves the prompt out.
    """
    if gguf.is_file(folder):
        header = gguf.read(folder)
        template, controls = header.value("tokenizer.chat_template", str, "") or None, gguf_tokenizer.controls(header)
    else:
        said = read_json(folder / TABLE) if (folder / TABLE).exists() else {}
        template = template_of(folder, said)
        controls = {name: text_of(value) for name, value in said.items() if name.endswith("_token") and text_of(value)}
    if template is None:
        return None
    if len(template) > LARGEST:
        raise ValueError(f"the chat template is longer than {LARGEST:,} characters")
    return Chat(*around(template, controls))


def template_of(folder: Path, said: dict[str, Any]) -> str | None:
    """From its own file, or the tokenizer's settings, where it may be the one named "default" in a list."""
    if (folder / FILE).is_file():
        with (folder / FILE).open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST + 1)
    found = said.get("chat_template")
    if isinstance(found, list):
        defaults = (one for one in found if isinstance(one, dict) and one.get("name") == "default")
        found = next(defaults, {}).get("template")
    return found if isinstance(found, str) and found.strip() else None


def text_of(value: Any) -> str:
    """A control token is its text, or an object that holds it."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""
