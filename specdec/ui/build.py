"""The page's table of contents: the head, then one line a tab."""

from __future__ import annotations

import html

import gradio as gr

from .tabs import lossless, methods, race, step, theory
from .text import strings

THEME_SWITCH = """
const button = element.querySelector("button");
button.addEventListener("click", () => document.body.classList.toggle("dark"));
"""


def build() -> gr.Blocks:
    words = strings("page")
    with gr.Blocks(title=words["title"], analytics_enabled=False, delete_cache=(600, 1800)) as demo:
        head(words)
        with gr.Tabs(elem_classes="sd-tabs"):
            with gr.Tab(words["tabs"]["race"], id="race"):
                race.build()
            with gr.Tab(words["tabs"]["step"], id="step", elem_id="step"):
                step.build()
            with gr.Tab(words["tabs"]["lossless"], id="lossless", elem_id="lossless"):
                lossless.build()
            with gr.Tab(words["tabs"]["methods"], id="methods", elem_id="methods") as tab:
                methods.build(tab)
            with gr.Tab(words["tabs"]["theory"], id="theory", elem_id="theory"):
                theory.build()
    demo.queue(max_size=24, default_concurrency_limit=1, api_open=False)
    return demo


def head(words: dict[str, str]) -> None:
    text = {name: html.escape(words[name]) for name in ("brand", "tagline", "theme", "headline", "lead")}
    gr.HTML(
        html_template=(
            '<header class="sd-head"><div class="sd-brand"><b>{brand}</b><span>{tagline}</span>'
            '<button type="button" class="sd-quiet">{theme}</button></div>'
            "<h1>{headline}</h1><p>{lead}</p></header>"
        ).format(**text),
        js_on_load=THEME_SWITCH,
        apply_default_css=False,
    )
