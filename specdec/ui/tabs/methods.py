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
from ..components.section import Cells, choice, downloads, folded, lines, notice, plot, table, tell, title
from ..request import check, InputError, known_family
from ..text import kind_of, prompts, sentences, strings
from .race import ENGINE, over, PRIVATE

TEMPERATURES = (0.0, 0.8)
TOKENS = 48  # of a race
WARM_UP = 8  # tokens
TEXTS = 2  # of a method
UPDATES_PER_SECOND = 2  # each costs the browser a look at all outputs, and the sentence changes once a race
Rows = list[dict[str, Any]]


def build(tab: gr.Tab) -> Callable[[gr.Dropdown], None]:
    """All of the tab; what it returns connects it with the page's menu of targets."""
    words, report = strings("methods"), results.recorded()
    rows = report.get("rows", [])
    with gr.Column(elem_classes="sd-methods"):
        title(words["head"]["title"], words["head"]["lead"])
        if rows:
            arena(tab, report, rows)
        else:
            lines([words["head"]["missing"]])
    with gr.Column(elem_classes="sd-methods sd-folds"):
        with folded("cards", words["open"]):
            cards()
        with folded("questions", words["asked"]):
            questions()
        if rows:
            with folded("figures", words["table"]):
                figures_table(words["table"]["title"], words["table"]["columns"], results.cells(results.frame(rows)))
                downloads("specdec-methods", partial(results.files, report, rows))
            breakdown(rows)
        with folded("live", words["live"] | {"lead": words["live"]["lead"].format(tokens=TOKENS)}):
            measure = live(rows)
    return measure


def questions() -> None:
    """What everybody asks about drafters."""
    with gr.Row(elem_classes="sd-questions"):
        for one in strings("methods")["questions"].values():
            with gr.Column(min_width=280):
                title(one["title"], one["text"], "h3")


# ---- what was recorded ----


def arena(tab: gr.Tab, report: dict[str, Any], rows: Rows) -> None:
    words = strings("methods")
    lines(label(report), elem_classes="sd-recorded-badge")
    figure = choice(words["labels"]["figure"], [(text, name) for name, text in words["figures"].items()], "sd-choice")
    with gr.Row(elem_classes="sd-beside"):
        with gr.Column(scale=3, min_width=300):
            heat = plot("arena")
            about = lines([words["chart"]["measured_speedup"]], elem_classes="sd-about")
        with gr.Column(scale=2, min_width=280):
            lines(results.findings(rows), elem_classes="sd-findings", elem_id="findings")
    for event in (tab.select, figure.change):  # drawn when looked at: plotly would slow down every start
        event(lambda name: of_figure(rows, name), figure, [heat, about], queue=False, **PRIVATE)


def label(report: dict[str, Any]) -> list[str]:
    """Where the figures come from, as far as the report tells."""
    words, machine, made = strings("methods")["head"], report.get("machine") or {}, report.get("provenance") or {}
    models = made.get("models") or {}
    facts = words["machine"].format(
        cpu=machine.get("cpu", "?"),
        cores=machine.get("cores", "?"),
        layers=words["layers"]["native" if models.get("kernels") == "native" else "torch"],
        threads=models.get("threads", "?"),
        dtype=models.get("dtype", "?"),
        date=str(made.get("measured", "?"))[:10],
        commit=made.get("commit", "?"),
    )
    return [words["recorded"], sentences(facts, words["setting"])]


def figures_table(caption: str, columns: dict[str, str], rows: Cells, **more: Any) -> gr.HTML:
    """`columns` are the headings by figure."""
    return table(caption, list(columns.values()), [results.DIGITS.get(name, 2) for name in columns], rows, **more)


def of_figure(rows: Rows, name: str) -> tuple[Any, Any]:
    """The heat map of one figure: a line a method, a column a text and temperature."""
    drafters, places, by_place = results.drafters(rows), results.places(rows), results.by_place(rows)
    cells = [[by_place.get((drafter, *place)) for place in places] for drafter in drafters]
    chart = charts.heat_map(
        [results.method(drafter) for drafter in drafters],
        [f"{results.domain(domain)}<br>{results.at(temperature)}" for domain, temperature in places],
        [[results.figure(cell, name) for cell in line] for line in cells],
        [[hover_text(cell) for cell in line] for line in cells],
        even=1.0 if name == "measured_speedup" else None,
        most=1.0 if name == "alpha" else None,
    )
    return chart, [strings("methods")["chart"][name], strings("methods")["chart"]["drawn"]]


