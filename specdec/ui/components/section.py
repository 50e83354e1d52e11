"""What the sections of a tab are made of: a heading with its lead, a choice of one, a place for a chart."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr


def title(text: str, lead: str, level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}><p>{html.escape(lead)}</p>"
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


def choice(label: str, choices: list[tuple[str, Any]], style: str = "") -> gr.Radio:
    """One of a few; the first to begin with."""
    return gr.Radio(choices, value=choices[0][1], label=label, elem_classes=style or None)


def plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_classes="sd-plot", elem_id=f"{name}-chart")
