"""The tab Methods: a card a method, and who drafts best where, by recorded figures."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from ...figures.stats import TOKEN_KINDS
from .. import charts, results
from ..components.cards import cards
from ..components.section import choice, downloads, folded, lines, plot, table, title
from ..text import sentences, strings
from .race import INSTANT

Rows = list[dict[str, Any]]


def build(tab: gr.Tab) -> None:
    words, report = strings("methods"), results.report()
    rows = report["rows"]
    with gr.Column(elem_classes="sd-methods"):
        title(words["head"]["title"], words["head"]["lead"])
        arena(tab, report, rows)
    with gr.Column(elem_classes="sd-methods sd-folds"):
        with folded("cards", words["open"]):
            cards()
        with folded("questions", words["asked"]), gr.Row(elem_classes="sd-questions"):
            for one in words["questions"].values():
                with gr.Column(min_width=280):
                    title(one["title"], one["text"], "h3")
        with folded("figures", words["table"]):
            table(words["table"]["title"], words["table"]["columns"], results.cells(rows))
            downloads("specdec-methods", partial(results.files, report, rows))
        breakdown(rows)


def arena(tab: gr.Tab, report: dict[str, Any], rows: Rows) -> None:
    words = strings("methods")
    lines(provenance(report), elem_classes="sd-recorded-badge")
    figure = choice(words["labels"]["figure"], [(text, name) for name, text in words["figures"].items()], "sd-choice")
    with gr.Row(elem_classes="sd-beside"):
        with gr.Column(scale=3, min_width=300):
            heat = plot("arena")
            about = lines([words["chart"]["measured_speedup"]], elem_classes="sd-about")
        with gr.Column(scale=2, min_width=280):
            lines(results.findings(rows), elem_classes="sd-findings", elem_id="findings")
    for event in (tab.select, figure.change):  # drawn when looked at: plotly would slow down every start
        event(lambda name: figure_chart(rows, name), figure, [heat, about], **INSTANT)


def provenance(report: dict[str, Any]) -> list[str]:
    """Where the figures come from."""
    words, machine, made = strings("methods")["head"], report["machine"], report["provenance"]
    models = made["models"]
    facts = words["machine"].format(
        cpu=machine["cpu"],
        cores=machine["cores"],
        layers=words["layers"]["native" if models["kernels"] == "native" else "torch"],
        threads=models["threads"],
        dtype=models["dtype"],
        date=made["measured"][:10],
        commit=made["commit"],
    )
    return [words["recorded"], sentences(facts, words["setting"])]


def figure_chart(rows: Rows, name: str) -> tuple[Any, list[str]]:
    """The heat map of one figure: a line a method, a column a text and temperature."""
    words, places, by_place = strings("methods")["chart"], results.places(rows), results.by_place(rows)
    drafters = list(dict.fromkeys(row["drafter"] for row in rows))
    cells = [[by_place.get((drafter, *place), {}) for place in places] for drafter in drafters]
    chart = charts.heat_map(
        [results.method(drafter) for drafter in drafters],
        [f"{results.domain(domain)}<br>{results.at(temperature)}" for domain, temperature in places],
        [[row.get(name) for row in line] for line in cells],
        [[hover_text(row) for row in line] for line in cells],
        even=1.0 if name == "measured_speedup" else None,
        highest=1.0 if name == "alpha" else None,
    )
    return chart, [words[name], words["drawn"]]


def hover_text(row: dict[str, Any]) -> str:
    """All figures of a cell; "" for an empty one."""
    if not row:
        return ""
    figures = [f"{text}: {row[name]:.2f}" for name, text in strings("methods")["figures"].items()]
    head = f"<b>{results.method(row['drafter'])}</b>, {results.domain(row['domain'])}, {results.at(row['temperature'])}"
    return "<br>".join([head, f"K = {row['k']}", *figures])


def breakdown(rows: Rows) -> None:
    """Acceptance on one text at one temperature, by position in the draft and by kind of token.

    Each is a chart, with its figures in words for screen readers.
    """
    words, labels = strings("methods")["where"], strings("methods")["labels"]
    domains = dict.fromkeys(row["domain"] for row in rows)
    temperatures = sorted({row["temperature"] for row in rows})
    shown: list[Any] = []
    with folded("where", words) as section:
        with gr.Row(elem_classes="sd-choices"):
            domain = choice(labels["domain"], [(results.domain(name), name) for name in domains], "sd-choice")
            temperature = choice(labels["temperature"], [(f"{value:g}", value) for value in temperatures], "sd-choice")
        with gr.Row(elem_classes="sd-pair2"):
            for part in ("position", "kind"):
                with gr.Column(min_width=300):
                    title(words[part], words[f"{part}_lead"], "h3")
                    shown += [plot(part), lines(elem_classes="sd-hidden")]
    choices = [domain, temperature]
    for event in (section.expand, domain.change, temperature.change):
        event(partial(breakdown_charts, rows), choices, shown, **INSTANT)


def breakdown_charts(rows: Rows, domain: str, temperature: float) -> tuple[Any, ...]:
    words = strings("methods")["where"]
    here = [row for row in rows if row["domain"] == domain and row["temperature"] == temperature]
    names = [results.method(row["drafter"]) for row in here]
    depth = max(len(row["alpha_by_position"]) for row in here)
    positions = [str(i + 1) for i in range(depth)]
    by_position = [[*row["alpha_by_position"], *[None] * depth][:depth] for row in here]
    by_kind = [[row["alpha_by_kind"].get(kind) for kind in TOKEN_KINDS] for row in here]
    kinds, kind_names = ([words[part][kind] for kind in TOKEN_KINDS] for part in ("kinds", "kind_names"))
    return (
        charts.heat_map(names, positions, by_position, highest=1.0, mark_best=False),
        in_words(names, positions, by_position),
        charts.heat_map(names, kinds, by_kind, highest=1.0, mark_best=False),
        in_words(names, kind_names, by_kind),
    )


def in_words(names: list[str], columns: list[str], values: list[list[float | None]]) -> list[str]:
    """A chart for screen readers: a sentence a line."""
    sentences = []
    for name, line in zip(names, values, strict=True):
        figures = [f"{at} {value:.2f}" for at, value in zip(columns, line, strict=True) if value is not None]
        sentences.append(f"{name}: {', '.join(figures)}")
    return sentences
