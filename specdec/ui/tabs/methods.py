"""The tab Methods: a card a method, who drafts best where by recorded figures, and a small measurement here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
from ..text import prompts, sentences, strings
from .race import ENGINE, over, PRIVATE

TEMPERATURES = (0.0, 0.8)
TOKENS, WARM_UP, MOST_TEXTS = 48, 8, 3
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
            questions(rows)
        if rows:
            with folded("figures", words["table"]):
                figures_table(words["table"]["title"], words["table"]["columns"], results.cells(results.frame(rows)))
                downloads("specdec-methods", partial(results.files, report, rows))
            breakdown(rows)
        with folded("live", words["live"] | {"lead": words["live"]["lead"].format(tokens=TOKENS)}):
            measure = live(rows)
    return measure


def questions(rows: Rows) -> None:
    """What everybody asks about drafters; the one about trees is answered by the report as well."""
    with gr.Row(elem_classes="sd-questions"):
        for name, told in strings("methods")["questions"].items():
            with gr.Column(min_width=280):
                title(told["title"], sentences(told["text"], results.trees(rows) if name == "tree" else ""), "h3")


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
    drafters, places, cells = results.drafters(rows), results.places(rows), results.by_place(rows)
    found = [[cells.get((drafter, *place)) for place in places] for drafter in drafters]
    chart = charts.heat_map(
        [results.method(drafter) for drafter in drafters],
        [f"{results.domain(domain)}<br>{results.at(temperature)}" for domain, temperature in places],
        [[results.figure(row, name) for row in line] for line in found],
        [[told(row) for row in line] for line in found],
        even=1.0 if name == "measured_speedup" else None,
        most=1.0 if name == "alpha" else None,
    )
    return chart, [strings("methods")["chart"][name], strings("methods")["chart"]["drawn"]]


def told(row: dict[str, Any] | None) -> str:
    """All of a cell, shown when it is pointed at."""
    if row is None:
        return ""
    words = strings("methods")
    figures = {name: results.figure(row, name) for name in words["figures"]}
    listed = [f"{words['figures'][name]}: {value:.2f}" for name, value in figures.items() if value is not None]
    head = f"<b>{results.method(row['drafter'])}</b>, {results.domain(row['domain'])}, {results.at(row['temperature'])}"
    return "<br>".join([head, f"K = {row.get('k', '?')}", *listed])


def breakdown(rows: Rows) -> None:
    """The choice of a place of the arena, and what is shown of it: acceptance by place and by kind of token."""
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
                    shown += [plot(part), lines(elem_classes="sd-about"), lines(elem_classes="sd-hidden")]
    where = [domain, temperature]
    for event in (section.expand, domain.change, temperature.change):
        event(lambda *place: of_place(rows, *place), where, shown, queue=False, **PRIVATE)


def of_place(rows: Rows, domain: str, temperature: float) -> tuple[Any, ...]:
    """Of one text and temperature: by place and by kind each a chart, a sentence, and the figures in words."""
    words = strings("methods")["where"]
    here = [row for row in rows if row["domain"] == domain and row["temperature"] == temperature]
    best = results.fastest(here, (domain, temperature))
    names = [results.method(row["drafter"]) for row in here]
    by_position = [list(row.get("alpha_by_position") or []) for row in here]
    depth = max(map(len, by_position), default=0)
    places = [str(i + 1) for i in range(depth)]
    padded = [[*rates, *[None] * (depth - len(rates))] for rates in by_position]
    chart = charts.heat_map(names, places, padded, most=1.0, mark_best=False)
    by_position_told = chart, say_positions(best), in_words(names, places, padded)
    by_kind = [[(row.get("alpha_by_kind") or {}).get(kind) for kind in TOKEN_KINDS] for row in here]
    if not any(map(any, by_kind)):
        return *by_position_told, gr.update(value=None, visible=False), [words["no_kinds"]], []
    kinds = [words["kinds"][kind] for kind in TOKEN_KINDS]
    chart = charts.heat_map(names, kinds, by_kind, most=1.0, mark_best=False)
    said = in_words(names, [words["kind_names"][kind] for kind in TOKEN_KINDS], by_kind)
    return *by_position_told, gr.update(value=chart, visible=True), say_kinds(best), said


def in_words(names: list[str], columns: list[str], values: list[list[float | None]]) -> list[str]:
    """A chart for screen readers: a sentence a line."""
    return [
        f"{name}: "
        + ", ".join(f"{at} {value:.2f}" for at, value in zip(columns, line, strict=True) if value is not None)
        for name, line in zip(names, values, strict=True)
    ]


def say_positions(row: dict[str, Any]) -> list[str]:
    rates = row.get("alpha_by_position") or []
    if len(rates) < 2:
        return []
    said = strings("methods")["where"]["says_position"]
    first, last = f"{rates[0]:.2f}", f"{rates[-1]:.2f}"
    return [said.format(method=results.method(row["drafter"]), first=first, last=last, count=len(rates))]


def say_kinds(row: dict[str, Any]) -> list[str]:
    words, rates = strings("methods")["where"], row.get("alpha_by_kind") or {}
    if len(rates) < 2:
        return []
    high, low = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
    kinds = {"easiest": words["kind_names"][high], "hardest": words["kind_names"][low]}
    figures = {"high": f"{rates[high]:.2f}", "low": f"{rates[low]:.2f}"}
    return [words["says"].format(method=results.method(row["drafter"]), **kinds, **figures)]


# ---- what is measured here ----


def live(rows: Rows) -> Callable[[gr.Dropdown], None]:
    """Who knows the page's target calls what this returns, and it can be pressed."""
    words, labels = strings("methods")["live"], strings("methods")["labels"]
    target = lines(whose(EMBEDDED), elem_id="whose")
    offered = [name for name in menu.drafters() if name != "none"]
    with gr.Row(elem_classes="sd-settings"):
        with gr.Column(elem_classes="sd-rail", scale=3, min_width=280):
            drafters = gr.CheckboxGroup(
                [(results.method(name), name) for name in offered], value=offered, label=words["methods"]
            )
        with gr.Column(elem_classes="sd-rail", scale=2, min_width=280):
            domain = choice(labels["domain"], [(results.domain(kind), kind) for kind in menu.kinds()])
            temperature = choice(labels["temperature"], [(f"{value:g}", value) for value in TEMPERATURES])
        with gr.Column(elem_classes="sd-rail", scale=2, min_width=280):
            k = gr.Slider(1, 8, value=4, step=1, label=words["k"], buttons=[])
            texts = gr.Slider(1, MOST_TEXTS, value=2, step=1, label=words["texts"], buttons=[])
    with gr.Row(elem_classes="sd-go"):
        run = gr.Button(words["run"], variant="primary", elem_id="measure")
        stop = gr.Button(words["stop"], interactive=False, elem_id="halt")
    line = notice("live-notice", words["empty"])
    badge = lines(elem_classes="sd-live-badge")
    chart = plot("live")
    figures = figures_table(words["title"], words["columns"], [], elem_id="live-table")
    saved = downloads("specdec-methods-here")
    fields = [drafters, domain, temperature, k, texts]
    places = [line, badge, chart, figures, saved, run, stop]

    def connect(family: gr.Dropdown) -> None:
        asked = [*fields, family]
        running = run.click(lambda *asked: (yield from measured(rows, *asked)), asked, places, **ENGINE, **PRIVATE)
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


