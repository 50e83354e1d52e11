"""The tab Methods: recorded speed-ups by method and text, and a card for each method."""

import html
from functools import partial
from typing import Any

import gradio as gr

from .. import menu, results
from ..components.cards import cards
from ..components.section import folded, lines, table, title
from ..text import sentences, strings
from .race import INSTANT


def build(tab: gr.Tab) -> None:
    words, (first, *others) = strings("methods"), results.reports()
    with gr.Column(elem_classes="sd-methods"):
        title(words["head"]["title"], words["head"]["lead"])
        measured(first, "arena", "findings")
        title(words["chart"]["title"], words["chart"]["lead"], "h3")
        plot = gr.Plot(show_label=False, container=False, elem_classes="sd-plot")
        tab.select(partial(results.chart, first["rows"]), None, plot, **INSTANT)  # importing plotly is slow
    with gr.Column(elem_classes="sd-methods sd-folds"):
        for report in others:
            with folded(results.family_of(report), about(report)):
                measured(report)
        with folded("cards", words["open"]):
            cards()
        with folded("questions", words["asked"]), gr.Row(elem_classes="sd-questions"):
            for question in words["questions"].values():
                with gr.Column(min_width=280):
                    title(question["title"], question["text"], "h3")
        with folded("figures", words["table"]):
            for report in (first, *others):
                table(target(report), words["table"]["columns"], results.cells(report["rows"]))
    with gr.Column(elem_classes="sd-methods sd-own"):
        title(words["own"]["title"], level="h3")
        lines([words["own"]["text"]], elem_classes="sd-about")


def measured(report: dict[str, Any], *names: str) -> None:
    """Show a report's speed-ups, a table a temperature, and what follows from them. `names` are ids for both."""
    words, rows = strings("methods")["speedups"], report["rows"]
    with gr.Row(elem_classes="sd-beside"):
        with gr.Column(scale=3, min_width=640):
            if names:
                title(target(report), level="h3")
            tables = {choice(value): results.speedups(rows, value) for value in results.temperatures(rows)}
            table(
                words["title"].format(target=target(report)),
                results.columns(rows),
                list(tables.values()),
                even=1.0,
                choices=list(tables),
                elem_classes="sd-arena",
                elem_id=names[0] if names else None,
            )
            lines([words["lead"], words["intervals"]], elem_classes="sd-about")
            recorded_badge(*provenance(report))
        with gr.Column(scale=1, min_width=280):
            title(words["findings"], level="h3")
            lines(results.findings(rows), elem_classes="sd-findings", elem_id=names[1] if names else None)


def recorded_badge(word: str, facts: str) -> None:
    inside = f'<span class="sd-badge"><i></i>{html.escape(word)}</span><span class="sd-sub">{html.escape(facts)}</span>'
    template = f'<div class="sd-place">{inside}</div>'
    gr.HTML(html_template=template, apply_default_css=False, elem_classes="sd-recorded-badge")


def choice(temperature: float) -> str:
    words = strings("methods")["choices"]
    return words["sampled" if temperature else "greedy"].format(temperature=results.at(temperature))


def target(report: dict[str, Any]) -> str:
    name = results.family_of(report)
    return strings("methods")["targets"].get(name) or menu.target_name(name)


def about(report: dict[str, Any]) -> dict[str, str]:
    """Return the heading of a folded report and what it compares."""
    words, rows = strings("methods"), report["rows"]
    kinds = words["findings"]["comma"].join(dict.fromkeys(results.domain(row["domain"]) for row in rows))
    methods = len({row["drafter"] for row in rows})
    return {"title": target(report), "lid": words["other"].format(methods=methods, kinds=kinds)}


def provenance(report: dict[str, Any]) -> list[str]:
    """Say on which machine, with which settings and commit, the figures were measured, and what has changed since."""
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
    parts = strings("methods")["findings"]["comma"].join(words["parts"][name] for name in source["changed"])
    outdated = words["changed"].format(parts=parts) if parts else ""
    return [words["recorded"], sentences(facts, words["setting"], outdated)]
