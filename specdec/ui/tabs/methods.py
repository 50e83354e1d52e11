"""The tab Methods: a card a method, who drafts best where by recorded figures, and a small measurement here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from ...figures.stats import Comparison, summary, TOKEN_KINDS
from ...methods import EMBEDDED, is_wrapper
from ...settings import RunRequest
from .. import charts, menu, results, session
from ..components.cards import cards
from ..components.section import choice, downloads, folded, lines, notice, plot, table, tell, title
from ..request import check, InputError
from ..text import kind_of, prompts, sentences, strings
from .race import ENGINE, INSTANT, over, PRIVATE

TEMPERATURES = (0.0, 0.8)
TOKENS = 48  # of a race
WARM_UP = 8  # tokens
TEXTS = 2  # of a method
UPDATES_PER_SECOND = 2  # each costs the browser a look at all outputs, and the sentence changes once a race
Rows = list[dict[str, Any]]


def build(tab: gr.Tab) -> Callable[[gr.Dropdown], None]:
    """All of the tab; what it returns connects it with the page's menu of targets."""
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
        with folded("live", words["live"] | {"lead": words["live"]["lead"].format(tokens=TOKENS)}):
            return live(rows)


# ---- what was recorded ----


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


# ---- what is measured here ----


def live(rows: Rows) -> Callable[[gr.Dropdown], None]:
    """The fields and the figures of a measurement; what it returns connects them with the page's menu of targets."""
    words, labels = strings("methods")["live"], strings("methods")["labels"]
    target = lines(target_line(EMBEDDED), elem_id="whose")
    names = [(results.method(name), name) for name in menu.drafters() if name != "none"]
    with gr.Row(elem_classes="sd-settings"):
        with gr.Column(elem_classes="sd-rail", scale=3, min_width=280):
            drafters = gr.CheckboxGroup(names, value=[name for _, name in names], label=words["methods"])
        with gr.Column(elem_classes="sd-rail", scale=2, min_width=280):
            domain = choice(labels["domain"], [(results.domain(kind), kind) for kind in menu.kinds()])
            temperature = choice(labels["temperature"], [(f"{value:g}", value) for value in TEMPERATURES])
            k = gr.Slider(1, 8, value=4, step=1, label=words["k"], buttons=[])
    with gr.Row(elem_classes="sd-go"):
        run = gr.Button(words["run"], variant="primary", elem_id="measure")
        stop = gr.Button(words["stop"], interactive=False, elem_id="halt")
    line = notice("live-notice", words["empty"])
    badge = lines(elem_classes="sd-live-badge")
    chart = plot("live")
    figures = table(words["title"], words["columns"], [], elem_id="live-table")
    saved = downloads("specdec-methods-here")
    outputs = [line, badge, chart, figures, saved, run, stop]

    def connect(family: gr.Dropdown) -> None:
        inputs = [drafters, domain, temperature, k, family]
        running = run.click(partial(measured, rows), inputs, outputs, **ENGINE, **PRIVATE)
        running.then(over, None, [line, run, stop], **INSTANT)
        stop.click(None, None, None, cancels=running, **INSTANT)
        family.change(target_choices, family, [target, drafters, domain], **INSTANT)

    return connect


def target_line(family: str) -> list[str]:
    return [strings("methods")["live"]["whose"].format(name=menu.family_name(family))]


def target_choices(family: Any) -> tuple[Any, ...]:
    """Updates for another target: its name, its drafters, the texts that it continues or answers.

    In place of the rounded built-in models the embedded one is measured.
    """
    if not menu.is_offered(family):
        return gr.skip(), gr.skip(), gr.skip()
    ours = menu.is_ours(family)
    offered = [name for name in menu.drafters(EMBEDDED if ours else family) if name != "none"]
    chosen = offered if ours else [name for name in offered if not is_wrapper(name)]  # which are slow to begin
    kinds = menu.kinds(menu.answers(family))
    methods = gr.update(choices=[(results.method(name), name) for name in offered], value=chosen)
    texts = gr.update(choices=[(results.domain(kind), kind) for kind in kinds], value=kinds[0])
    return target_line(EMBEDDED if ours else family), methods, texts


