"""What the sections of a tab are made of: a heading, sentences, a choice of one, a chart, a table, files to save."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import gradio as gr

from ..text import strings
from .drawn import drawn

Cells = Sequence[Sequence[str | float | None]]


def title(text: str, lead: str, level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}><p>{html.escape(lead)}</p>"
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


def choice(label: str, choices: list[tuple[str, Any]], style: str = "") -> gr.Radio:
    """One of a few; the first to begin with."""
    return gr.Radio(choices, value=choices[0][1], label=label, elem_classes=style or None)


def plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_classes="sd-plot", elem_id=f"{name}-chart")


def lines(value: list[str] | None = None, **more: Any) -> gr.HTML:
    """A few sentences as paragraphs."""
    return drawn("shared/lines", value or [], {}, **more)


def table(caption: str, heads: Sequence[str], digits: Sequence[int | None], rows: Cells, **more: Any) -> gr.HTML:
    """A press on a heading sorts it. `rows` is the value: words and figures, None where there is none; `digits` is None
    for words."""
    return drawn("shared/table", rows, {}, caption=caption, heads=list(heads), digits=list(digits), **more)


def downloads(filename: str, files: dict[str, str] | None = None) -> gr.HTML:
    """Buttons that save `files`, the text of each kind, csv or json; without any there is no button."""
    return drawn("shared/downloads", files or {}, strings("methods")["download"], filename=filename)
