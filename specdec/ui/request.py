"""Check the requests of visitors, which come from the page, from links and from the API."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..families import presets
from ..messages import Refused
from ..methods import ADAPTIVE, DEFAULT_DRAFTER, EMBEDDED, METHODS, RULE_FACTS
from ..proof import SAMPLE_SIZES
from ..settings import check_text, read_stop, RunRequest, Setting, SETTINGS
from ..types import has_lone_surrogate, MAX_STOP_LENGTH, MAX_STOPS
from .menu import drafters, is_offered, targets
from .text import sentences, strings, translated

SWITCH = {"1": True, "true": True, "0": False, "false": False}
PAIRS = ("toy", "embedded")  # pairs of models that a certificate can use


def error_text(error: str, **values: Any) -> str:
    return strings("page")["errors"][error].format(**values)


def check(*settings: Any, **named: Any) -> RunRequest:
    """Check settings, in the order of `SETTINGS` or by name. Raises Refused; `translated` has its sentence."""
    bound = SIGNATURE.bind(*settings, **named)
    bound.apply_defaults()
    values = {name: check_setting(SETTINGS[name], bound.arguments[name]) for name in IN_TURN}
    drafter = check_drafter(values["drafter"], values["target"])
    # Transformers does not have every drafter, and cannot run our target in 8 bits.
    has_peer = METHODS[drafter].peer if drafter in METHODS else drafter == DEFAULT_DRAFTER
    values["peer"] &= has_peer and presets.parse(values["target"]).precision != "int8"
    return RunRequest.from_settings(values)


def check_setting(setting: Setting, value: Any) -> Any:
    if setting.name in CHECKS:
        return CHECKS[setting.name](value)
    if setting.type_ is bool:
        if not isinstance(value, bool):
            raise Refused(error_text(setting.name))
        return value
    return check_number(setting, value)


def check_number(setting: Setting, value: Any) -> Any:
    """Return a number within its bounds. An integer may come from a slider, as 4.0."""
    low, high, whole = setting.low, setting.high, setting.type_ is int
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and low <= value <= high) or (whole and value != int(value)):
        name = strings("page")["names"][setting.name]
        error, limit = ("whole", f"{high:,}") if whole else ("number", f"{high:g}")
        raise Refused(error_text(error, name=name, low=f"{low:g}", high=limit))
    return setting.type_(value)


def check_prompt(prompt: Any) -> str:
    limit = int(SETTINGS["prompt"].high)
    if not isinstance(prompt, str):
        raise Refused(error_text("not_text"))
    if len(prompt) > limit:
        raise Refused(error_text("too_long", n=f"{len(prompt):,}", limit=f"{limit:,}"))
    check_text(prompt)
    return prompt


def check_target(name: Any) -> str:
    if not is_offered(name):
        error = "target" if presets.allowed_pairs() is not None else "target_or_pair"
        raise Refused(error_text(error, names=", ".join(targets())))
    return name


def check_drafter(name: Any, target: str) -> str:
    """Accept `DEFAULT_DRAFTER`, a drafter of the menu, or `adaptive:NAME`."""
    names = drafters(target)
    adaptive = [f"{ADAPTIVE}:{inner}" for inner in names if METHODS[inner].kind not in ("wrapper", "none")]
    if name not in (DEFAULT_DRAFTER, *names, *adaptive):
        raise Refused(error_text("drafter", names=", ".join((DEFAULT_DRAFTER, *names))))
    return name


def check_rule(name: Any) -> str:
    if not isinstance(name, str) or name not in RULE_FACTS:
        raise Refused(error_text("rule", names=", ".join(RULE_FACTS)))
    return name


def check_stops(lines: Any) -> tuple[str, ...]:
    """Read one stop string from each line, by `read_stop`."""
    if isinstance(lines, str | None):
        stops = tuple(read_stop(line) for line in (lines or "").split("\n") if line)
        if len(stops) <= MAX_STOPS and all(len(s) <= MAX_STOP_LENGTH and not has_lone_surrogate(s) for s in stops):
            return stops
    raise Refused(error_text("stop", count=MAX_STOPS, length=MAX_STOP_LENGTH))


SIGNATURE = inspect.Signature([setting.parameter for setting in SETTINGS.values()])
IN_TURN = sorted(SETTINGS, key=lambda name: name != "target")  # the target first, since the drafter depends on it
CHECKS: dict[str, Callable[[Any], Any]] = {
    "prompt": check_prompt,
    "drafter": lambda name: name,  # `check` calls `check_drafter`, which needs the target
    "rule": check_rule,
    "target": check_target,
    "stop": check_stops,
}


def check_certificate(
    pair: Any = "toy", mistake: Any = "", draws: Any = 20_000, seed: Any = 0, text: Any = ""
) -> tuple[Any, ...]:
    """Return the checked arguments of the engine's `certify`. `mistake` "" means the correct rule."""
    mistakes = strings("lossless")["mistakes"]
    if pair not in PAIRS:
        raise Refused(error_text("pair", names=", ".join(PAIRS)))
    if mistake not in ("", *mistakes):
        raise Refused(error_text("mistake", names=", ".join(mistakes)))
    if draws not in SAMPLE_SIZES:
        raise Refused(error_text("draws", names=", ".join(f"{n:,}" for n in SAMPLE_SIZES)))
    seed = check_number(SETTINGS["seed"], seed)
    return pair, check_prompt(text) if pair == "embedded" else "", mistake, int(draws), seed


def from_link(query: Mapping[str, str], default_target: str = EMBEDDED) -> tuple[dict[str, Any], str]:
    """Return a link's valid settings by name, and a sentence on the others."""
    good: dict[str, Any] = {}
    wrong = []
    for name in IN_TURN:
        if name in query:
            value = as_typed(SETTINGS[name], query[name])
            try:
                check(**{"prompt": "any", "target": default_target, **good, name: value})
                good[name] = value
            except Refused as error:
                wrong.append(translated(error.sentence))
    return good, strings("traces")["link"]["bad"].format(reasons=sentences(*dict.fromkeys(wrong))) if wrong else ""


def as_typed(setting: Setting, text: str) -> Any:
    """Convert the text to the setting's type, or leave it for `check` to refuse."""
    if setting.type_ is bool:
        return SWITCH.get(text.lower(), text)
    if setting.type_ is str:
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value