def measured(rows: Rows, *inputs: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of the page for one measurement: how far it is, then the figures of every method that is done."""
    same = [gr.skip()] * 6
    try:
        requests = plan(*inputs)
    except InputError as error:
        yield tell(str(error), wrong=True), *same
        return
    words, began, last = strings("methods")["live"], time.monotonic(), 0.0
    runs: dict[str, list[session.Raced]] = {request.drafter: [] for request in requests}
    per_method, done = len(requests) // len(runs), 0
    yield tell(""), *same[:4], gr.update(interactive=False), gr.update(interactive=True)
    for item in session.series(requests):
        text, share = "", done / len(requests)
        if isinstance(item, session.Raced):
            done += 1
            runs[item.request.drafter].append(item)
            if len(runs[item.request.drafter]) == per_method:
                yield gr.skip(), *beside(rows, requests[0], summaries(runs, per_method)), *same[:2]
        elif item.kind in ("error", "cut"):
            yield tell(item.text, wrong=item.kind == "error"), *same
            return
        elif item.kind != "lines":
            text = item.text
        elif time.monotonic() - last > 1 / UPDATES_PER_SECOND and done < len(requests):
            last = time.monotonic()
            method = results.method(requests[done].drafter)
            text = words["progress"].format(method=method, done=done, total=len(requests))
        if text:
            yield tell(text, stopped=words["stopped"], share=share), *same
    yield tell(words["done"].format(count=len(runs), seconds=round(time.monotonic() - began))), *same


def plan(drafters: list[str], domain: str, temperature: Any, k: Any, family: str = EMBEDDED) -> list[RunRequest]:
    """The races, a method after the other: a short one to warm up, then one a text. InputError for what cannot be."""
    errors = strings("methods")["live"]["errors"]
    kinds = menu.kinds(menu.answers(family))
    if domain not in kinds:
        raise InputError(errors["domain"].format(names=", ".join(kinds)))
    if not drafters:
        raise InputError(errors["methods"])
    family = EMBEDDED if menu.is_ours(family) else family
    races = []
    for drafter in drafters:
        requests = [
            check(text, drafter, k, temperature, max_tokens=TOKENS, seed=i, family=family)
            for i, text in enumerate(prompts()[domain][:TEXTS])
        ]
        races += [replace(requests[0], params=replace(requests[0].params, max_tokens=WARM_UP)), *requests]
    return [replace(race, params=replace(race.params, ignore_end=True)) for race in races]


def summaries(runs: dict[str, list[session.Raced]], per_method: int) -> dict[str, dict[str, Any]]:
    """Figures of the methods that are done, without the race that warmed up."""
    full = {drafter: races[1:] for drafter, races in runs.items() if len(races) == per_method}
    return {
        drafter: summary([Comparison.from_events(race.events) for race in races]) for drafter, races in full.items()
    }


def beside(rows: Rows, request: RunRequest, figures: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    """Live figures beside recorded ones, None where there is none: label, chart, table and files."""
    words, place = strings("methods")["live"], (kind_of(request.prompt), request.params.temperature)
    recorded = results.by_place(rows) if menu.is_ours(request.family) else {}
    old = {drafter: recorded.get((drafter, *place), {}) for drafter in figures}

    def column(rows: Mapping[str, dict[str, Any]], name: str) -> list[float | None]:
        return [rows[drafter].get(name) for drafter in figures]

    names = [results.method(drafter) for drafter in figures]
    here, then = column(figures, "measured_speedup"), column(old, "measured_speedup")
    rates = [column(one, name) for name in ("alpha", "tau") for one in (figures, old)]
    table = zip(names, here, then, *rates, column(figures, "draft_cost"), column(old, "k"), strict=True)
    head = {"source": "live", "domain": place[0], "temperature": place[1], "k": request.k}
    live = [head | {"drafter": drafter} | row for drafter, row in figures.items()]
    chart = charts.side_by_side(names, here, then, words)
    return [words["badge"], words["chart"]], chart, list(table), results.files(live, live)
