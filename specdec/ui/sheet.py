"""A page of the app as plain markup, with what its scripts are told: what `site.py` writes into files.

What only an engine can do is left out, or a sentence stands in its place.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from ..settings import SETTINGS
from ..traces.file import MAX_BYTES
from . import browser, session
from .build import page
from .components.drawn import as_text
from .tabs import TABS
from .text import language, of_drafters, prompts, strings

COMMAND = "pip install -r requirements.txt && python app.py"
LIVE = re.compile(r'data-fold="live"')  # sections in which an engine measures
MODULE = re.compile(r"#page/([\w/]+)\.js")
WAY = re.compile(r'<a href="\?lang=(\w+)"(.*?</a>)')  # to the page in another language
APP_ONLY = ("shared/foot", "shared/here")  # the scripts of what only the app has
ANSWERS = {"sampled_run": f"traces/{session.sampled_name()}", "recorded_certificates": "certificates/*"}
NAMED = ("prompt", "drafter")  # what a link names a recorded run by
Runs = Mapping[str, Mapping[str, str]]


def datum(name: str, value: str) -> str:
    """A script that holds it."""
    return f"\n(self.specdec ||= {{}})[{as_text(name)}] = {value};\n"


def merged(words: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """With those others in their places."""
    deep = {name: merged(words[name], one) for name, one in others.items() if isinstance(one, dict)}
    return {**words, **others, **deep}


class Sheet:
    """The page in the language of now, one of `languages`, the first of which is at the root.

    `runs` are the files of recorded runs by kind and drafter, `begin` is the one on the first screen; `engine` are the
    files of the engine in a browser, each with its path and size.
    """

    def __init__(self, languages: Sequence[str], runs: Runs, begin: str, engine: Mapping[str, Any]) -> None:
        self.words, self.runs, self.begin, self.languages, self.engine = strings("site"), runs, begin, languages, engine
        self.language, at_root = language(), language() == languages[0]
        self.up, self.data = "" if at_root else "../", f"data/{self.language}"
        self.index = "index.html" if at_root else f"{self.language}/index.html"
        self.files: dict[str, str] = {}
        self.parts: list[dict[str, Any]] = []
        self.tab = ""  # the one that is being written
        self.numbers: dict[int, int] = {}  # of what is on the page, by identity
        demo = gr.Blocks(analytics_enabled=False)
        page(demo, teaching=False)
        self.body = self.inside(demo)
        self.files[f"{self.data}/page.js"] = datum("page", as_text(self.told(demo)))

    def told(self, demo: gr.Blocks) -> dict[str, Any]:
        """What the host is told of the page."""
        lines = {name: text for name, text in self.words.items() if name != "instead"}
        lines["other_trace"] = strings("page")["notice"]["other_trace"]
        lines["no_tab"] = strings("traces")["link"]["tab"].format(names=", ".join(TABS))
        return {
            "parts": self.parts,
            "charts": self.charts(demo),
            "runs": {kind: {"prompt": prompts()[kind][0], "files": files} for kind, files in self.runs.items()},
            "begin": self.begin,
            "up": self.up,
            "order": list(SETTINGS),
            "drafters": of_drafters("name"),
            "limit": MAX_BYTES,
            "engine": {"files": self.engine, **browser.asked(list(self.engine))},
            "command": COMMAND,
            "words": lines,
        }

    # ---- markup ----

    def inside(self, block: Any) -> str:
        """All that is in it, as far as it is shown."""
        shown = [one for one in block.children if getattr(one, "visible", True)]
        rest = [one for one in shown if not LIVE.search(getattr(one, "html_template", ""))]
        return "".join(map(self.markup, rest)) + (self.needs_engine("measure") if rest != shown else "")

    def markup(self, block: Any) -> str:
        self.number(block)
        kind, name = type(block).__name__, block.elem_id or (block.elem_classes or [""])[0]
        places: dict[str, Callable[[Any], str]] = {
            "prompt": self.prompt,
            "run": self.run,
            "stop": lambda _: "",
            "sd-pills": self.pills,
            "settings": self.settings,
            "HTML": self.html,
            "Tabs": self.tablist,
            "Accordion": self.accordion,
            "Radio": self.radio,
            "Plot": lambda one: self.box(
                one, "block", f'<div class="js-plotly-plot" data-at="{self.number(one)}"></div>'
            ),
        }
        if write := places.get(name) or places.get(kind):
            return write(block)
        return self.box(block, kind.lower(), self.inside(block)) if kind in ("Column", "Row", "Form") else ""

    def number(self, block: Any) -> int:
        """The same in every language."""
        return self.numbers.setdefault(id(block), len(self.numbers))

    def box(self, block: Any, kind: str, inside: str, more: str = "") -> str:
        """An element with the name, classes and width that Gradio gives it."""
        name = f' id="{block.elem_id}"' if block.elem_id else ""
        scale, width = getattr(block, "scale", None), getattr(block, "min_width", None)
        wide = f' style="flex-grow: {scale}; min-width: min({width}px, 100%)"' if scale and width else ""
        classes = " ".join([kind, *(block.elem_classes or [])])
        return f'<div{name} class="{classes}"{wide}{more}>{inside}</div>'

    def html(self, block: Any) -> str:
        """A component, or markup that no script draws."""
        module = MODULE.search(block.js_on_load or "")
        name = module[1] if module else ""
        if name in APP_ONLY:
            return ""
        if name:
            self.parts.append(self.part(block, name))
        inside = block.html_template.replace("${value}", str(block.value or ""))
        inside = WAY.sub(self.way, inside.replace("@children", self.inside(block)))
        return self.box(block, "block", f'<div class="html-container" data-at="{self.number(block)}">{inside}</div>')

    def part(self, block: Any, name: str) -> dict[str, Any]:
        """What the host mounts there."""
        props, instead = {**block.props, "value": block.value}, self.words["instead"].get(name)
        if isinstance(instead, dict):
            instead = as_text(merged(json.loads(props["words"]), instead))
        others: dict[str, Callable[[], dict[str, Any]]] = {
            "shared/keep": lambda: {"names": "[]"},  # the host writes the address
            "race/player": lambda: {"value": ""},  # a file of its own
            "traces/traces": lambda: {
                "settings": [one for one in json.loads(props["settings"]) if one["name"] in NAMED]
            },
        }
        changed = others.get(name, dict)() | ({"words": instead} if instead else {})
        props |= {key: one if isinstance(one, str) else as_text(one) for key, one in changed.items()}
        at = self.number(block)
        return {"at": at, "tab": self.tab, "script": name, "props": props, "server": self.answers(block)}

    def answers(self, block: Any) -> dict[str, str]:
        """Of what its script may ask, the files of the answers; `*` stands for what it asks with."""
        asked = {function.__name__: function for function in block.server_fns}
        found = {name: file for name, file in ANSWERS.items() if name in asked}
        if "file" in asked:
            found["file"] = f"{self.data}/{self.number(block)}-*"
            for kind in block.value or ():
                name = found["file"].replace("*", kind)
                self.files[f"{name}.js"] = datum(name, as_text(asked["file"](kind)))
        return found

    def way(self, link: re.Match[str]) -> str:
        """The way to another language, if it was written, too."""
        if len(self.languages) == 1 or link[1] not in self.languages:
            return ""
        folder = "" if link[1] == self.languages[0] else f"{link[1]}/"
        return f'<a href="{self.up}{folder}index.html"{link[2]}'

    def tablist(self, block: Any) -> str:
        buttons, panels = "", ""
        for one in block.children:
            name = self.tab = one.elem_id
            first = ' class="selected" aria-selected="true"' if not buttons else ' aria-selected="false" tabindex="-1"'
            buttons += f'<button type="button" id="{name}-button" role="tab" aria-controls="{name}"{first}>'
            buttons += f"{html.escape(one.label)}</button>"
            hidden = " hidden" if panels else ""
            panels += f'<div id="{name}" class="tabitem" role="tabpanel" aria-labelledby="{name}-button"{hidden}>'
            panels += f'<div class="column">{self.inside(one)}</div></div>'
        self.tab = ""
        row = f'<div class="tab-wrapper"><div class="tab-container" role="tablist">{buttons}</div></div>'
        return self.box(block, "tabs", row + panels)

    def accordion(self, block: Any) -> str:
        button = '<button type="button" class="label-wrap" aria-expanded="false">'
        label = f'<span>{html.escape(block.label)}</span><span class="icon" aria-hidden="true">▼</span></button>'
        return self.box(block, "block padded", f"{button}{label}<div hidden>{self.inside(block)}</div>")

    def radio(self, block: Any) -> str:
        number, choices = self.number(block), ""
        for i, (text, value) in enumerate(block.choices):
            chosen, on = (' class="selected"', " checked") if value == block.value else ("", "")
            field = f'<input type="radio" name="r{number}" value="{i}"{on}>'
            choices += f"<label{chosen}>{field}<span>{html.escape(text)}</span></label>"
        label = f'<span id="r{number}">{html.escape(block.label)}</span><div class="wrap">{choices}</div>'
        more = f' data-at="{number}" role="radiogroup" aria-labelledby="r{number}"'
        return self.box(block, "block padded", label, more)

    # ---- in place of the fields of the race ----

    def prompt(self, _: Any) -> str:
        label = html.escape(strings("page")["settings"]["prompt"], quote=True)
        early = html.escape(prompts()[self.begin.removeprefix("traces/")][0])
        most = SETTINGS["prompt"].high
        field = f'<textarea rows="1" maxlength="{most}" aria-label="{label}">{early}</textarea>'
        return f'<div id="prompt">{field}</div>'

    def run(self, _: Any) -> str:
        return f'<button type="button" id="run" class="lg primary">{html.escape(self.words["run"])}</button>'

    def pills(self, block: Any) -> str:
        names, begin = strings("page")["settings"]["examples"], '<button type="button" class="sm sd-pill" data-kind='
        inside = "".join(f'{begin}"{kind}">{html.escape(names[kind])}</button>' for kind in self.runs)
        return self.box(block, "row", inside)

    def settings(self, block: Any) -> str:
        words, own = strings("page")["settings"], self.words["own"]
        fields = {words["drafter"]: '<select id="drafter" name="drafter"></select>'}
        if len(self.engine) > 1:
            choices = "".join(
                f'<option value="{name}">{html.escape(own["families"][name])}</option>' for name in self.engine
            )
            fields = {words["target"]: f'<select name="family">{choices}</select>', **fields}
        for name, one in browser.asked(())["numbers"].items():
            bounds = f'min="{one["low"]:g}" max="{one["high"]:.10g}" step="{one["step"]:g}"'
            fields[one["label"]] = f'<input type="number" name="{name}" {bounds} value="{SETTINGS[name].default}">'
        fields[words["stop_strings"]] = '<textarea name="stop" rows="1"></textarea>'
        form = "".join(
            f'<label class="block"><span>{html.escape(name)}</span>{one}</label>' for name, one in fields.items()
        )
        about = f'<p class="sd-sub">{html.escape(own["about"])}</p>'
        return self.box(block, "column", f'<div class="form">{form}</div>{about}{self.needs_engine("live")}')

    def needs_engine(self, word: str) -> str:
        sentence = html.escape(self.words[word])
        return f'<p class="sd-sub sd-engine">{sentence} <code>{html.escape(COMMAND)}</code></p>'

    # ---- charts and what is said of them ----

    def charts(self, demo: gr.Blocks) -> list[dict[str, Any]]:
        """What tabs draw when they are opened, and for each choice: all answers of a function that is asked with
        nothing but choices are in one file, by the numbers of the choices."""
        found: dict[str, dict[str, Any]] = {}
        for event in demo.fns.values():
            asked: Sequence[Any] = event.inputs
            shown = event.outputs
            here = all(id(one) in self.numbers for one in (*asked, *shown))
            function: Any = event.fn
            drawn = function and any(isinstance(one, gr.Plot) for one in shown)
            if not (here and drawn and all(isinstance(one, gr.Radio) for one in asked)):
                continue
            name = f"{self.data}/{self.number(shown[0])}"
            if name not in found:
                ways = itertools.product(*(enumerate(value for _, value in one.choices) for one in asked))
                told = {
                    "-".join(str(i) for i, _ in way): updates(function(*(value for _, value in way))) for way in ways
                }
                self.files[f"{name}.js"] = datum(name, as_text(told))
            found[name] = {"asked": [*map(self.number, asked)], "shown": [*map(self.number, shown)], "file": name}
        return list(found.values())


def updates(answer: Any) -> list[dict[str, Any]]:
    """What an answer changes of each component; a chart as plotly writes it."""
    found = []
    for one in answer if isinstance(answer, tuple) else (answer,):
        changed = dict(one) if isinstance(one, dict) and "__type__" in one else {"value": one}
        changed.pop("__type__", None)
        chart: Any = changed.get("value")
        found.append(changed | ({"value": json.loads(chart.to_json())} if hasattr(chart, "to_json") else {}))
    return found
