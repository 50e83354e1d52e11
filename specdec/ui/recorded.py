"""Read the recorded runs and certificates that the page shows, and the settings of a run."""

import json
from typing import Any

from ..families import presets
from ..methods import DEFAULT_RULE, EMBEDDED, METHODS
from ..settings import SETTINGS, stop_lines
from ..traces.file import recording
from . import menu
from .text import ASSETS, language, LANGUAGES, read_json

TRACES = ASSETS / "traces"
CERTIFICATES = ASSETS / "certificates.json"
FIRST = ("coding", "tips", "story")  # the first recorded runs: a greedy one for the first screen, then two sampled ones


def recorded_certificates(pair: Any) -> dict[str, Any]:
    """Return a pair's recorded certificates, with mistakes as keys; {} if there are none."""
    return read_json(CERTIFICATES).get(str(pair), {})


def recorded(name: str, drafter: str = "") -> str:
    """Return the text of a recorded run, by default of the usual drafter; "" if there is none."""
    if name not in recorded_names() or (drafter and drafter not in METHODS):
        return ""
    is_usual = drafter in ("", menu.drafter_of(name))
    path = TRACES / f"{name}.jsonl" if is_usual else recording(TRACES, name, drafter)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def recorded_names() -> list[str]:
    """List the main recorded runs, those of offered targets first, then by language and `FIRST`."""
    names = sorted({path.stem for path in TRACES.glob("*.jsonl")} - (LANGUAGES.keys() - {language()}))
    order, offered = (language(), *FIRST), menu.targets()
    place = {name: order.index(name) if name in order else len(order) for name in names}
    return sorted(names, key=lambda name: (recorded_target(name) not in offered, place[name]))


def recorded_target(name: str) -> str:
    with (TRACES / f"{name}.jsonl").open(encoding="utf-8") as log:
        header = json.loads(log.readline())
    return str(header.get("models", {}).get("family", EMBEDDED))


def first_target() -> str:
    """Return the target that the page begins with: the host's, or the first recorded run's."""
    names, pair = recorded_names(), presets.host_pair()
    shown = recorded_target(names[0]) if names else EMBEDDED
    return shown if pair == EMBEDDED and shown in menu.targets() else pair


def sampled_name() -> str:
    return next((name for name in recorded_names() if name in FIRST[1:]), "")


def sampled_run(_: Any = None) -> str:
    """Return a sampled recorded run, for lessons that a greedy one does not teach."""
    return recorded(sampled_name())


def without_choices(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a recording must not choose for the visitor's live run."""
    return {name: value for name, value in settings.items() if name not in ("drafter", "k")}


def settings_of(log: str) -> dict[str, Any]:
    """Read a run's settings from its header and first lane; {} if that fails."""
    try:
        header, started = map(json.loads, log.split("\n", 2)[:2])
        params = started["params"]
        values = {"prompt": header["prompt"], **params, "stop": stop_lines(params["stop"] or ())}
        if not started.get("server"):  # a server chooses these settings by itself
            values["target"] = header["models"].get("family", EMBEDDED)
            values["rule"] = menu.RULE_KEYS.get(started["rule"], DEFAULT_RULE)  # the default for an unknown name
            values["peer"] = len(header["lanes"]) > 2
            values |= {name: started[name] for name in ("drafter", "k")}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
    return {name: value for name, value in values.items() if name in SETTINGS}
