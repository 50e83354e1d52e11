"""A few sentences as paragraphs; they enter by `textContent`."""

from __future__ import annotations

from typing import Any

import gradio as gr

SHOW = """
const show = () => element.firstElementChild.replaceChildren(...(props.value || []).map((text) => {
  const line = document.createElement("p");
  line.textContent = text;
  return line;
}));
show();
watch("value", show);
"""


def lines(value: list[str] | None = None, **more: Any) -> gr.HTML:
    return gr.HTML(
        value or [], html_template='<div class="sd-lines"></div>', js_on_load=SHOW, apply_default_css=False, **more
    )
