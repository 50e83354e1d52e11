"""The tab Theory shows what the formulas predict, for values that sliders set and for figures that others publish."""

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
