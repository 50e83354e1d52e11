"""A card per way of drafting: a picture, what it weighs in this family, how it was trained, where others are found.

Figures come from the family's files. The pictures are in `assets/page/methods`; colours by classes of the style sheet.
"""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from .. import menu
from ..text import PAGE, sentences, strings

PICTURES = PAGE / "methods"
HUB = "https://huggingface.co/"
ARROW = (
    '<svg width="0" height="0" aria-hidden="true"><marker id="sd-arrow" viewBox="0 0 6 6" refX="5" refY="3"'
    ' markerWidth="6" markerHeight="6" orient="auto"><path class="sd-pic-tip" d="M0 0L6 3L0 6z"/></marker></svg>'
)


def cards() -> gr.HTML:
    words = strings("methods")["cards"]
    facts = menu.read_json(PICTURES / "facts.json")
    key = "".join(
        f'<span><i class="sd-key-{name}"></i>{html.escape(text)}</span>' for name, text in words["key"].items()
    )
    body = "".join(card(name, facts.get(name, {})) for name in words["methods"])
    page = f'{ARROW}<p class="sd-pic-key">{key}</p><div class="sd-grid2">{body}</div>'
    return gr.HTML(html_template=f'<div class="sd-cards">{page}</div>', apply_default_css=False, elem_id="cards")


def card(name: str, facts: dict[str, Any]) -> str:
    words = strings("methods")["cards"]
    mine = words["methods"][name]
    rows = {
        "parameters": html.escape(weights(name)),
        "training": html.escape(training(name, mine["training"])),
        "controls": html.escape(controls(facts.get("controls", []))),
        "hub": ", ".join(hub(draft, target) for draft, target in facts.get("hub", {}).items()),
        "paper": ", ".join(link(address, title) for title, address in facts.get("papers", {}).items()),
    }
    listed = "".join(f"<dt>{html.escape(words['rows'][row])}</dt><dd>{text}</dd>" for row, text in rows.items() if text)
    return (
        f"<section><h3>{html.escape(mine['title'])}</h3>{picture(name, mine['picture'])}"
        f"<p>{html.escape(mine['how'])}</p><dl>{listed}</dl></section>"
    )


def picture(name: str, text: str) -> str:
    path = PICTURES / f"{name}.svg"
    if not path.exists():
        return ""
    return path.read_text(encoding="utf-8").replace("<svg", f'<svg role="img" aria-label="{html.escape(text)}"', 1)


def weights(name: str) -> str:
    """What the method adds to the target."""
    words = strings("methods")["cards"]
    whole = menu.parameters(menu.FAMILY / menu.TARGETS[menu.EMBEDDED])
    folder = menu.FAMILY / menu.WEIGHTS[name]
    config = menu.read_json(menu.FAMILY / menu.TARGETS[menu.EMBEDDED] / "config.json")
    if name == "early_exit" and {"exit_layers", "num_hidden_layers"} <= config.keys():
        return words["exit_weights"].format(exit=config["exit_layers"][0], layers=config["num_hidden_layers"])
    count = menu.parameters(folder) if menu.WEIGHTS[name] else 0
    if not count or not whole:
        return words["no_weights"].format(target=menu.size(whole)) if not menu.WEIGHTS[name] else ""
    return words["weights"].format(size=menu.size(count), share=round(100 * count / whole), target=menu.size(whole))


def training(name: str, how: str) -> str:
    """How it learned, then how much, as far as the family tells."""
    provenance = menu.read_json(menu.FAMILY / "provenance.json")
    exits = provenance.get("target", {}).get("exit_layers", [])
    told = how.format(exits=strings("methods")["cards"]["and"].join(map(str, exits)))
    return sentences(told, amount(provenance.get(name, {})))


def amount(facts: dict[str, Any]) -> str:
    if not {"tokens_seen", "minutes", "machine"} <= facts.keys():
        return ""
    words, cores = strings("methods")["cards"], facts["machine"]["cores"]
    return words["trained_one" if cores == 1 else "trained"].format(
        tokens=f"{facts['tokens_seen'] / 1e6:.1f}", minutes=round(facts["minutes"]), cores=cores
    )


def controls(names: list[str]) -> str:
    """Those that the family holds, with their size."""
    known = strings("methods")["names"]
    sizes = {name: menu.parameters(menu.FAMILY / menu.WEIGHTS[name]) for name in names}
    return ", ".join(f"{known[name]} ({menu.size(count)})" for name, count in sizes.items() if count)


def hub(draft: str, target: str) -> str:
    words = strings("methods")["cards"]["for_target"]
    mine = link(HUB + draft, draft)
    return html.escape(words).format(draft=mine, target=html.escape(target)) if target else mine


def link(address: str, text: str) -> str:
    return f'<a href="{html.escape(address)}" target="_blank" rel="noreferrer">{html.escape(text)}</a>'