def hover_text(row: dict[str, Any] | None) -> str:
    """All figures of a cell."""
    if row is None:
        return ""
    names = strings("methods")["figures"]
    figures = {name: results.figure(row, name) for name in names}
    listed = [f"{names[name]}: {value:.2f}" for name, value in figures.items() if value is not None]
    head = f"<b>{results.method(row['drafter'])}</b>, {results.domain(row['domain'])}, {results.at(row['temperature'])}"
    return "<br>".join([head, f"K = {row.get('k', '?')}", *listed])


def breakdown(rows: Rows) -> None:
    """Of one text and temperature, acceptance by position in the draft and by kind of token: a chart, and its figures
    in words."""
    words, labels = strings("methods")["where"], strings("methods")["labels"]
    domains = list(dict.fromkeys(row["domain"] for row in rows))
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
    where = [domain, temperature]
    for event in (section.expand, domain.change, temperature.change):
        event(partial(of_place, rows), where, shown, queue=False, **PRIVATE)


def of_place(rows: Rows, domain: str, temperature: float) -> tuple[Any, ...]:
    words = strings("methods")["where"]
    here = [row for row in rows if row["domain"] == domain and row["temperature"] == temperature]
    names = [results.method(row["drafter"]) for row in here]
    rates = [list(row.get("alpha_by_position") or []) for row in here]
    depth = max(map(len, rates), default=0)
    positions = [str(i + 1) for i in range(depth)]
    by_position = [[*line, *[None] * (depth - len(line))] for line in rates]
    by_kind = [[(row.get("alpha_by_kind") or {}).get(kind) for kind in TOKEN_KINDS] for row in here]
    kinds, kind_names = ([words[part][kind] for kind in TOKEN_KINDS] for part in ("kinds", "kind_names"))
    return (
        charts.heat_map(names, positions, by_position, most=1.0, mark_best=False),
        in_words(names, positions, by_position),
        charts.heat_map(names, kinds, by_kind, most=1.0, mark_best=False),
        in_words(names, kind_names, by_kind),
    )


def in_words(names: list[str], columns: list[str], values: list[list[float | None]]) -> list[str]:
    """A chart for screen readers: a sentence a line."""
    return [
        f"{name}: "
        + ", ".join(f"{at} {value:.2f}" for at, value in zip(columns, line, strict=True) if value is not None)
        for name, line in zip(names, values, strict=True)
    ]


# ---- what is measured here ----


def live(rows: Rows) -> Callable[[gr.Dropdown], None]:
    """Who knows the page's target calls what this returns, and it can be pressed."""
    words, labels = strings("methods")["live"], strings("methods")["labels"]
    target = lines(whose(EMBEDDED), elem_id="whose")
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
    figures = figures_table(words["title"], words["columns"], [], elem_id="live-table")
    saved = downloads("specdec-methods-here")
    fields = [drafters, domain, temperature, k]
    places = [line, badge, chart, figures, saved, run, stop]

    def connect(family: gr.Dropdown) -> None:
        inputs = [*fields, family]
        running = run.click(partial(measured, rows), inputs, places, **ENGINE, **PRIVATE)
        running.then(over, None, [line, run, stop], queue=False, **PRIVATE)
        stop.click(None, None, None, cancels=running, queue=False, **PRIVATE)
        family.change(of_target, family, [target, drafters, domain], queue=False, **PRIVATE)

    return connect


def whose(family: str) -> list[str]:
    return [strings("methods")["live"]["whose"].format(name=menu.family_name(family))]


def of_target(family: Any) -> tuple[Any, ...]:
    """What the page's target can be measured with; of our own every text has one that continues it."""
    try:
        family = known_family(family)
    except InputError:
        return gr.skip(), gr.skip(), gr.skip()
    ours = menu.is_ours(family)
    offered = [name for name in menu.drafters(EMBEDDED if ours else family) if name != "none"]
    chosen = offered if ours else [name for name in offered if not is_wrapper(name)]  # which are slow to begin
    kinds = menu.kinds(menu.answers(family))
    methods = gr.update(choices=[(results.method(name), name) for name in offered], value=chosen)
    texts = gr.update(choices=[(results.domain(kind), kind) for kind in kinds], value=kinds[0])
    return whose(EMBEDDED if ours else family), methods, texts


