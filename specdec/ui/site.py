"""Write the page as files for any web server. It has the app's tabs, and computes runs in the browser.

`assets/page/site/host.js` mounts the components' scripts. A page opened from disk may not fetch files: data are scripts
that set `specdec[NAME]`, and the import map contains most modules.
"""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from ..messages import Refused
from ..methods import EMBEDDED
from ..settings import SETTINGS
from ..traces.file import MAX_BYTES, recording
from . import browser, menu, recorded, text
from .browser import carrying, layers, sources
from .build import page
from .gateway import cache
from .gateway.gradio_private import fonts
from .request import PAIRS
from .tabs import TABS
from .text import as_json, asset, ENGLISH, filled, language, LANGUAGES, of_drafters, prompts, speaking, strings, TAGS
from .theme import STYLES

STYLE = "assets/site.css"  # a folder with this file holds a site, and may be overwritten
COMMAND = "pip install -r requirements.txt && python app.py"
MODULE = re.compile(r"#page/([\w/]+)\.js")
APP_ONLY = ("shared/foot", "shared/local")  # scripts of parts that only the app has
LINKED = ("prompt", "drafter")  # the settings in a link to a recorded run


def write(
    folder: Path,
    version: str,
    models: Callable[[str], Mapping[str, bytes]],
    base: str = "",
    families: Sequence[str] = (EMBEDDED,),
) -> int:
    """Write the site, also over an earlier one, and return its size in bytes. Raises Refused if it cannot.

    `models` makes a family's files (`families.export`). `base` is the page's future address, for previews of links.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STYLE).is_file():
        raise Refused(f"{folder} contains files that are no SpecDec site; name a new or an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before the models, which take a minute to make
    except OSError as error:
        raise Refused(f"{folder} cannot be created: {error.strerror}; name a folder that can be written") from error
    engine = {family: models(family) for family in families}
    texts = shared_files()
    for page_language in LANGUAGES:
        with speaking(page_language):
            sheet = Sheet({family: browser.listed(family, parts) for family, parts in engine.items()})
            texts |= {sheet.index: sheet.document(version, base.rstrip("/")), **sheet.files}
    with speaking(ENGLISH):
        texts["README.md"] = filled("site/README.md", words=strings("page"), version=version)
    files = {name: content.encode() for name, content in texts.items()} | {"preview.png": cache.PICTURE.read_bytes()}
    files |= {f"engine/{name}.wasm": content for name, content in layers().items()}
    files |= {f"engine/{family}.{name}": content for family, parts in engine.items() for name, content in parts.items()}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return sum(map(len, files.values()))


def shared_files() -> dict[str, str]:
    files = {
        STYLE: "".join(asset(f"{name}.css") for name in ("site/site", *STYLES, "shared/root")),
        "assets/fonts.css": fonts(),
        "assets/modules.js": carrying(*(name for name in sources() if not name.startswith(("class/", "engine/")))),
    }
    files |= {name: script for name, script in sources().items() if name.startswith("engine/")}
    for pair in PAIRS:
        name = f"certificates/{pair}"
        files[f"{name}.js"] = data_script(name, as_json(recorded.recorded_certificates(pair)))
    return files


def runs_of(kind: str) -> dict[str, str]:
    """Return the files of a kind's runs, without `.js`, by drafter, the usual one first."""
    runs = {menu.drafter_of(kind): f"traces/{kind}"}
    for drafter in of_drafters("name"):
        path = recording(recorded.TRACES, kind, drafter)
        if drafter not in runs and path.exists():
            runs[drafter] = f"traces/{path.relative_to(recorded.TRACES).with_suffix('').as_posix()}"
    return runs


def data_script(name: str, value: str) -> str:
    """Write a script that sets `specdec[name]`; `value` is JavaScript."""
    return f"\n(self.specdec ||= {{}})[{as_json(name)}] = {value};\n"


def merged(words: dict[str, Any], replacements: dict[str, Any]) -> dict[str, Any]:
    """Put `replacements` into their places in `words`, at any depth."""
    deep = {name: merged(words[name], inner) for name, inner in replacements.items() if isinstance(inner, dict)}
    return {**words, **replacements, **deep}


