"""The tab Methods: recorded speed-ups by method and text, and a card for each method."""

from functools import partial
from html import escape
from typing import Any

import gradio as gr

from ...methods import EXIT, Method, METHODS
from .. import menu, results
from ..components.drawn import folded, INSTANT, lines, table, title
from ..text import asset, ASSETS, filled, of_drafters, read_json, sentences, strings


def build(tab: gr.Tab) -> None:
    words, (first, *others) = strings("methods"), results.reports()
    with gr.Column(elem_classes="sd-methods"):
        title(words["head"]["title"], words["head"]["lead"])
        measured(first, "arena", "findings")
        title(words["chart"]["title"], words["chart"]["lead"], "h3")
        with gr.Column(elem_classes="sd-plots"):  # a chart for each choice of the table, which styles show
            for value in results.temperatures(first["rows"]):
                plot = gr.Plot(show_label=False, container=False, elem_classes="sd-plot")
                tab.select(partial(results.chart, first["rows"], value), None, plot, **INSTANT)  # plotly imports slowly
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
        lines(["`specdec bench --target TARGET --draft DRAFT`", words["own"]["text"]], elem_classes="sd-about")


def measured(report: dict[str, Any], *names: str) -> None:
    """Show a report's speed-ups, and what follows from them. `names` are ids for both."""
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
            word, facts, measured_on, parts = map(escape, provenance(report))
            later = f"<details><summary>{measured_on}</summary>{parts}</details>" if parts else measured_on
            badge = f'<span class="sd-badge"><i></i>{word}</span><div class="sd-sub">{facts} {later}</div>'
            place = f'<div class="sd-place">{badge}</div>'
            gr.HTML(html_template=place, apply_default_css=False, elem_classes="sd-recorded-badge")
        with gr.Column(scale=1, min_width=280):
            title(words["findings"], level="h3")
            with gr.Column(elem_id=names[1] if names else None):
                for value in results.temperatures(rows):
                    lines(results.findings(rows, value), elem_classes="sd-findings")
            if names:
                lines([words["default"]], elem_classes="sd-about")


def choice(temperature: float) -> str:
    words = strings("methods")
    shown = words["temperature"].format(value=f"{temperature:g}")
    return words["choices"]["sampled" if temperature else "greedy"].format(temperature=shown)


def target(report: dict[str, Any]) -> str:
    name = results.family_of(report)
    return strings("methods")["targets"].get(name) or menu.target_name(name)


def about(report: dict[str, Any]) -> dict[str, str]:
    words, rows = strings("methods"), report["rows"]
    kinds = words["findings"]["comma"].join(dict.fromkeys(results.domain(row["domain"]) for row in rows))
    methods = len({row["drafter"] for row in rows})
    return {"title": target(report), "lid": words["other"].format(methods=methods, kinds=kinds)}


def provenance(report: dict[str, Any]) -> list[str]:
    """Say how and where the figures were measured, when, and what has changed since."""
    words, machine, source = strings("methods")["head"], report["machine"], report["provenance"]
    models = source["models"]
    facts = words["machine"].format(
        cpu=machine["cpu"],
        cores=machine["cores"],
        layers=words["layers"]["native" if models["kernels"] == "native" else "torch"],
        threads=models["threads"],
        dtype=models["dtype"],
        commit=source["commit"],
    )
    parts = strings("methods")["findings"]["comma"].join(words["parts"][name] for name in source["changed"])
    date = words["changed" if parts else "measured"].format(date=source["measured"][:10])
    return [words["recorded"], sentences(facts, words["setting"]), date, parts]


def cards() -> gr.HTML:
    page = filled(
        "methods/cards.html",
        words=strings("methods")["cards"],
        cards=[card(METHODS[name]) | links for name, links in read_json(ASSETS / "cards.json").items()],
    )
    return gr.HTML(html_template=page, apply_default_css=False, elem_id="cards")


def card(method: Method) -> dict[str, Any]:
    words = strings("drafters")[method.name]
    texts = words["card"]
    drawing = asset(f"methods/{method.name}.svg")
    picture = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(texts["picture"])}"', 1)
    rows = {"parameters": weights(method), "training": training(method.name, texts["training"])}
    rows["controls"] = controls(method.name)
    return {"name": words["name"], "picture": picture, "how": texts["how"], "rows": rows}


def weights(method: Method) -> str:
    """Say how many weights the method adds to the target; "" if they are not here."""
    words = strings("methods")["cards"]
    target = menu.parameters(menu.FAMILY / "target")
    if method.part == EXIT and menu.has_weights(method.name):
        config = read_json(menu.FAMILY / "target" / "config.json")
        return words["exit_weights"].format(exit=config["exit_layers"][0], layers=config["num_hidden_layers"])
    if method.part in ("", EXIT):
        return words["no_weights"].format(target=menu.size(target))
    count = menu.parameters(menu.FAMILY / method.folder)
    if not count or not target:
        return ""
    return words["weights"].format(size=menu.size(count), share=round(100 * count / target), target=menu.size(target))


def training(name: str, how: str) -> str:
    """Say how the drafter was trained and, if that is known, on how many tokens."""
    words, provenance = strings("methods")["cards"], read_json(menu.FAMILY / "provenance.json")
    exits = provenance.get("target", {}).get("exit_layers", [])
    how = how.format(exits=words["and"].join(map(str, exits)))
    facts = provenance.get(name, {})
    if "tokens_seen" not in facts:
        return how
    cores = facts["machine"]["cores"]
    amount = words["trained_one" if cores == 1 else "trained"].format(
        tokens=f"{facts['tokens_seen'] / 1e6:.1f}", minutes=round(facts["minutes"]), cores=cores
    )
    return sentences(how, amount)


def controls(name: str) -> str:
    """List a method's variants that have weights of their own."""
    others = [m for m in METHODS.values() if m.variant_of == name and not m.tree and m.embedded]
    names, sizes = of_drafters("name"), {m.name: menu.parameters(menu.FAMILY / m.folder) for m in others}
    return ", ".join(f"{names[variant]} ({menu.size(count)})" for variant, count in sizes.items() if count)
