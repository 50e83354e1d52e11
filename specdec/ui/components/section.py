"""What the sections of a tab are made of: headings, choices, sentences, charts, tables, files; and notices."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gradio as gr

from ..text import strings
from .drawn import drawn

Cells = Sequence[Sequence[str | float | None]]


def title(text: str, lead: str, level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}><p>{html.escape(lead)}</p>"
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


@contextmanager
def folded(name: str, told: dict[str, Any]) -> Iterator[gr.HTML]:
    """A section that opens by a press. On it stand its heading (`title`) and what it answers (`lid`), in it first its
    `lead`. `expand` is its event when it is opened for the first time."""
    heading, lid = (html.escape(told[part]) for part in ("title", "lid"))
    shut = f"<summary><h2>{heading}</h2><span>{lid}</span></summary>"
    shut = f'<details class="sd-fold sd-section" data-fold="{name}">{shut}</details>@children'
    with drawn("shared/fold", words={}, template=shut, events=["expand"]) as section, gr.Column():
        if "lead" in told:
            lines([told["lead"]], elem_classes="sd-about")
        yield section


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


def downloads(filename: str, kept: Callable[[], dict[str, str]] | None = None) -> gr.HTML:
    """Buttons that save the text of each kind, csv or json: the component's value, or what is `kept` here until it is
    asked for; without any there is no button."""

    def file(kind: Any) -> str:
        return kept().get(kind, "") if kept and isinstance(kind, str) else ""

    asked = dict.fromkeys(("csv", "json") if kept else (), "")
    return drawn("shared/downloads", asked, strings("methods")["download"], filename=filename, server_functions=[file])


def notice(name: str = "notice", text: str = "") -> gr.HTML:
    """One line: what is going on, how far it is, or what is wrong with the input or with a link."""
    return drawn("shared/notice", text, {}, elem_id=name, wrong=False, stopped="", share=1.0)


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """An update of the line. `stopped` takes the place of `words` if the work ends before it says another one.

    With a `share` below 1 a bar shows it.
    """
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended() -> Any:
    """An update for what watches `ended`: however the work ended, no more of it will come."""
    return gr.update(ended=str(time.time_ns()))
