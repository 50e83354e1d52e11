"""Let the visitor choose whether the server's engine or the browser's engine computes a run."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from ...exposure import limits
from .. import browser
from ..text import strings
from .drawn import handler

OWN = "own"
BROWSER = "browser"
ENGINE_CHOSEN = handler("changed", event="sd-engine")  # informs the script `shared/local.js`
BROWSER_SETTINGS = ("drafter", "k")  # besides those for sampling, the browser's engine has only these


def engine(fields: Mapping[str, Any], instant: Mapping[str, Any]) -> gr.Radio:
    """Add the choice of the engine.

    `fields` has the settings beside sampling. Those that the browser's engine lacks are hidden while it is chosen.
    `instant` holds the arguments of events that do not wait in Gradio's queue.
    """
    words = strings("page")["settings"]["engine"]
    offered = [OWN, *([BROWSER] if browser.offered() else [])]
    first = BROWSER if BROWSER in offered and limits().in_browser else OWN
    chosen = gr.Radio(
        [(words[name], name) for name in offered],
        value=first,
        label=words["label"],
        info=words[f"about_{first}"],
        visible=len(offered) > 1,
        elem_id="engine",
    )
    shown = {setting: field.visible for setting, field in fields.items()}

    def choose(name: str) -> list[Any]:
        updates = [gr.update(visible=is_shown(setting, name)) for setting in shown]
        return [gr.update(info=words[f"about_{name}"]), *updates]

    def is_shown(setting: str, name: str) -> bool:
        return shown[setting] and (name == OWN or setting in BROWSER_SETTINGS)

    for setting, field in fields.items():
        field.visible = is_shown(setting, first)
    chosen.change(choose, chosen, [chosen, *fields.values()], **instant)
    chosen.change(None, chosen, None, js=ENGINE_CHOSEN, **instant)
    return chosen


def for_visitor(leads: bool) -> Any:
    """Update the choice: a visitor who goes first in the queue begins with the server's engine."""
    return gr.update(value=OWN) if leads and limits().in_browser else gr.skip()
