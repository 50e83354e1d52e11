"""Turn the app's page into plain markup, and data for its scripts; `site.py` writes both into files.

Parts that need the server's engine are left out or replaced by a sentence.
"""

import html
import json
import re
from collections.abc import Mapping
from typing import Any

import gradio as gr

from ..settings import SETTINGS
from ..traces.file import MAX_BYTES
from . import browser, recorded
from .build import page
from .components.drawn import as_json
from .tabs import TABS
from .text import ENGLISH, example_name, filled, language, LANGUAGES, of_drafters, prompts, strings

COMMAND = "pip install -r requirements.txt && python app.py"
MODULE = re.compile(r"#page/([\w/]+)\.js")
APP_ONLY = ("shared/foot", "shared/local")  # scripts of parts that only the app has
LINKED = ("prompt", "drafter")  # the settings in a link to a recorded run
Runs = Mapping[str, Mapping[str, str]]


def data_script(name: str, value: str) -> str:
    """Write a script that sets `specdec[name]`; `value` is JavaScript."""
    return f"\n(self.specdec ||= {{}})[{as_json(name)}] = {value};\n"


def merged(words: dict[str, Any], replacements: dict[str, Any]) -> dict[str, Any]:
    """Put `replacements` into their places in `words`, at any depth."""
    deep = {name: merged(words[name], inner) for name, inner in replacements.items() if isinstance(inner, dict)}
    return {**words, **replacements, **deep}


