"""The tab Guide, and the guided tour, which is outside of the tabs and switches between them."""

import re
from typing import Any

import gradio as gr

from ...methods import METHODS, RULE_FACTS
from .. import menu, recorded
from ..components.drawn import drawn
from ..text import ASSETS, bind_language, of_drafters, paragraph, read_json, sentences, strings
from . import labels
from .methods import card

STEPS = 4  # of a cycle, at the head of Race's paragraphs: draft, check, accept or reject, go on
# Parts of a tab's words that have a title and a text below it.
CHARTS = ("bars", "curve", "account")
CHECKS = ("closed", "sampled", "greedy")
FIGURES = ("map", "rules", "heat", "measured", "wall", "field")


def tour() -> gr.HTML:
    words, functions = strings("guide")["tour"], [recorded.sampled_run]
    return drawn("guide/tour", words=words, elem_id="tour", server_functions=functions)


def build(_: gr.Tab) -> None:
    all_sources = read_json(ASSETS / "sources.json")
    cycle = re.findall(r"^\*\*(.+?)\*\* ([^.:。：]+)", paragraph("reading"), re.MULTILINE)[:STEPS]
    drawn(
        "guide/guide",
        words={name: text for name, text in strings("guide").items() if name != "tour"},
        elem_id="guide-page",
        tabs=labels(),
        reading=[(name, text + name[-1]) for name, text in cycle],
        sources={kind: listed for kind, listed in all_sources.items() if kind not in ("claims", "hosts", "formats")},
        server_functions=[bind_language(elsewhere)],
    )


def elsewhere(_: Any = None) -> list[list[str]]:
    """List what the search finds elsewhere: a tab or a section, a heading, a text."""
    guide, race, settings = strings("guide"), strings("player"), strings("page")["settings"]
    step, lossless, methods, theory = *map(strings, ("step", "lossless", "methods")), strings("theory")["labels"]
    cards = [card(METHODS[name]) for name in of_drafters("card")]
    practice, systems = guide["practice"], read_json(ASSETS / "sources.json")["systems"]
    notes = [practice["notes"][engine["id"]].format(**engine["values"]) for engine in systems]
    texts = {
        "race": [
            *((race["figures"][name], text) for name, text in race["define"].items()),
            *((race["charts"][name], race["charts"][f"{name}_sub"]) for name in CHARTS),
            *((settings["rules"][name], settings["rule_lines"][name]) for name in RULE_FACTS),
            *((menu.target_name(name), menu.target_sentence(name)) for name in menu.targets()),
            (settings["engine"]["browser"], settings["engine"]["about_browser"]),
            *((strings("page")["reading"], text) for text in paragraph("reading").replace("*", "").split("\n\n")),
        ],
        "step": [(step["own"]["title"], step["own"]["lead"]), (step["own"]["bonus"], step["own"]["bonus_lead"])],
        "lossless": [
            *((lossless[name]["title"].format(draws="n"), lossless[name]["lead"]) for name in CHECKS),
            *((bug["title"], sentences(bug["what"], bug.get("met", ""))) for bug in lossless["mistakes"].values()),
        ],
        "methods": [
            *((method["name"], sentences(method["how"], *method["rows"].values())) for method in cards),
            *((question["title"], question["text"]) for question in methods["questions"].values()),
            (methods["table"]["title"], methods["table"]["lead"]),
        ],
        "theory": [
            *((theory[f"{name}title"], theory[f"{name}sub"]) for name in FIGURES),
            (theory["tabletitle"], sentences(theory["klid"], theory["curvessub"])),
            *((theory[f"{a}title"], theory[b]) for a, b in (("intro", "quotedlid"), ("memory", "wallnote"))),
        ],
        "mistakes": [(wrong, right) for wrong, right, _ in guide["mistakes"]],
        "practice": [
            *((one["name"], sentences(note, one["command"])) for one, note in zip(systems, notes, strict=True)),
            *((practice[f"{name}_title"], practice[name]) for name in ("uses", "beside")),
        ],
        "about": [(guide["about"][f"{side}_title"], text) for side in ("is", "not") for text in guide["about"][side]],
    }
    return [[place, heading, text] for place, pairs in texts.items() for heading, text in pairs]
