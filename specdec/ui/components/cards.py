"""Draw the cards of drafting methods: picture, explanation, weights, training, examples on the Hub, and papers.

Sizes and training are read from the embedded family's files. Template and pictures are in `assets/page/methods`.
"""

from html import escape
from typing import Any

import gradio as gr

from ...methods import EXIT, Method, METHODS
from .. import menu
from ..text import ASSETS, filled, of_drafters, PAGE, sentences, strings

PICTURES = PAGE / "methods"


def cards() -> gr.HTML:
    """Draw a card for each method of `assets/cards.json`, in its order."""
    page = filled(
        "methods/cards.html",
        words=strings("methods")["cards"],
        cards=[card(METHODS[name]) | links for name, links in menu.read_json(ASSETS / "cards.json").items()],
    )
    return gr.HTML(html_template=page, apply_default_css=False, elem_id="cards")


def card(method: Method) -> dict[str, Any]:
    words = strings("drafters")[method.name]
    texts = words["card"]
    return {
        "name": words["name"],
        "picture": picture(method.name, texts["picture"]),
        "how": texts["how"],
        "rows": {
            "parameters": weights(method),
            "training": training(method.name, texts["training"]),
            "controls": controls(method.name),
        },
    }


def picture(name: str, text: str) -> str:
    drawing = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(text)}"', 1)


def weights(method: Method) -> str:
    """Say how many weights the method adds to the target; "" if the family lacks weights that it needs."""
    words = strings("methods")["cards"]
    target = menu.parameters(menu.FAMILY / "target")
    if method.part == EXIT and menu.has_weights(method.name):
        config = menu.read_json(menu.FAMILY / "target" / "config.json")
        return words["exit_weights"].format(exit=config["exit_layers"][0], layers=config["num_hidden_layers"])
    if method.part in ("", EXIT):
        return words["no_weights"].format(target=menu.size(target))
    count = menu.parameters(menu.FAMILY / method.folder)
    if not count or not target:
        return ""
    return words["weights"].format(size=menu.size(count), share=round(100 * count / target), target=menu.size(target))


def training(name: str, how: str) -> str:
    """Say how the drafter was trained and, if `provenance.json` has it, on how many tokens."""
    words, provenance = strings("methods")["cards"], menu.read_json(menu.FAMILY / "provenance.json")
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
    """List a method's variants that have weights of their own, with their sizes."""
    others = [m for m in METHODS.values() if m.variant_of == name and not m.tree and m.embedded]
    names, sizes = of_drafters("name"), {m.name: menu.parameters(menu.FAMILY / m.folder) for m in others}
    return ", ".join(f"{names[variant]} ({menu.size(count)})" for variant, count in sizes.items() if count)
