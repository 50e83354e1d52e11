"""A part of the page that files draw: `assets/page/NAME.html` is its template, `NAME.js` beside it all that it does."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..text import PAGE, strings


def drawn(name: str, value: str = "", words: dict[str, Any] | None = None, **properties: Any) -> gr.HTML:
    """With the words of that name, or those; `properties` are what its script finds in `props`, and `elem_id`."""
    return gr.HTML(
        value,
        html_template=(PAGE / f"{name}.html").read_text(encoding="utf-8"),
        js_on_load=(PAGE / f"{name}.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        words=strings(name.rpartition("/")[2]) if words is None else words,
        **properties,
    )
