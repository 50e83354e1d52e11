"""Parts of a section of a tab: headings, choices, sentences, charts, tables, files; and notices."""

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
WORDS = ("method", "domain")
WHOLE = ("k", "tokens_per_second")
# How many digits a column shows, None for words; all other columns show two.
DIGITS = dict.fromkeys(WORDS) | dict.fromkeys(WHOLE, 0) | {"temperature": 1, "draft_cost": 3}


def title(text: str, lead: str, level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}><p>{html.escape(lead)}</p>"
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


@contextmanager
def folded(name: str, words: dict[str, Any]) -> Iterator[gr.HTML]:
    """Collapsible section: `title` and `lid` in the summary, `lead` first in the body.

    Its event `expand` comes when it is opened for the first time.
    """
    heading, lid = html.escape(words["title"]), html.escape(words["lid"])
    summary = f"<summary><h2>{heading}</h2><span>{lid}</span></summary>"
    template = f'<details class="sd-fold sd-section" data-fold="{name}">{summary}</details>@children'
    with drawn("shared/fold", words={}, template=template, events=["expand"]) as section, gr.Column():
        if "lead" in words:
            lines([words["lead"]], elem_classes="sd-about")
        yield section


def choice(label: str, choices: list[tuple[str, Any]], style: str = "") -> gr.Radio:
    """One of a few; the first to begin with."""
    return gr.Radio(choices, value=choices[0][1], label=label, elem_classes=style or None)


def plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_classes="sd-plot", elem_id=f"{name}-chart")


def lines(value: list[str] | None = None, **more: Any) -> gr.HTML:
    """A few sentences as paragraphs."""
    return drawn("shared/lines", value or [], {}, **more)


def table(caption: str, columns: dict[str, str], rows: Cells) -> gr.HTML:
    """A table to sort by its headings: `columns` by figure, `rows` of words and figures, None where there is none."""
    digits = [DIGITS.get(name, 2) for name in columns]
    return drawn("shared/table", rows, {}, caption=caption, heads=list(columns.values()), digits=digits)


def downloads(filename: str, texts: Callable[[], dict[str, str]]) -> gr.HTML:
    """Buttons that save a text as csv or json: `texts` makes both when one is pressed."""

    def file(kind: Any) -> str:
        return texts().get(kind, "") if isinstance(kind, str) else ""

    words = strings("methods")["download"]
    return drawn("shared/downloads", ["csv", "json"], words, filename=filename, server_functions=[file])


def notice(name: str = "notice") -> gr.HTML:
    """A line that says what is going on, how far it is, or what is wrong with the input or with a link."""
    return drawn("shared/notice", "", {}, elem_id=name, wrong=False, stopped="", share=1.0)


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """An update of that line; with a `share` below 1, a bar shows it.

    `stopped` takes the place of `words` if the work is stopped before the next update.
    """
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended() -> Any:
    """An update that says no more of this work will come, however it ended."""
    return gr.update(ended=str(time.time_ns()))
