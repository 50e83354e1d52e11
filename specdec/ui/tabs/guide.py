"""The tab Guide, and the guided tour. The tour is outside of the tabs, because it switches between them."""

import gradio as gr

from .. import recorded
from ..components.drawn import drawn
from ..menu import read_json
from ..text import ASSETS, strings
from . import labels


def tour() -> gr.HTML:
    words, functions = strings("guide")["tour"], [recorded.sampled_run]
    return drawn("guide/tour", words=words, elem_id="tour", server_functions=functions)


def build(tab: gr.Tab) -> gr.HTML:
    all_sources = read_json(ASSETS / "sources.json")
    return drawn(
        "guide/guide",
        words={name: text for name, text in strings("guide").items() if name != "tour"},
        elem_id="guide-page",
        tabs=labels(),
        sources={kind: listed for kind, listed in all_sources.items() if kind not in ("claims", "hosts")},
    )
