"""The tab Theory compares what the formulas predict, for values that sliders set, with the run in the player."""

from __future__ import annotations

import gradio as gr

from ..components.drawn import drawn
from ..menu import read_json
from ..text import ASSETS


def build(_: gr.Tab) -> None:
    drawn("theory/theory", elem_id="theory-lab", hardware=read_json(ASSETS / "hardware.json"))
