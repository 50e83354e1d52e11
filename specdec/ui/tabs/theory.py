"""The tab Theory: sliders over the closed forms, with the run of the player on top, and what the bench measured."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import gradio as gr
import pandas

from .. import charts, results
from ..components.drawn import drawn
from ..components.section import downloads, folded, lines, plot, table, title
from ..menu import read_json
from ..text import ASSETS, sentences, strings
from .race import INSTANT

COLOURS = (charts.LIVE, charts.OTHER)  # of the lengths of text
DASHES = ("solid", "dash", "dot")  # of the draft lengths K


def build(_: gr.Tab) -> None:
    drawn("theory/theory", elem_id="theory-lab", hardware=read_json(ASSETS / "hardware.json"))
    with gr.Column(elem_classes="sd-methods sd-folds"):
        batches(results.report("batch"))


def batches(report: dict[str, Any]) -> None:
    words, figures = strings("theory")["many"], batch_figures(report)
    with folded("many", words) as section:
        with gr.Row(elem_classes="sd-pair2"):
            shown = []
            for part in ("batch", "rates"):
                with gr.Column(min_width=300):
                    title(words[f"{part}_title"], words[f"{part}_lead"], "h3")
                    shown.append(plot(part))
        lines(batch_lines(report, figures), elem_classes="sd-about", elem_id="batch-lines")
        table(words["title"], words["columns"], figures[list(words["columns"])].values.tolist())
        downloads("specdec-batches", partial(results.files, report, report["points"]))
    section.expand(lambda: batch_charts(figures), None, shown, **INSTANT)


def batch_figures(report: dict[str, Any]) -> pandas.DataFrame:
    """A row per length of text, K and batch; `each` is the speed of one text in a batch, in tokens per second."""
    figures = pandas.DataFrame(report["points"])
    each, plain = figures["tokens_per_second"] / figures["batch"], figures["plain_tokens_per_second"] / figures["batch"]
    return figures.assign(each=each, plain_each=plain)


def batch_charts(table: pandas.DataFrame) -> tuple[Any, Any]:
    """Speed-up by batch; and the throughput of all texts by the speed of each, speculative beside plain."""
    words = strings("theory")["many"]
    dashes = dict(zip(table["k"].unique(), cycle(DASHES)))
    gains, rates = list[charts.Course](), list[charts.Course]()
    styles = zip(table.groupby("context", sort=False), cycle(COLOURS), cycle(DASHES))
    for (context, of_context), colour, plain_dash in styles:
        for k, line in of_context.groupby("k", sort=False):
            name = words["line"].format(context=context, k=k)
            gains.append(charts.Course(name, line["batch"], line["measured_speedup"], (), colour, dashes[k]))
            rates.append(charts.Course(name, line["each"], line["tokens_per_second"], line["batch"], colour, dashes[k]))
        name, all_texts = words["plain"].format(context=context), line["plain_tokens_per_second"]
        rates.append(charts.Course(name, line["plain_each"], all_texts, line["batch"], charts.LINE, plain_dash))
    return (
        charts.courses(gains, words["axis"], even=1.0),
        charts.courses(rates, words["each"], words["all"], note=words["batch"]),
    )


def batch_lines(report: dict[str, Any], table: pandas.DataFrame) -> list[str]:
    """Where and when; of each length of text how the K that is fastest alone fares in the largest batch; the texts."""
    words, machine = strings("theory")["many"], report["machine"]
    alone, largest = (table[table["batch"] == size] for size in (table["batch"].min(), table["batch"].max()))
    best = alone.loc[alone.groupby("context", sort=False)["measured_speedup"].idxmax()]
    gains = [
        words["gain"].format(
            name=words["line"].format(context=row.context, k=row.k),
            n=row.batch_all,
            one=f"{row.measured_speedup:.2f}×",
            all=f"{row.measured_speedup_all:.2f}×",
        )
        for row in best.merge(largest, on=["context", "k"], suffixes=("", "_all")).itertuples()
    ]
    where = words["where"].format(
        cpu=machine["cpu"], cores=machine["cores"], date=report["provenance"]["measured"][:10]
    )
    return [sentences(where, *gains, words["identical" if table["identical_to_plain"].all() else "differs"])]
