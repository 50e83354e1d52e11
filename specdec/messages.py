"""Sentences for users: those that can be translated, and the error that carries one."""

from __future__ import annotations

from typing import Any


class TranslatableText(str):
    """An English sentence for users. It keeps its template and values, so that the page can translate it."""

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> TranslatableText:
        text = super().__new__(cls, template.format(**values))
        text.template, text.values = template, values
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


class Refused(ValueError):
    """Raised for what somebody asked and cannot have. The message is one sentence, for them; no other error's is."""
