"""Buttons that save what the page holds as files; the browser makes the files, so none is kept on the server."""

from __future__ import annotations

import gradio as gr

from ..text import strings

SAVE = """
const types = { csv: "text/csv", json: "application/json" };
const row = element.querySelector(".sd-save");
const save = (name, kind, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: types[kind] }));
  link.download = name + "." + kind;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const show = () => row.replaceChildren(...Object.entries(props.value || {}).map(([kind, text]) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sd-btn";
  button.textContent = props.words[kind];
  button.addEventListener("click", () => save(props.filename, kind, text));
  return button;
}));
show();
watch("value", show);
"""


def downloads(filename: str, files: dict[str, str] | None = None) -> gr.HTML:
    """`files` has the text of each kind, csv or json; without any there is no button."""
    return gr.HTML(
        files or {},
        html_template='<div class="sd-save"></div>',
        js_on_load=SAVE,
        apply_default_css=False,
        filename=filename,
        words=strings("methods")["download"],
    )
