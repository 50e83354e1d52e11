"""One line beside the Run button: what is going on, or what is wrong with the input."""

from __future__ import annotations

from typing import Any

import gradio as gr

SHOW = """
const line = element.querySelector(".sd-notice");
const show = () => { line.textContent = props.value || ""; line.classList.toggle("sd-wrong", props.wrong === true); };
show();
watch(["value", "wrong"], show);
"""

from gradio.events import Dependency

class Notice(gr.HTML):
    def __init__(self, value: str = "", *, wrong: bool = False, **rest: Any) -> None:
        rest.setdefault("html_template", '<p class="sd-notice" role="status"></p>')
        rest.setdefault("js_on_load", SHOW)
        super().__init__(value, apply_default_css=False, wrong=wrong, elem_id="notice", **rest)
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component