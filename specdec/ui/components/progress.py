"""How far a measurement is: a sentence and a bar."""

from __future__ import annotations

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
watch(["value", "share", "wrong"], show);
// Words about how far it is may still arrive after a press on Stop, but none after the end.
watch("ended", () => {
  if (!(props.share < 1)) return;
  line.textContent = props.stopped;
  bar.hidden = true;
});
"""


INSIDE = '<p class="sd-notice" role="status"></p><progress max="1" hidden></progress>'


def progress(text: str, stopped: str) -> gr.HTML:
    """`stopped` is shown if the measurement was stopped halfway."""
    return gr.HTML(
        text,
        html_template=f'<div class="sd-progress">{INSIDE}</div>',
        js_on_load=SHOW,
        apply_default_css=False,
        share=1.0,
        wrong=False,
        stopped=stopped,
        ended="",
    )


def far(text: str, share: float = 1.0, wrong: bool = False) -> Any:
    """An update; the bar is hidden when the share is 1."""
    return gr.update(value=text, share=round(share, 3), wrong=wrong)
