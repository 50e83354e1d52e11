"""The page's table of contents: the head, then one line a tab; and what a link to it may ask for."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from . import link
from .components.guide import tour
from .components.notice import tell
from .tabs import guide, lossless, methods, race, step, theory
from .text import strings

THEME_SWITCH = """
const button = element.querySelector("button");
button.addEventListener("click", () => document.body.classList.toggle("dark"));
"""


def build() -> gr.Blocks:
    words = strings("page")
    with gr.Blocks(title=words["title"], analytics_enabled=False, delete_cache=(600, 1800)) as demo:
        head(words)
        with gr.Tabs(elem_classes="sd-tabs") as tabs:
            with gr.Tab(words["tabs"]["race"], id="race", elem_id="race"):
                fields, line = race.build()
            with gr.Tab(words["tabs"]["step"], id="step", elem_id="step"):
                step.build()
            with gr.Tab(words["tabs"]["lossless"], id="lossless", elem_id="lossless"):
                lossless.build()
            with gr.Tab(words["tabs"]["methods"], id="methods", elem_id="methods") as tab:
                methods.build(tab)
            with gr.Tab(words["tabs"]["theory"], id="theory", elem_id="theory"):
                theory.build()
            with gr.Tab(words["tabs"]["guide"], id="guide", elem_id="guide"):
                guide.build()
        tour()
        follow_links(demo, tabs, fields, line)
    demo.queue(max_size=24, default_concurrency_limit=1, api_open=False)
    return demo


def follow_links(demo: gr.Blocks, tabs: gr.Tabs, fields: dict[str, Any], line: gr.HTML) -> None:
    """`?tab=step` opens a tab, `?drafter=…` fills in a setting; what cannot be gets a sentence beside Run."""

    def follow(request: gr.Request) -> list[Any]:
        opened, no_tab = link.tab(request.query_params, list(strings("page")["tabs"]))
        settings, trouble = link.settings(request.query_params)
        told = tell(no_tab or trouble, wrong=True) if no_tab or trouble else gr.skip()
        return [gr.update(selected=opened) if opened else gr.skip(), told, *race.filled_in(list(fields), settings)]

    demo.load(follow, None, [tabs, line, *fields.values()], queue=False, **race.PRIVATE)


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
