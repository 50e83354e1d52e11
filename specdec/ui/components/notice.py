"""One line: what is going on, or what is wrong with the input or with a link."""

from __future__ import annotations

import time
from typing import Any

import gradio as gr

SHOW = """
const line = element.querySelector(".sd-notice");
const show = () => { line.textContent = props.value || ""; line.classList.toggle("sd-wrong", props.wrong === true); };
show();
watch(["value", "wrong"], show);
// Not an update of its own: the last word of the work that was stopped could overtake it.
watch("ended", () => { if (props.stopped) line.textContent = props.stopped; });
"""


def notice(name: str = "notice") -> gr.HTML:
    return gr.HTML(
        "",
        html_template='<p class="sd-notice" role="status"></p>',
        js_on_load=SHOW,
        apply_default_css=False,
        elem_id=name,
        wrong=False,
        stopped="",
    )


def tell(words: str, wrong: bool = False, stopped: str = "") -> Any:
    """An update of the line. `stopped` takes the place of `words` if the work ends before it says another one."""
    return gr.update(value=words, wrong=wrong, stopped=stopped)


def ended() -> Any:
    """An update for what watches `ended`: however the work ended, no more of it will come."""
    return gr.update(ended=str(time.time_ns()))
