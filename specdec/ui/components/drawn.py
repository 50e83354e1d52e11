"""Add components that scripts draw. The template is `assets/page/NAME.html`, and the script is `NAME.js`."""

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from ..text import asset, strings


def drawn(
    name: str,
    value: Any = "",
    words: dict[str, Any] | str | None = None,
    template: str = "",
    events: Sequence[str] = (),
    **properties: Any,
) -> gr.HTML:
    """Add a component that the module `name` draws.

    By default, `words` are the page's texts for the last part of `name`. The script reads `properties` from `props`,
    and can trigger `events`. Pass a `template` if the page must contain words before any script runs.

    Dicts and lists in `properties`, except `server_functions`, are sent as JSON, because Gradio's proxies are slow.
    """
    properties["words"] = strings(name.rpartition("/")[2]) if words is None else words
    texts = {
        key: as_json(content)
        for key, content in properties.items()
        if isinstance(content, (dict, list)) and key != "server_functions"
    }
    mount = f'import("#page/{name}.js").then((part) => part.mount(element, props, watch, trigger, server));'
    return gr.HTML(
        value,
        html_template=template or asset(f"{name}.html"),
        js_on_load=" ".join([mount, *(f'"{event}";' for event in events)]),  # Gradio triggers only events named there
        apply_default_css=False,
        **properties | texts,
    )


def as_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def handler(name: str, **properties: Any) -> str:
    """Write the `js` of a Gradio event: it calls the function that `handlers/NAME.js` makes from `properties`."""
    function = f'(await import("#page/handlers/{name}.js")).handler({as_json(properties)})'
    return f"async (...values) => {function}(...values)"
