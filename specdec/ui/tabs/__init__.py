"""The tabs in their order. The module of that name builds one; its words are in `assets/text/<language>/NAME.json`."""

from __future__ import annotations

from ..text import strings

TABS = ("race", "step", "lossless", "methods", "theory", "guide")


def labels() -> dict[str, str]:
    """Say what stands on each tab, in the current language."""
    return {name: strings(name)["tab"] for name in TABS}
