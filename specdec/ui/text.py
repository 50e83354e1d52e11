"""Every word on the page, read from `assets/text/<language>`: strings in JSON, paragraphs in Markdown."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).resolve().parents[2] / "assets"
LANGUAGE = "en"


@functools.cache
def strings(name: str, language: str = LANGUAGE) -> dict[str, Any]:
    """The strings of one part of the page; callers only read them."""
    return json.loads((ASSETS / "text" / language / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def paragraph(name: str, language: str = LANGUAGE) -> str:
    return (ASSETS / "text" / language / f"{name}.md").read_text(encoding="utf-8")


@functools.cache
def prompts() -> dict[str, list[str]]:
    """Example prompts by kind."""
    return json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))


def kind_of(prompt: str) -> str:
    """The kind of an example prompt, "" for a prompt of the visitor's own."""
    return next((kind for kind, examples in prompts().items() if prompt in examples), "")
