"""The tab Guide, and the guided tour. The tour is outside of the tabs, because it switches between them."""

from typing import Any

import gradio as gr

from ...methods import METHODS, RULES
from .. import menu, recorded
from ..components.cards import card
from ..components.drawn import drawn
from ..text import ASSETS, bind_language, of_drafters, sentences, strings
from . import labels

THEORY = ("map", "rules", "heat", "measured", "wall", "intro", "field")  # figures with a title and a text below it


def tour() -> gr.HTML:
    words, functions = strings("guide")["tour"], [recorded.sampled_run]
    return drawn("guide/tour", words=words, elem_id="tour", server_functions=functions)


def build(tab: gr.Tab) -> gr.HTML:
    all_sources = menu.read_json(ASSETS / "sources.json")
    return drawn(
        "guide/guide",
        words={name: text for name, text in strings("guide").items() if name != "tour"},
        elem_id="guide-page",
        tabs=labels(),
        sources={kind: listed for kind, listed in all_sources.items() if kind not in ("claims", "hosts")},
        server_functions=[bind_language(elsewhere)],
    )


def elsewhere(_: Any = None) -> list[list[str]]:
    """List what the search finds beside answers and glossary: a tab or a section of the Guide, a heading, a text."""
    return [[place, heading, text] for place, pairs in texts_by_place().items() for heading, text in pairs]


def texts_by_place() -> dict[str, list[tuple[str, str]]]:
    """Return headings with their texts, by the name of a tab or of a section of the Guide."""
    guide, race, settings = strings("guide"), strings("player"), strings("page")["settings"]
    lossless, methods, theory = strings("lossless"), strings("methods"), strings("theory")["labels"]
    cards = [card(METHODS[name]) for name in of_drafters("card")]
    practice, systems = guide["practice"], menu.read_json(ASSETS / "sources.json")["systems"]
    return {
        "race": [
            *((race["figures"][name], text) for name, text in race["define"].items()),
            *((race["charts"][name], race["charts"][f"{name}_sub"]) for name in ("bars", "curve", "account")),
            *((settings["rules"][name], settings["rule_lines"][name]) for name in RULES),
            *((menu.family_name(name), menu.family_line(name)) for name in menu.families()),
            (settings["engine"]["browser"], settings["engine"]["about_browser"]),
        ],
        "lossless": [
            *((lossless[name]["title"], lossless[name]["lead"]) for name in ("closed", "sampled", "greedy")),
            *((told["title"], sentences(told["what"], told.get("met", ""))) for told in lossless["mistakes"].values()),
        ],
        "methods": [
            *((told["name"], sentences(told["how"], *told["rows"].values())) for told in cards),
            *((told["title"], told["text"]) for told in methods["questions"].values()),
            *((methods[name]["title"], methods[name]["lead"]) for name in ("speedups", "table")),
        ],
        "theory": [
            *((theory[f"{name}title"], theory[f"{name}sub"]) for name in THEORY),
            (theory["memorytitle"], theory["wallnote"]),
        ],
        "mistakes": [(wrong, right) for wrong, right, _ in guide["mistakes"]],
        "practice": [
            *(
                (one["name"], sentences(practice["notes"][one["id"]].format(**one["values"]), one["command"]))
                for one in systems
            ),
            *((practice[f"{name}_title"], practice[name]) for name in ("uses", "beside")),
        ],
        "about": [(guide["about"][f"{side}_title"], text) for side in ("is", "not") for text in guide["about"][side]],
    }
