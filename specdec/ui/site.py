"""The page as files that any host serves: the same tabs, templates, modules, styles and texts; runs in the browser.

The page of each language is built as the app builds it. Its components become markup, and `assets/page/site/host.js`
is to their scripts what Gradio is; what Python would answer is worked out beforehand. All data are scripts that set
`specdec[NAME]`, and modules are in the import map: those load from a disk as well, where a page may fetch nothing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..methods import EMBEDDED
from ..traces.file import recording
from . import menu, session
from .browser import listed
from .components.drawn import as_text
from .gateway import first
from .request import PAIRS
from .scripts import carrying, layers, sources
from .sheet import datum, Sheet
from .standalone import filled, fonts, read
from .text import LANGUAGES, of_drafters, prompts, speaking, strings, TAGS
from .theme import STYLES

MADE = ".specdec-site.json"  # what was written: the mark of a folder of ours
MARKS = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r"})  # within single quotes
AT_ONCE = re.compile(r'(?:src|href)="([\w./-]+\.(?:js|css))"')


@dataclass(frozen=True)
class Written:
    """`size` is all of it, `at_once` what the first screen takes, in bytes."""

    files: int
    size: int
    at_once: int


def write(
    folder: Path,
    version: str,
    models: Callable[[str], Mapping[str, bytes]],
    base: str = "",
    languages: Sequence[str] = tuple(LANGUAGES),
    families: Sequence[str] = (EMBEDDED,),
) -> Written:
    """The first language is at the root, others in folders of their names. What an earlier call wrote goes first.

    `models` gives what a run of each of `families` fetches (`families.browser.files`), and is asked only where the
    folder may be written. `base` is the address that the page will have: previews of links to it need one. ValueError
    where the folder holds anything else.
    """
    before = earlier(folder)
    engine = {family: models(family) for family in families}
    files, at_once = {name: text.encode() for name, text in shared().items()}, 0
    files |= {f"engine/{name}.wasm": content for name, content in layers().items()}
    files |= {f"engine/{family}.{name}": one for family, parts in engine.items() for name, one in parts.items()}
    for language in languages:
        with speaking(language):
            lists = {family: listed(family, parts) for family, parts in engine.items()}
            sheet = Sheet(languages, recorded_runs(), begin(), lists)
            text = document(sheet, version, base.rstrip("/"))
        files |= {name: one.encode() for name, one in {sheet.index: text, **sheet.files}.items()}
        named = [name.removeprefix(sheet.up) for name in AT_ONCE.findall(text)]
        at_once = max(at_once, sum(len(files[name]) for name in [sheet.index, *named]))
    files["preview.png"] = first.PICTURE.read_bytes()
    with speaking(languages[0]):
        title, about = (strings("page")[name] for name in ("brand", "headline"))
    files["README.md"] = filled("site/README.md", {"title": title, "about": about, "version": version}).encode()
    for path in before:
        path.unlink(missing_ok=True)
    files[MADE] = json.dumps(sorted(files)).encode()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return Written(len(files), sum(map(len, files.values())), at_once)


def earlier(folder: Path) -> list[Path]:
    """The files of an earlier site there; ValueError where anything else is."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    if not (folder / MADE).is_file():
        raise ValueError(f"{folder} holds files that are not of a site; name a new or an empty folder")
    return [folder / name for name in json.loads((folder / MADE).read_text(encoding="utf-8"))]


def document(sheet: Sheet, version: str, base: str) -> str:
    """The page itself."""
    words, before = strings("site"), ("assets/modules.js", f"{begin()}.js", f"{sheet.data}/page.js")
    parts = {
        "language": TAGS[sheet.language],
        "head": first.tags(sheet.language, f"{base}/preview.png" if base else f"{sheet.up}preview.png"),
        "up": sheet.up,
        "body": sheet.body,
        "foot": html.escape(words["foot"].format(version=version)),
        "noscript": html.escape(words["noscript"]),
        "scripts": "\n".join(f'<script src="{sheet.up}{name}"></script>' for name in before),
    }
    return filled("site/index.html", parts)


def shared() -> dict[str, str]:
    """The files that all languages need."""
    from plotly.offline import get_plotlyjs

    files = {
        "assets/site.css": "".join(read(f"{name}.css") for name in ("site/site", *STYLES, "shared/root")),
        "assets/fonts.css": fonts(),
        "assets/modules.js": carrying(*(name for name in sources() if not name.startswith(("class/", "engine/")))),
        "assets/plotly.js": get_plotlyjs() + datum("assets/plotly", "true"),
    }
    files |= {name: text for name, text in sources().items() if name.startswith("engine/")}
    for pair in PAIRS:
        name = f"certificates/{pair}"
        files[f"{name}.js"] = datum(name, as_text(session.recorded_certificates(pair)))
    for kind in session.recorded_names():
        for drafter, name in {"": f"traces/{kind}", **others(kind)}.items():
            files[f"{name}.js"] = datum(name, quoted(session.recorded(kind, drafter)))
    return files


def quoted(text: str) -> str:
    """As a script writes it; double quotes, of which a log is full, stay single characters."""
    return "'" + text.translate(MARKS) + "'"


def recorded_runs() -> dict[str, dict[str, str]]:
    """By kind of example and drafter, the usual one first, the file of the recorded run, without `.js`."""
    named = session.recorded_names()
    kinds = sorted((one for one in prompts() if one in named), key=lambda one: one not in menu.questions())
    return {kind: {menu.drafter_of(kind): f"traces/{kind}", **others(kind)} for kind in kinds}


def others(kind: str) -> dict[str, str]:
    found = {}
    for drafter in of_drafters("name"):
        path = recording(session.TRACES, kind, drafter)
        if drafter != menu.drafter_of(kind) and session.recorded(kind, drafter):
            found[drafter] = f"traces/{path.relative_to(session.TRACES).with_suffix('').as_posix()}"
    return found


def begin() -> str:
    return f"traces/{session.recorded_names()[0]}"
