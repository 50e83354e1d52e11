"""A page of the app as plain markup, with what its scripts are told: what `site.py` writes into files.

What only an engine can do is left out, or a sentence stands in its place.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import gradio as gr

from ..settings import SETTINGS
from ..traces.file import MAX_BYTES
from . import browser, session
from .build import page
from .components.drawn import as_text, script
from .gradio_private import functions
from .refusals import Page
from .tabs import TABS
from .text import language, LANGUAGES, of_drafters, PAGE, prompts, strings

COMMAND = "pip install -r requirements.txt && python app.py"
LIVE = re.compile(r'data-fold="live"')  # sections in which an engine measures
HEAD = "shared/head"
WITHOUT_FILE = (HEAD, "shared/fold")  # their templates hold words
NAMED = ("prompt", "drafter")  # what a link names a recorded run by
Runs = Mapping[str, Mapping[str, str]]


@cache
def scripts() -> dict[str, str]:
    """The name of every component that files draw, by its script."""
    drawn = [path.relative_to(PAGE).with_suffix("") for path in sorted(PAGE.glob("*/*.html"))]
    names = [one.as_posix() for one in drawn if (PAGE / one).with_suffix(".js").exists()]
    return {script(name): name for name in (*WITHOUT_FILE, *names) if not name.startswith("class/")}


def datum(name: str, value: str) -> str:
    """A script that holds it."""
    return f"\n(self.specdec ||= {{}})[{as_text(name)}] = {value};\n"


def merged(words: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """With those others in their places."""
    deep = {name: merged(words[name], told) for name, told in others.items() if isinstance(told, dict)}
    return {**words, **others, **deep}


class Sheet:
    """The page in the language of now, one of `languages`, the first of which is at the root.

    `runs` are the files of recorded runs by kind and drafter, `begin` is the one on the first screen; `engine` are the
    files of the engine in a browser, each with its path and size.
    """

    def __init__(self, languages: Sequence[str], runs: Runs, begin: str, engine: Mapping[str, Any]) -> None:
        self.engine_files = engine
        self.words, self.runs, self.begin, self.languages = strings("site"), runs, begin, languages
        self.language, at_root = language(), language() == languages[0]
        self.up, folder = ("", "") if at_root else ("../", f"{self.language}/")
        self.index, self.data = f"{folder}index.html", f"data/{self.language}"
        self.files: dict[str, str] = {}
        self.parts: list[dict[str, Any]] = []
        self.tab = ""  # the one that is being written
        self.numbers: dict[int, int] = {}  # of what is on the page, by identity
        demo = Page(analytics_enabled=False)
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
            "order": list(SETTINGS),
            "drafters": of_drafters("name"),
            "limit": MAX_BYTES,
            "engine": {"files": self.engine_files, **browser.asked(list(self.engine_files))},
            "command": COMMAND,
            "words": lines,
        }

    # ---- markup ----

    def inside(self, block: Any) -> str:
        """All that is in it, as far as it is shown."""
        shown = [one for one in block.children if getattr(one, "visible", True)]
        live = [one for one in shown if LIVE.search(getattr(one, "html_template", ""))]
        rest = self.engine(self.words["measure"]) if live else ""
        return "".join(self.markup(one) for one in shown if one not in live) + rest

    def markup(self, block: Any) -> str:
        self.number(block)
        places: dict[str, Callable[[Any], str]] = {
            "prompt": self.prompt, "run": self.run, "stop": lambda _: "", "sd-pills": self.pills,
            "settings": self.settings,
        }  # fmt: skip
        kinds: dict[str, Callable[[Any], str]] = {
            "HTML": self.html, "Tabs": self.tablist, "Accordion": self.accordion, "Radio": self.radio,
            "Plot": self.plot,
        }  # fmt: skip
        kind, name = type(block).__name__, block.elem_id or (block.elem_classes or [""])[0]
        write = places.get(name) or kinds.get(kind)
        if write:
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
        """A component; or markup that no script draws. What only the app has a script for is not here."""
        name = scripts().get(block.js_on_load, "")
        if block.props and not name:
            return ""
        if name:
            self.parts.append(self.part(block, name))
        inside = block.html_template.replace("${value}", str(block.value or ""))
        inside = inside.replace("@children", self.inside(block))
        inside = self.languages_in(inside) if name == HEAD else inside
        return self.box(block, "block", f'<div class="html-container" data-at="{self.number(block)}">{inside}</div>')

    def part(self, block: Any, name: str) -> dict[str, Any]:
        props, told = {**block.props, "value": block.value}, self.words["instead"].get(name)
        if isinstance(told, dict):
            told = as_text(merged(json.loads(props["words"]), told))
        props |= {"words": told} if told else {}
        if name == "shared/keep":
            props["names"] = "[]"  # the host writes the address
        elif name == "race/player":
            props["value"] = ""  # a file of its own
        elif name == "traces/traces":
            props["settings"] = as_text([one for one in json.loads(props["settings"]) if one["name"] in NAMED])
        elif name == "lossless/lossless":
            props["servers"] = as_text({"listed": [], "free": False})
        place = {"at": self.number(block), "tab": self.tab}
        return {**place, "script": name, "props": props, "server": self.answers(block)}

    def answers(self, block: Any) -> dict[str, str]:
        """Of what its script may ask, the files of the answers; `*` stands for what it asks with."""
        known = {"sampled_run": f"traces/{session.sampled_name()}", "recorded_certificates": "certificates/*"}
        asked = {function.__name__: function for function in block.server_fns}
        found = {name: file for name, file in known.items() if name in asked}
        if "file" in asked:
            found["file"] = f"{self.data}/{self.number(block)}-*"
            for kind in block.value or ():
                name = found["file"].replace("*", kind)
                self.files[f"{name}.js"] = datum(name, as_text(asked["file"](kind)))
        return found

    def languages_in(self, head: str) -> str:
        """The ways to the other languages, if they were written, too."""
        for name in LANGUAGES:
            way = f"{self.up}index.html" if name == self.languages[0] else f"{self.up}{name}/index.html"
            if name in self.languages:
                head = head.replace(f'href="?lang={name}"', f'href="{way}"')
            else:
                head = re.sub(rf'<a href="\?lang={name}".*?</a>', "", head)
        return head if len(self.languages) > 1 else re.sub("<nav.*?</nav>", '<nav class="sd-languages"></nav>', head)

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

    def plot(self, block: Any) -> str:
        return self.box(block, "block", f'<div class="js-plotly-plot" data-at="{self.number(block)}"></div>')

    # ---- in place of the fields of the race ----

    def prompt(self, _: Any) -> str:
        kind, label = self.begin.removeprefix("traces/"), html.escape(strings("page")["settings"]["prompt"], quote=True)
        early = html.escape(prompts()[kind][0])
        most = SETTINGS["prompt"].high
        field = f'<textarea rows="1" maxlength="{most}" aria-label="{label}">{early}</textarea>'
        return f'<div id="prompt">{field}</div>'

    def run(self, _: Any) -> str:
        return f'<button type="button" id="run" class="lg primary">{html.escape(self.words["run"])}</button>'

    def pills(self, block: Any) -> str:
        names = strings("page")["settings"]["examples"]
        return self.box(block, "row", "".join(
            f'<button type="button" class="sm sd-pill" data-kind="{kind}">{html.escape(names[kind])}</button>'
            for kind in self.runs
        ))  # fmt: skip

    def settings(self, block: Any) -> str:
        words = strings("page")["settings"]
        fields = [(words["drafter"], '<select id="drafter" name="drafter"></select>')]
        if len(self.engine_files) > 1:
            choices = "".join(
                f'<option value="{name}">{html.escape(self.words["own"]["families"][name])}</option>'
                for name in self.engine_files
            )
            fields.insert(0, (words["target"], f'<select name="family">{choices}</select>'))
        for name, one in browser.asked(())["numbers"].items():
            bounds = f'min="{one["low"]:g}" max="{one["high"]:.10g}" step="{one["step"]:g}"'
            value = f'value="{SETTINGS[name].default}"'
            fields.append((one["label"], f'<input type="number" name="{name}" {bounds} {value}>'))
        fields.append((words["stop_strings"], '<textarea name="stop" rows="1"></textarea>'))
        form = "".join(
            f'<label class="block"><span>{html.escape(name)}</span>{field}</label>' for name, field in fields
        )
        about = f'<p class="sd-sub">{html.escape(self.words["own"]["about"])}</p>'
        return self.box(block, "column", f'<div class="form">{form}</div>{about}{self.engine(self.words["live"])}')

    def engine(self, sentence: str) -> str:
        return f'<p class="sd-sub sd-engine">{html.escape(sentence)} <code>{html.escape(COMMAND)}</code></p>'

    # ---- charts and what is said of them ----

    def charts(self, demo: gr.Blocks) -> list[dict[str, Any]]:
        """What tabs draw when they are opened, and for each choice: all answers of a function that is asked with
        nothing but choices are in one file, by the numbers of the choices."""
        found: dict[tuple[int, ...], dict[str, Any]] = {}
        for event in functions(demo).values():
            asked = event.inputs
            here = all(id(one) in self.numbers for one in (*asked, *event.outputs))
            drawn = any(isinstance(one, gr.Plot) for one in event.outputs)
            if not (here and drawn and event.fn) or not all(isinstance(one, gr.Radio) for one in asked):
                continue
            shown = [self.number(one) for one in event.outputs]
            name = f"{self.data}/{shown[0]}"
            if tuple(shown) not in found:
                ways = itertools.product(*(list(enumerate(value for _, value in one.choices)) for one in asked))
                answers = {"-".join(str(i) for i, _ in way): event.fn(*(value for _, value in way)) for way in ways}
                told = {way: list(map(update, listed(answer))) for way, answer in answers.items()}
                self.files[f"{name}.js"] = datum(name, as_text(told))
            found[tuple(shown)] = {
                "asked": [self.number(one) for one in asked], "shown": shown, "file": name,
            }  # fmt: skip
        return list(found.values())


def listed(answer: Any) -> list[Any]:
    return list(answer) if isinstance(answer, tuple) else [answer]


def update(answer: Any) -> dict[str, Any]:
    """What an answer changes of its component; a chart as plotly writes it."""
    changed = dict(answer) if isinstance(answer, dict) and "__type__" in answer else {"value": answer}
    changed.pop("__type__", None)
    chart: Any = changed.get("value")
    return changed | ({"value": json.loads(chart.to_json())} if hasattr(chart, "to_json") else {})