class Sheet:
    """The page in the current language. English is at the root of the site, other languages are in folders.

    `runs` has the files of recorded runs by kind of prompt and drafter. `begin` names the run that is shown first, as
    `traces/KIND`. `engine` lists the files that the browser's engine loads, by family.
    """

    def __init__(self, runs: Runs, begin: str, engine: Mapping[str, Any]) -> None:
        self.words, self.runs, self.begin, self.engine = strings("site"), runs, begin, engine
        self.to_root, folder = ("", "") if language() == ENGLISH else ("../", f"{language()}/")
        self.index, self.data = f"{folder}index.html", f"data/{language()}"
        self.files: dict[str, str] = {}
        self.parts: list[dict[str, Any]] = []  # the components that scripts draw
        self.tab = ""  # the tab that is being written
        demo = gr.Blocks(analytics_enabled=False)
        page(demo, teaching=False)
        self.body = self.inside(demo)
        self.files[f"{self.data}/page.js"] = data_script("page", as_json(self.host_data()))

    def host_data(self) -> dict[str, Any]:
        """Collect what `host.js` needs to stand in for Gradio."""
        words = {name: text for name, text in self.words.items() if name != "instead"}
        words["other_trace"] = strings("page")["notice"]["other_trace"]
        words["no_tab"] = strings("traces")["link"]["tab"].format(names=", ".join(TABS))
        return {
            "parts": self.parts,
            "runs": {kind: {"prompt": prompts()[kind][0], "files": files} for kind, files in self.runs.items()},
            "begin": self.begin,
            "up": self.to_root,
            "order": list(SETTINGS),
            "drafters": of_drafters("name"),
            "limit": MAX_BYTES,
            "engine": {"files": self.engine, **browser.settings_there(list(self.engine))},
            "command": COMMAND,
            "words": words,
        }

    def inside(self, block: Any) -> str:
        return "".join(self.markup(child) for child in block.children if child.visible)

    def markup(self, block: Any) -> str:
        name, kind = block.elem_id or (block.elem_classes or [""])[0], type(block).__name__
        special = {"prompt": self.prompt, "run": self.run, "sd-pills": self.pills, "settings": self.settings}
        general = {"HTML": self.html, "Tabs": self.tablist, "Accordion": self.accordion}
        if write := special.get(name) or general.get(kind):
            return write(block)
        return self.box(block, kind.lower(), self.inside(block)) if kind in ("Column", "Row", "Form") else ""

    def box(self, block: Any, kind: str, inside: str) -> str:
        """Write an element with the id, classes and width that Gradio gives it."""
        name = f' id="{block.elem_id}"' if block.elem_id else ""
        scale, width = getattr(block, "scale", None), getattr(block, "min_width", None)
        wide = f' style="flex-grow: {scale}; min-width: min({width}px, 100%)"' if scale and width else ""
        classes = " ".join([kind, *(block.elem_classes or [])])
        return f'<div{name} class="{classes}"{wide}>{inside}</div>'

    def html(self, block: Any) -> str:
        """Write an HTML component. If a script draws the component, describe it in `parts`."""
        module = MODULE.search(block.js_on_load or "")
        if module and module[1] in APP_ONLY:
            return ""
        mark = f' data-at="{len(self.parts)}"' if module else ""
        if module:
            self.parts.append(self.part(block, module[1]))
        inside = block.html_template.replace("${value}", str(block.value or ""))
        inside = inside.replace("@children", self.inside(block))
        for name in LANGUAGES:
            folder = "" if name == ENGLISH else f"{name}/"
            inside = inside.replace(f'href="?lang={name}"', f'href="{self.to_root}{folder}index.html"')
        return self.box(block, "block", f'<div class="html-container"{mark}>{inside}</div>')

    def part(self, block: Any, name: str) -> dict[str, Any]:
        """Describe a component to `host.js`, which mounts it."""
        props, instead = {**block.props, "value": block.value}, self.words["instead"].get(name)
        if name == "shared/keep":
            props["names"] = "[]"  # `host.js` writes the settings into the address
        elif name == "race/player":
            props["value"] = ""  # `host.js` loads the log from a separate file
        elif name == "traces/traces":
            props["settings"] = as_json([s for s in json.loads(props["settings"]) if s["name"] in LINKED])
        if isinstance(instead, dict):
            props["words"] = as_json(merged(json.loads(props["words"]), instead))
        elif instead:
            props["words"] = instead
        return {"at": len(self.parts), "tab": self.tab, "script": name, "props": props, "server": self.answers(block)}

    def answers(self, block: Any) -> dict[str, str]:
        """Map a component's Python functions to the files that replace them; `*` stands for the argument."""
        functions = {function.__name__: function for function in block.server_fns}
        answers = {}
        if "sampled_run" in functions:
            answers["sampled_run"] = f"traces/{recorded.sampled_name()}"
        if "recorded_certificates" in functions:
            answers["recorded_certificates"] = "certificates/*"
        if "elsewhere" in functions:
            answers["elsewhere"] = f"{self.data}/search"
            self.files[f"{self.data}/search.js"] = data_script(f"{self.data}/search", as_json(functions["elsewhere"]()))
        return answers

    def tablist(self, block: Any) -> str:
        panels = []
        for tab in block.children:
            self.tab = tab.elem_id
            panels.append((self.tab, tab.label, self.inside(tab)))
        self.tab = ""
        return self.box(block, "tabs", filled("site/tabs.html", panels=panels))

    def accordion(self, block: Any) -> str:
        button = '<button type="button" class="label-wrap" aria-expanded="false">'
        label = f'<span>{html.escape(block.label)}</span><span class="icon" aria-hidden="true">▼</span></button>'
        return self.box(block, "block padded", f"{button}{label}<div hidden>{self.inside(block)}</div>")

    def prompt(self, _: Any) -> str:
        label = html.escape(strings("page")["settings"]["prompt"], quote=True)
        text = html.escape(prompts()[self.begin.removeprefix("traces/")][0])
        limit = SETTINGS["prompt"].high
        field = f'<textarea rows="1" maxlength="{limit}" aria-label="{label}">{text}</textarea>'
        return f'<div id="prompt">{field}</div>'

    def run(self, _: Any) -> str:
        return f'<button type="button" id="run" class="lg primary">{html.escape(self.words["run"])}</button>'

    def pills(self, block: Any) -> str:
        opening = '<button type="button" class="sm sd-pill" data-kind='
        inside = "".join(f'{opening}"{kind}">{html.escape(example_name(kind))}</button>' for kind in self.runs)
        return self.box(block, "row", self.html(block.children[0]) + inside)

    def settings(self, block: Any) -> str:
        numbers = {name: browser.bounds(SETTINGS[name]) | {"usual": SETTINGS[name].default} for name in browser.NUMBERS}
        inside = filled(
            "site/settings.html",
            words=strings("page")["settings"],
            site=self.words,
            families=list(self.engine),
            numbers=numbers,
            command=COMMAND,
        )
        return self.box(block, "column", inside)
