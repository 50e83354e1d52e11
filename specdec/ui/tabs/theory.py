"""The tab Theory: sliders over the closed forms, with the run of the player on top, and what the bench measured."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr
import pandas

from .. import measured, results
from ..components.drawn import drawn
from ..components.section import downloads, folded, lines, plot, table, title
from ..menu import read_json
from ..text import ASSETS, strings
from .race import PRIVATE


def build(_: gr.Tab) -> None:
    drawn("theory/theory", elem_id="theory-lab", hardware=read_json(ASSETS / "hardware.json"))
    with gr.Column(elem_classes="sd-methods sd-folds"):
        if (many := measured.report("batch")).get("points"):
            batches(many)


def batches(told: dict[str, Any]) -> None:
    words, rows = strings("theory")["many"], measured.batches(told)
    with folded("many", words) as section:
        with gr.Row(elem_classes="sd-pair2"):
            shown = []
            for part in ("batch", "rates"):
                with gr.Column(min_width=300):
                    title(words[f"{part}_title"], words[f"{part}_lead"], "h3")
                    shown.append(plot(part))
        lines(measured.batch_lines(told, rows), elem_classes="sd-about", elem_id="batch-lines")
        figures(words["title"], measured.batch_table(rows))
        save("specdec-batches", told, told["points"])
    section.expand(lambda: measured.batch_charts(rows), None, shown, queue=False, **PRIVATE)


def figures(caption: str, shown: pandas.DataFrame) -> None:
    digits = [results.digits(column) for _, column in shown.items()]
    table(caption, list(shown.columns), digits, results.cells(shown))


def save(name: str, told: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    downloads(name, partial(results.files, told, rows))
