"""Add the parts of a tab's sections: headings, sentences, tables and notices."""

import html
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gradio as gr

from .drawn import drawn

WORDS = ("method", "domain")
WHOLE = ("k", "tokens_per_second")
# Column -> how many decimals it shows, None for words. All other columns show two.
DIGITS = dict.fromkeys(WORDS) | dict.fromkeys(WHOLE, 0) | {"temperature": 1, "draft_cost": 3}


def title(text: str, lead: str = "", level: str = "h2") -> None:
    inside = f"<{level}>{html.escape(text)}</{level}>" + (f"<p>{html.escape(lead)}</p>" if lead else "")
    gr.HTML(html_template=f'<div class="sd-title">{inside}</div>', apply_default_css=False, elem_classes=f"sd-{level}")


@contextmanager
def folded(name: str, words: dict[str, Any]) -> Iterator[None]:
    """Add a section that a click opens. `words` has a heading `title`, a note `lid`, and perhaps a text `lead`."""
    heading, lid = html.escape(words["title"]), html.escape(words["lid"])
    summary = f"<summary><h2>{heading}</h2><span>{lid}</span></summary>"
    template = f'<details class="sd-fold sd-section" data-fold="{name}">{summary}</details>@children'
    with drawn("shared/fold", words={}, template=template), gr.Column():
        if "lead" in words:
            lines([words["lead"]], elem_classes="sd-about")
        yield


def lines(texts: Sequence[str], **more: Any) -> None:
    """Write paragraphs. What stands between backticks is code."""
    inside = re.sub("`(.*?)`", r"<code>\1</code>", "".join(f"<p>{html.escape(text)}</p>" for text in texts))
    gr.HTML(html_template=f'<div class="sd-lines">{inside}</div>', apply_default_css=False, **more)


def table(caption: str, columns: dict[str, str], value: Any, **more: Any) -> None:
    """Draw a table that can be sorted by its headings. `columns` maps the name of each column to its heading.

    `value` has the rows; with `choices`, the names of several tables, it has the rows of each, and one is shown. A cell
    is words, a figure, a figure with the ends of its interval, or None. With `even`, figures are tinted by how far they
    are above or below it, the rows are in the order of the second column, and a narrow page shows only one of figures.
    """
    digits = [DIGITS.get(name, 2) for name in columns]
    drawn("shared/table", value, {}, caption=caption, heads=list(columns.values()), digits=digits, **more)


def notice(name: str = "notice") -> gr.HTML:
    return drawn("shared/notice", "", {}, elem_id=name, wrong=False, stopped="", share=1.0)


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """Update the line of `notice`. A progress bar shows a `share` below 1.

    `stopped` replaces `words` if the work is stopped before the next update.
    """
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended() -> Any:
    """Tell a component that its work has finished, failed or was stopped. Every call sends a new value."""
    return gr.update(ended=str(time.time_ns()))
