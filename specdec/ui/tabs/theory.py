"""The tab Theory: sliders over the closed forms, with the run of the player on top, and what the bench measured."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from ...methods import is_wrapper
from .. import measured, results
from ..components.drawn import drawn
from ..components.section import downloads, folded, lines, plot, table, title
from ..menu import read_json
from ..text import ASSETS, strings
from .race import INSTANT

COLUMNS = (
    "drafter domain temperature k alpha alpha_by_position draft_acceptance_rate tau draft_cost verify_cost overhead"
    " measured_speedup"
).split()


def build(_: gr.Tab) -> None:
    drawn("theory/theory", elem_id="theory-lab", hardware=read_json(ASSETS / "hardware.json"), results=measurements())
    with gr.Column(elem_classes="sd-methods sd-folds"):
        batches(results.report("batch"))


def measurements() -> list[dict[str, Any]]:
    """Every report that has rows about drafters: the machine, and those rows."""
    reports = map(read_json, sorted(results.RESULTS.glob("*.json")))
    return [
        {"machine": report["machine"], "rows": list(map(measurement, report["rows"]))}
        for report in reports
        if "drafter" in report.get("rows", [{}])[0]
    ]


def measurement(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in COLUMNS} | {"wrapper": is_wrapper(row["drafter"])}


def batches(report: dict[str, Any]) -> None:
    words, figures = strings("theory")["many"], measured.batches(report)
    with folded("many", words) as section:
        with gr.Row(elem_classes="sd-pair2"):
            shown = []
            for part in ("batch", "rates"):
                with gr.Column(min_width=300):
                    title(words[f"{part}_title"], words[f"{part}_lead"], "h3")
                    shown.append(plot(part))
        lines(measured.batch_lines(report, figures), elem_classes="sd-about", elem_id="batch-lines")
        table(words["title"], words["columns"], figures[list(words["columns"])].values.tolist())
        downloads("specdec-batches", partial(results.files, report, report["points"]))
    section.expand(lambda: measured.batch_charts(figures), None, shown, **INSTANT)