class Sheet:
    """The page in the current language. `engine` lists the browser's engine's files by family."""

    def __init__(self, engine: Mapping[str, Any]) -> None:
        self.words, self.engine = strings("site"), engine
        kinds = [kind for kind in prompts() if kind in recorded.recorded_names()]
        self.kinds = sorted(kinds, key=lambda kind: kind not in menu.questions())
        self.begin = recorded.recorded_names()[0]  # the kind of the run on the first screen
        self.to_root, folder = ("", "") if language() == ENGLISH else ("../", f"{language()}/")
        self.index, self.data = f"{folder}index.html", f"data/{language()}"
        self.files: dict[str, str] = {}
        self.parts: list[dict[str, Any]] = []  # the components that scripts draw
        self.tab = ""  # the tab that is being written
        demo = gr.Blocks(analytics_enabled=False)
        page(demo, teaching=False)
        self.body = self.inside(demo)
        self.files[f"{self.data}/page.js"] = data_script("page", as_json(self.host_data()))
        for kind in recorded.recorded_names():
            for drafter, name in runs_of(kind).items():
                self.files[f"{name}.js"] = data_script(name, as_json(recorded.recorded(kind, drafter)))

    def document(self, version: str, base: str) -> str:
        scripts = ("assets/modules.js", f"traces/{self.begin}.js", f"{self.data}/page.js")
        return filled(
            "site/index.html",
            words=self.words,
            language=TAGS[language()],
            head=cache.tags(f"{base}/preview.png" if base else f"{self.to_root}preview.png"),
            up=self.to_root,
            body=self.body,
            foot=self.words["foot"].format(version=version),
            scripts="\n".join(f'<script src="{self.to_root}{name}"></script>' for name in scripts),
        )

    def host_data(self) -> dict[str, Any]:
        words = {name: value for name, value in self.words.items() if name != "instead"}
        words["other_trace"] = strings("page")["notice"]["other_trace"]
        words["no_tab"] = strings("traces")["link"]["tab"].format(names=", ".join(TABS))
        return {
            "parts": self.parts,
            "runs": {kind: {"prompt": prompts()[kind][0], "files": runs_of(kind)} for kind in self.kinds},
            "begin": f"traces/{self.begin}",
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
        name = f' id="{block.elem_id}"' if block.elem_id else ""
        scale, width = getattr(block, "scale", None), getattr(block, "min_width", None)
        wide = f' style="flex-grow: {scale}; min-width: min({width}px, 100%)"' if scale and width else ""
        classes = " ".join([kind, *(block.elem_classes or [])])
        return f'<div{name} class="{classes}"{wide}>{inside}</div>'

    def html(self, block: Any) -> str:
        """Write an HTML component. What a script draws is described in `parts`."""
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
        """Map a component's functions to files; `*` stands for the argument."""
        functions = {function.__name__: function for function in block.server_fns}
        places = {
            "sampled_run": f"traces/{recorded.sampled_name()}",
            "recorded_certificates": "certificates/*",
            "elsewhere": f"{self.data}/search",
        }
        if search := functions.get("elsewhere"):
            self.files[f"{self.data}/search.js"] = data_script(f"{self.data}/search", as_json(search()))
        return {name: place for name, place in places.items() if name in functions}

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
        first = html.escape(prompts()[self.begin][0])
        limit = SETTINGS["prompt"].high
        field = f'<textarea rows="1" maxlength="{limit}" aria-label="{label}">{first}</textarea>'
        return f'<div id="prompt">{field}</div>'

    def run(self, _: Any) -> str:
        return f'<button type="button" id="run" class="lg primary">{html.escape(self.words["run"])}</button>'

    def pills(self, block: Any) -> str:
        opening = '<button type="button" class="sm sd-pill" data-kind='
        inside = "".join(f'{opening}"{kind}">{html.escape(text.example_name(kind))}</button>' for kind in self.kinds)
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
