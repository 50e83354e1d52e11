"""The tab Theory: what the formulas predict, for chosen values and published figures."""

import gradio as gr

from .. import results
from ..components.drawn import drawn
from ..text import ASSETS, read_json


def build(_: gr.Tab) -> None:
    drawn(
        "theory/theory",
        elem_id="theory-lab",
        hardware=read_json(ASSETS / "hardware.json"),
        claims=read_json(ASSETS / "sources.json")["claims"],
        measured=results.account(),
    )
