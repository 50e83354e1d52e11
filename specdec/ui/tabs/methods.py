"""The tab Methods: recorded speed-ups by method and text, and a card for each method."""

from functools import partial
from typing import Any

import gradio as gr

from .. import results
from ..components.cards import cards
from ..components.section import downloads, folded, lines, table, title
from ..text import sentences, strings
from .race import INSTANT


def build(tab: gr.Tab) -> None:
    words, report = strings("methods"), results.report()
    rows = report["rows"]
    with gr.Column(elem_classes="sd-methods"):
        title(words["head"]["title"], words["head"]["lead"])
        lines(provenance(report), elem_classes="sd-recorded-badge")
        with gr.Row(elem_classes="sd-beside"):
            with gr.Column(scale=3, min_width=300):
                columns, cells = results.speedups(rows)
                table(words["speedups"]["title"], columns, cells, even=1.0, elem_id="arena")
                lines([words["speedups"]["lead"]], elem_classes="sd-about")
            with gr.Column(scale=1, min_width=280):
                lines(results.findings(rows), elem_classes="sd-findings", elem_id="findings")
        plot = gr.Plot(show_label=False, container=False, elem_classes="sd-plot")
        tab.select(lambda: results.chart(rows), None, plot, **INSTANT)  # importing plotly is slow
    with gr.Column(elem_classes="sd-methods sd-folds"):
        with folded("cards", words["open"]):
            cards()
        with folded("questions", words["asked"]), gr.Row(elem_classes="sd-questions"):
            for question in words["questions"].values():
                with gr.Column(min_width=280):
                    title(question["title"], question["text"], "h3")
        with folded("figures", words["table"]):
            table(words["table"]["title"], words["table"]["columns"], results.cells(rows))
            downloads("specdec-methods", partial(results.files, report))


def provenance(report: dict[str, Any]) -> list[str]:
    """Say on which machine, with which settings and commit, the figures were measured."""
    words, machine, source = strings("methods")["head"], report["machine"], report["provenance"]
    models = source["models"]
    facts = words["machine"].format(
        cpu=machine["cpu"],
        cores=machine["cores"],
        layers=words["layers"]["native" if models["kernels"] == "native" else "torch"],
        threads=models["threads"],
        dtype=models["dtype"],
        date=source["measured"][:10],
        commit=source["commit"],
    )
    return [words["recorded"], sentences(facts, words["setting"])]
