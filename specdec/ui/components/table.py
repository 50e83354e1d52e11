"""A table that is sorted by a press on a heading, by mouse or keyboard. See `assets/page/shared/table.js`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from ..text import PAGE
from .drawn import lean

Cells = Sequence[Sequence[str | float | None]]


def table(caption: str, heads: Sequence[str], digits: Sequence[int | None], rows: Cells, **more: Any) -> gr.HTML:
    """`rows` is the value: words and figures, None where there is none; `digits` is None for words."""
    return gr.HTML(
        rows,
        html_template=lean((PAGE / "shared" / "table.html").read_text(encoding="utf-8")),
        js_on_load=lean((PAGE / "shared" / "table.js").read_text(encoding="utf-8")),
        apply_default_css=False,
        caption=caption,
        heads=list(heads),
        digits=list(digits),
        **more,
    )
