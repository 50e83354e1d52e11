"""One line: what is going on, how far it is, or what is wrong with the input or with a link."""

from __future__ import annotations

import time
from typing import Any

import gradio as gr

SHOW = """
const [line, bar] = [element.querySelector("p"), element.querySelector("progress")];
const show = () => {
  line.textContent = props.value || "";
  line.classList.toggle("sd-wrong", props.wrong === true);
  bar.hidden = !(props.share < 1);
  bar.value = props.share;
};
show();
watch(["value", "wrong", "share"], show);
// Not an update of its own: the last word of the work that was stopped could overtake it.
watch("ended", () => {
  if (!props.stopped) return;
  line.textContent = props.stopped;
  bar.hidden = true;
});
"""
LINE = '<p class="sd-notice" role="status"></p><progress max="1" hidden></progress>'


def notice(name: str = "notice", text: str = "") -> gr.HTML:
    return gr.HTML(
        text,
        html_template=LINE,
        js_on_load=SHOW,
        apply_default_css=False,
        elem_id=name,
        wrong=False,
        stopped="",
        share=1.0,
    )


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """An update of the line. `stopped` takes the place of `words` if the work ends before it says another one.

    With a `share` below 1 a bar shows it.
    """
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended() -> Any:
    """An update for what watches `ended`: however the work ended, no more of it will come."""
    return gr.update(ended=str(time.time_ns()))