def measured(rows: Rows, *asked: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of the page for one measurement: how far it is, then what is known after every method."""
    same = gr.skip()
    try:
        requests = plan(*asked)
    except InputError as error:
        yield tell(str(error), wrong=True), *[same] * 6
        return
    words, began, last = strings("methods")["live"], time.monotonic(), 0.0
    runs: dict[str, list[session.Raced]] = {request.drafter: [] for request in requests}
    per_method, done = len(requests) // len(runs), 0
    yield tell(""), same, same, same, same, gr.update(interactive=False), gr.update(interactive=True)
    for item in session.series(requests):
        if isinstance(item, session.Raced):
            done += 1
            runs[item.request.drafter].append(item)
            if len(runs[item.request.drafter]) == per_method:
                yield same, *beside(rows, requests[0], fold(runs, per_method)), same, same
        elif item.kind != "lines":
            if item.kind in ("error", "cut"):
                yield tell(item.text, wrong=item.kind == "error"), *[same] * 6
                return
            yield tell(item.text, stopped=words["stopped"], share=done / len(requests)), *[same] * 6
        elif time.monotonic() - last > 1 / UPDATES_PER_SECOND and done < len(requests):
            last = time.monotonic()
            now = results.method(requests[done].drafter)
            text = words["progress"].format(method=now, done=done, total=len(requests))
            yield tell(text, stopped=words["stopped"], share=done / len(requests)), *[same] * 6
    yield tell(words["done"].format(count=len(runs), seconds=round(time.monotonic() - began))), *[same] * 6


def plan(drafters: Any, domain: Any, temperature: Any, k: Any, texts: Any, family: Any = EMBEDDED) -> list[RunRequest]:
    """The races, a method after the other: a short one to warm up, then one a text. InputError for what cannot be."""
    words, family = strings("methods")["live"]["errors"], known_family(family)
    kinds = menu.kinds(menu.answers(family))
    if not isinstance(drafters, list) or not drafters:
        raise InputError(words["methods"])
    if not isinstance(domain, str) or domain not in kinds:
        raise InputError(words["domain"].format(names=", ".join(kinds)))
    if isinstance(texts, bool) or not isinstance(texts, int | float) or texts not in range(1, MOST_TEXTS + 1):
        raise InputError(words["texts"].format(most=MOST_TEXTS))
    chosen = prompts()[domain][: int(texts)]
    family = EMBEDDED if menu.is_ours(family) else family
    races = []
    for drafter in dict.fromkeys(map(str, drafters)):
        asked = [
            check(text, drafter, k, temperature, max_tokens=TOKENS, seed=i, family=family)
            for i, text in enumerate(chosen)
        ]
        warm_up = replace(asked[0], params=replace(asked[0].params, max_tokens=WARM_UP))
        races += [warm_up, *asked]
    return [replace(race, params=replace(race.params, ignore_end=True)) for race in races]


def fold(runs: dict[str, list[session.Raced]], per_method: int) -> dict[str, dict[str, Any]]:
    """Figures of the methods that are done, without the race that warmed up."""
    full = {drafter: races[1:] for drafter, races in runs.items() if len(races) == per_method}
    return {drafter: summary([Comparison.of(race.events) for race in races]) for drafter, races in full.items()}


def beside(rows: Rows, request: RunRequest, figures: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    """Live figures beside recorded ones: label, chart, table and files."""
    words, domain = strings("methods")["live"], next(k for k, texts in prompts().items() if request.prompt in texts)
    temperature = request.params.temperature
    rows = rows if menu.is_ours(request.family) else []  # what was recorded is ours
    columns = compared(rows, list(figures), domain, temperature, figures)
    live = [
        {"source": "live", "drafter": drafter, "domain": domain, "temperature": temperature, "k": request.k, **row}
        for drafter, row in figures.items()
    ]
    chart = charts.side_by_side(columns["method"], columns["here"], columns["recorded"], words)
    files = results.files(live, live)
    return [words["badge"], words["chart"]], chart, list(zip(*columns.values(), strict=True)), files


def compared(
    rows: Rows, drafters: list[str], domain: str, temperature: float, figures: dict[str, dict[str, Any]]
) -> dict[str, list[Any]]:
    """The columns of the live table: every figure here, then as recorded; None where there is none."""
    cells = results.by_place(rows)
    old = {drafter: cells.get((drafter, domain, temperature)) for drafter in drafters}
    columns: dict[str, list[Any]] = {"method": [results.method(drafter) for drafter in drafters]}
    for here, recorded, name in (
        ("here", "recorded", "measured_speedup"), ("alpha", "alpha_recorded", "alpha"), ("tau", "tau_recorded", "tau"),
    ):  # fmt: skip
        columns[here] = [results.figure(figures.get(drafter), name) for drafter in drafters]
        columns[recorded] = [results.figure(old[drafter], name) for drafter in drafters]
    columns["draft_cost"] = [results.figure(figures.get(drafter), "draft_cost") for drafter in drafters]
    return columns | {"k_recorded": [results.figure(old[drafter], "k") for drafter in drafters]}
