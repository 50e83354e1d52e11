"""What a visitor asks for, checked. Input comes from the page, links and calls, so no type is taken on trust."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..families import presets
from ..methods import ADAPTIVE, CHAINS_ONLY, DEFAULT, EMBEDDED, find_method, METHODS, OPEN, ROUNDED, RULES
from ..settings import GONE, RunRequest, Setting, SETTINGS
from ..types import has_lone_surrogate, MAX_STOP_LENGTH, MAX_STOPS
from .menu import drafters, families, has_peer, is_pair
from .text import sentences, strings, translated

SWITCH = {"1": True, "true": True, "0": False, "false": False}
MAX_TEXT = 500  # characters of an address, or of a key
DRAWS = (100, 1_000, 5_000, 10_000, 20_000)  # of a certificate
PAIRS = ("toy", "embedded")


class InputError(ValueError):
    """One sentence for the visitor that says what to do."""


def check(*sent: Any, **named: Any) -> RunRequest:
    """The request, or an InputError for the first thing that is wrong with it. A peer that cannot be has no lane.

    The settings are those of the table, in its order or by name.
    """
    given = CALL.bind(*sent, **named)
    given.apply_defaults()
    asked = {name: checked(SETTINGS[name], given.arguments[name]) for name in IN_TURN}
    drafter = known_drafter(asked["drafter"], asked["family"])
    if asked["peer"] and drafter == OPEN and DEFAULT in drafters(asked["family"]):
        drafter = asked["drafter"] = DEFAULT  # transformers has such a drafter, too
    if asked["rule"] in CHAINS_ONLY and (method := find_method(drafter)) and method.tree:
        raise InputError(say("chains_only"))
    # transformers has no target in 8 bits
    asked["peer"] &= has_peer(drafter) and ROUNDED.get(asked["family"]) != "int8"
    return RunRequest.from_settings(asked)


def checked(setting: Setting, value: Any) -> Any:
    """The value, as the engine takes it."""
    if setting.name in CHECKS:
        return CHECKS[setting.name](value)
    if setting.type_ is bool:
        if not isinstance(value, bool):
            raise InputError(say(setting.name))
        return value
    return number(setting, value)


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """`mistake` "" is the shipped rule; `text` is where the embedded pair is certified."""

    pair: str
    mistake: str
    draws: int
    seed: int
    text: str = ""


def check_certificate(
    pair: Any = "toy", mistake: Any = "", draws: Any = 20_000, seed: Any = 0, text: Any = ""
) -> CertificateRequest:
    known = strings("lossless")["mistakes"] | strings("lossless")["harmless"]
    if not isinstance(pair, str) or pair not in PAIRS:
        raise InputError(say("pair", names=", ".join(PAIRS)))
    if not isinstance(mistake, str) or mistake not in ("", *known):
        raise InputError(say("mistake", names=", ".join(known)))
    many, seed = one_of(DRAWS, draws), number(SETTINGS["seed"], seed)
    return CertificateRequest(pair, mistake, many, seed, readable(text) if pair == "embedded" else "")


def listed(names: Sequence[str]) -> str:
    """Drafters with their variants in brackets: `medusa (:tree), none`."""
    variants: dict[str, list[str]] = {}
    for base, colon, variant in (name.partition(":") for name in names):
        variants.setdefault(base, []).extend([colon + variant] if colon else [])
    return ", ".join(f"{base} ({', '.join(more)})" if more else base for base, more in variants.items())


def server_texts(*texts: Any) -> list[str]:
    """Addresses and a key, without the spaces around them."""
    for text in texts:
        if not (text is None or isinstance(text, str)) or len(text or "") > MAX_TEXT:
            raise InputError(say("server"))
    return [(text or "").strip() for text in texts]


def one_of(known: Sequence[int], draws: Any) -> int:
    if not is_number(draws) or draws not in known:
        raise InputError(say("draws", names=", ".join(f"{n:,}" for n in known)))
    return int(draws)


def known_family(name: Any) -> str:
    names = families()
    if isinstance(name, str) and (gone := GONE.get("--universal" if "+ ~" in name else f"--family {name}")):
        raise InputError(translated(gone))
    if isinstance(name, str) and (name in names or is_pair(name)):
        return name
    raise InputError(say("family" if presets.allowed() is not None else "family_or_pair", names=", ".join(names)))


def known_drafter(name: Any, family: str) -> str:
    """`OPEN`, one of the menu, or `adaptive:NAME`: that one, with a depth chosen in every cycle."""
    if gone := GONE.get(f"--drafter {name}".replace(f"{ADAPTIVE}:", "")):
        raise InputError(translated(gone))
    names = [OPEN, *drafters(family)]
    fixed = [name for name in names[1:] if METHODS[name].kind not in ("wrapper", "none")]
    if not isinstance(name, str) or name not in [*names, *(f"{ADAPTIVE}:{one}" for one in fixed)]:
        raise InputError(say("drafter", names=listed(names)))
    return name


def known_rule(name: Any) -> str:
    if not isinstance(name, str) or name not in RULES:
        raise InputError(say("rule", names=", ".join(RULES)))
    return name


def readable(prompt: Any) -> str:
    if not isinstance(prompt, str):
        raise InputError(say("not_text"))
    limit = int(SETTINGS["prompt"].high)
    if len(prompt) > limit:  # before anything looks at every character
        raise InputError(say("too_long", n=f"{len(prompt):,}", limit=f"{limit:,}"))
    if "\0" in prompt:
        raise InputError(say("nul"))
    if has_lone_surrogate(prompt):
        raise InputError(say("surrogate"))
    if not prompt.strip():
        raise InputError(say("empty"))
    return prompt


def sent(event: Any, name: str) -> Any:
    """What an event of the page brings under that name, None if nothing. Anybody can send anything in its place."""
    try:
        return getattr(event, name, None)
    except TypeError:  # it is no mapping
        return None


def is_number(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, float) and math.isfinite(value))


def number(setting: Setting, value: Any) -> Any:
    """Within the bounds. Sliders send 4.0 for 4; 4.5 is refused where a whole number is wanted."""
    low, high, whole = setting.low, setting.high, setting.type_ is int
    good = is_number(value) and low <= value <= high and not (setting.above and value == low)
    if not good or (whole and value != int(value)):
        name = strings("page")["names"][setting.name]
        error = "whole" if whole else "above" if setting.above else "number"
        raise InputError(say(error, name=name, low=f"{low:g}", high=f"{high:,}" if whole else f"{high:g}"))
    return setting.type_(value)


def stops(value: Any) -> tuple[str, ...]:
    r"""One stop string a line; `\n` stands for a line break."""
    wrong = InputError(say("stop", count=MAX_STOPS, length=MAX_STOP_LENGTH))
    if value is None:
        return ()
    if not isinstance(value, str) or len(value) > 4 * MAX_STOPS * MAX_STOP_LENGTH:
        raise wrong
    found = tuple(line.replace("\\n", "\n") for line in value.split("\n") if line)
    if len(found) > MAX_STOPS or any(len(item) > MAX_STOP_LENGTH for item in found):
        raise wrong
    if "\0" in value or has_lone_surrogate(value):
        raise wrong
    return found


def say(error: str, **values: Any) -> str:
    return strings("page")["errors"][error].format(**values)


CALL = inspect.Signature([one.parameter for one in SETTINGS.values()])
IN_TURN = sorted(SETTINGS, key=lambda name: name != "family")  # a drafter belongs to a family
CHECKS: dict[str, Callable[[Any], Any]] = {
    "prompt": readable, "drafter": lambda name: name, "rule": known_rule, "family": known_family, "stop": stops,
}  # fmt: skip


def from_link(query: Mapping[str, str], target: str = EMBEDDED) -> tuple[dict[str, Any], str]:
    """What a link asks for: the good ones among its settings, by name, and what is wrong with each of the others.

    Without a family of its own its drafter is one of `target`, the page's by default.
    """
    good: dict[str, Any] = {}
    wrong = [translated(GONE[f"--{name}"]) for name in query if f"--{name}" in GONE]
    for name in IN_TURN:
        if name in query:
            value = as_typed(SETTINGS[name], query[name])
            try:
                check(**{"prompt": "any", "family": target, **good, name: value})
                good[name] = value
            except InputError as error:
                wrong.append(str(error))
    return good, strings("traces")["link"]["bad"].format(reasons=sentences(*dict.fromkeys(wrong))) if wrong else ""


def as_typed(setting: Setting, text: str) -> Any:
    """Of the type that the setting has, where the text can be read so; else the text, for `check` to refuse."""
    if setting.type_ is bool:
        return SWITCH.get(text.lower(), text)
    if setting.type_ is str:
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def tab_of_link(query: Mapping[str, str], tabs: Sequence[str]) -> tuple[str, str]:
    """The tab to open, "" for none, and a sentence if there is no such tab."""
    asked = query.get("tab", "")
    if not asked or asked in tabs:
        return asked, ""
    return "", strings("traces")["link"]["tab"].format(names=", ".join(tabs))
