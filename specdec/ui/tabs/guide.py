"""The tab Guide: the way in, the words, what is often got wrong, and what a teacher needs."""

from __future__ import annotations

from ..components.guide import guide


def build() -> None:
    guide()