def measured(rows: Rows, *inputs: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of the page for one measurement: how far it is, then the figures of every method that is done."""
    same = gr.skip()
    try:
        requests = plan(*inputs)
    except InputError as error:
        yield tell(str(error), wrong=True), *[same] * 6
        return
    words, began, last = strings("methods")["live"], time.monotonic(), 0.0
    runs: dict[str, list[session.Raced]] = {request.drafter: [] for request in requests}
    per_method, done = len(requests) // len(runs), 0
    yield tell(""), same, same, same, same, gr.update(interactive=False), gr.update(interactive=True)
    for item in session.series(requests):
        text, share = "", done / len(requests)
        if isinstance(item, session.Raced):
            done += 1
            runs[item.request.drafter].append(item)
            if len(runs[item.request.drafter]) == per_method:
                yield same, *beside(rows, requests[0], fold(runs, per_method)), same, same
        elif item.kind in ("error", "cut"):
            yield tell(item.text, wrong=item.kind == "error"), *[same] * 6
            return
        elif item.kind != "lines":
            text = item.text
        elif time.monotonic() - last > 1 / UPDATES_PER_SECOND and done < len(requests):
            last = time.monotonic()
            method = results.method(requests[done].drafter)
            text = words["progress"].format(method=method, done=done, total=len(requests))
        if text:
            yield tell(text, stopped=words["stopped"], share=share), *[same] * 6
    yield tell(words["done"].format(count=len(runs), seconds=round(time.monotonic() - began))), *[same] * 6


def plan(drafters: Any, domain: Any, temperature: Any, k: Any, family: Any = EMBEDDED) -> list[RunRequest]:
    """The races, a method after the other: a short one to warm up, then one a text. InputError for what cannot be."""
    words, family = strings("methods")["live"]["errors"], known_family(family)
    kinds = menu.kinds(menu.answers(family))
    if not isinstance(domain, str) or domain not in kinds:
        raise InputError(words["domain"].format(names=", ".join(kinds)))
    if not drafters:
        raise InputError(words["methods"])
    family = EMBEDDED if menu.is_ours(family) else family
    races = []
    for drafter in dict.fromkeys(map(str, drafters)):
        requests = [
            check(text, drafter, k, temperature, max_tokens=TOKENS, seed=i, family=family)
            for i, text in enumerate(prompts()[domain][:TEXTS])
        ]
        races += [replace(requests[0], params=replace(requests[0].params, max_tokens=WARM_UP)), *requests]
    return [replace(race, params=replace(race.params, ignore_end=True)) for race in races]


def fold(runs: dict[str, list[session.Raced]], per_method: int) -> dict[str, dict[str, Any]]:
    """Figures of the methods that are done, without the race that warmed up."""
    full = {drafter: races[1:] for drafter, races in runs.items() if len(races) == per_method}
    return {
        drafter: summary([Comparison.from_events(race.events) for race in races]) for drafter, races in full.items()
    }


def beside(rows: Rows, request: RunRequest, figures: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    """Live figures beside recorded ones, None where there is none: label, chart, table and files."""
    words, domain, temperature = strings("methods")["live"], kind_of(request.prompt), request.params.temperature
    recorded = results.by_place(rows) if menu.is_ours(request.family) else {}
    old = {drafter: recorded.get((drafter, domain, temperature)) for drafter in figures}

    def column(rows: Mapping[str, Any], name: str) -> list[float | None]:
        return [results.figure(rows[drafter], name) for drafter in figures]

    names = [results.method(drafter) for drafter in figures]
    here, then = column(figures, "measured_speedup"), column(old, "measured_speedup")
    rates = [column(one, name) for name in ("alpha", "tau") for one in (figures, old)]
    table = zip(names, here, then, *rates, column(figures, "draft_cost"), column(old, "k"), strict=True)
    live = [
        {"source": "live", "drafter": drafter, "domain": domain, "temperature": temperature, "k": request.k, **row}
        for drafter, row in figures.items()
    ]
    chart = charts.side_by_side(names, here, then, words)
    return [words["badge"], words["chart"]], chart, list(table), results.files(live, live)
