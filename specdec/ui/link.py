"""What a link may ask for: `?drafter=medusa&k=4&prompt=…` fills in the settings, `?tab=step` opens a tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .request import check, InputError
from .text import sentences, strings

NUMBERS = ("k", "temperature", "top_p", "top_k", "max_tokens", "seed")
NAMES = ("family", "drafter", "rule", "prompt", *NUMBERS, "stop", "peer", "grammar")  # a drafter belongs to a family
SWITCH = {"1": True, "true": True, "0": False, "false": False}


def settings(query: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The good ones among the settings, by name, and what is wrong with each of the others, "" if all are good."""
    good: dict[str, Any] = {}
    wrong: list[str] = []
    for name in NAMES:
        if name in query:
            value = read(name, query[name])
            try:
                check(**{"prompt": "any", **good, name: value})
                good[name] = value
            except InputError as error:
                wrong.append(str(error))
    return good, strings("traces")["link"]["bad"].format(reasons=sentences(*dict.fromkeys(wrong))) if wrong else ""


def read(name: str, text: str) -> Any:
    """Of the type that the setting has, where the text can be read so; else the text, for `check` to refuse."""
    if name == "peer":
        return SWITCH.get(text, text)
    if name not in NUMBERS:
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def tab(query: Mapping[str, str], tabs: Sequence[str]) -> tuple[str, str]:
    """The tab to open, "" for none, and a sentence if there is no such tab."""
    asked = query.get("tab", "")
    if not asked or asked in tabs:
        return asked, ""
    return "", strings("traces")["link"]["tab"].format(names=", ".join(tabs))
