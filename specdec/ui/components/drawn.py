"""A part of the page that files draw: `assets/page/NAME.html` is its template, the module `NAME.js` does the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from ..text import PAGE, strings


def drawn(
    name: str,
    value: Any = "",
    words: dict[str, Any] | str | None = None,
    template: str = "",
    events: Sequence[str] = (),
    **properties: Any,
) -> gr.HTML:
    """Add a component that the module `name` draws.

    `words` are by default those of that name. Its script finds `properties` in `props`, and may trigger `events`.
    A page that must hold its words before any script runs passes its own `template`.

    Objects and lists arrive as JSON text: Gradio would wrap each of theirs in a proxy, and those are slow.
    """
    properties["words"] = strings(name.rpartition("/")[2]) if words is None else words
    texts = {
        key: as_text(content)
        for key, content in properties.items()
        if isinstance(content, (dict, list)) and key != "server_functions"
    }
    return gr.HTML(
        value,
        html_template=template or (PAGE / f"{name}.html").read_text(encoding="utf-8"),
        js_on_load=mounting(name, events),
        apply_default_css=False,
        **properties | texts,
    )


def as_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def mounting(name: str, events: Sequence[str]) -> str:
    """Write what Gradio runs when it has drawn the component; it also reads the names of the events there.

    The import map of `scripts.py` says where the module is.
    """
    mount = f'import("#page/{name}.js").then((part) => part.mount(element, props, watch, trigger, server));'
    return " ".join([mount, *(f'"{event}";' for event in events)])


def handler(name: str, **properties: Any) -> str:
    """Write the `js` of an event: it calls the function that `handlers/NAME.js` makes of `properties`."""
    made = f'(await import("#page/handlers/{name}.js")).handler({as_text(properties)})'
    return f"async (...values) => {made}(...values)"
