"""The page as files that any host serves: the same tabs, templates, scripts, styles and texts; runs in the browser.

The page of each language is built as the app builds it. Its components become markup, and `assets/page/site/host.js`
is to their scripts what Gradio is; what Python would answer is worked out beforehand. All data are scripts that set
`specdec[NAME]`: those load from a disk as well, where a page may fetch nothing.
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
from . import first, menu, session
from .browser import engine_script, layers, listed
from .components.drawn import as_function, as_text, handler, script
from .request import PAIRS
from .sheet import datum, scripts, Sheet
from .standalone import fonts
from .text import LANGUAGES, of_drafters, PAGE, prompts, speaking, strings, TAGS
from .theme import STYLES, styles

MADE = ".specdec-site.json"  # what was written: the mark of a folder of ours
MARKS = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r"})  # within single quotes
AT_ONCE = re.compile(r'(?:src|href)="([\w./-]+\.(?:js|css))"')
README = """---
title: {title}
emoji: 🏁
colorFrom: indigo
colorTo: green
sdk: static
app_file: index.html
license: apache-2.0
custom_headers:
  cross-origin-embedder-policy: require-corp
  cross-origin-opener-policy: same-origin
  cross-origin-resource-policy: cross-origin
---

{about} Recorded runs, and an engine in the browser: written by `specdec site` of specdec {version}. To look at it here:
`python -m http.server`.
"""


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
    told = {family: listed(family, parts) for family, parts in engine.items()}
    files, at_once = {name: text.encode() for name, text in shared().items()}, 0
    files |= {f"engine/{name}": content for name, content in layers().items()}
    files |= {f"engine/{family}.{name}": one for family, parts in engine.items() for name, one in parts.items()}
    for language in languages:
        with speaking(language):
            sheet = Sheet(languages, recorded_runs(), begin(), told)
            index, text = sheet.index, document(sheet, version, base.rstrip("/"))
            files |= {name: text.encode() for name, text in {index: text, **sheet.files}.items()}
            named = [name.removeprefix(sheet.up) for name in AT_ONCE.findall(text)]
            at_once = max(at_once, sum(len(files[name]) for name in [index, *named]))
    files["preview.png"] = first.PICTURE.read_bytes()
    with speaking(languages[0]):
        words = strings("page")
        files["README.md"] = README.format(title=words["brand"], about=words["headline"], version=version).encode()
    clear(before)
    files[MADE] = json.dumps(sorted(files)).encode()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Written(len(files), sum(map(len, files.values())), at_once)


def earlier(folder: Path) -> list[Path]:
    """The files of an earlier site there; ValueError where anything else is."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    try:
        names = [str(name) for name in json.loads((folder / MADE).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise ValueError(f"{folder} holds files that are not of a site; name a new or an empty folder") from None
    return [folder / name for name in names if (folder / name).resolve().is_relative_to(folder.resolve())]


def clear(files: Sequence[Path]) -> None:
    """With the folders that are empty then."""
    for path in files:
        path.unlink(missing_ok=True)
    for place in sorted({path.parent for path in files}, key=str, reverse=True):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def document(sheet: Sheet, version: str, base: str) -> str:
    """The page itself. Its places are filled in one go: nothing that fills one is searched for others."""
    sources = ("assets/scripts.js", f"{begin()}.js", f"{sheet.data}/page.js", "assets/host.js")
    words = strings("site")
    places = {
        "language": TAGS[sheet.language],
        "head": first.tags(sheet.language, f"{base}/preview.png" if base else f"{sheet.up}preview.png"),
        "up": sheet.up,
        "body": sheet.body,
        "foot": html.escape(words["foot"].format(version=version)),
        "noscript": html.escape(words["noscript"]),
        "scripts": "\n".join(f'<script src="{sheet.up}{name}"></script>' for name in sources),
    }
    template = (PAGE / "site/index.html").read_text(encoding="utf-8")
    return re.sub(r"@@(\w+)@@", lambda place: places[place[1]], template)


def shared() -> dict[str, str]:
    """The files that all languages need."""
    from plotly.offline import get_plotlyjs

    takes = "element, props, watch, trigger, server"
    bodies = [f"{as_text(name)}: {as_function(takes, body)}" for body, name in scripts().items()]
    bodies.append(f'"handlers/kept": {as_function("", "return " + handler("kept"))}')
    root = (PAGE / "shared/root.css").read_text(encoding="utf-8")
    files = {
        "assets/site.css": "".join(map(styles, ("site/site", *STYLES))) + root,
        "assets/fonts.css": fonts(),
        "assets/scripts.js": datum("scripts", "{" + ",\n".join(bodies) + "}"),
        "assets/host.js": f"({as_function('', script('site/host'))})();\n",
        "assets/engine.js": engine_script(),
        "assets/plotly.js": get_plotlyjs() + datum("assets/plotly", "true"),
    }
    for pair in PAIRS:
        name = f"certificates/{pair}"
        files[f"{name}.js"] = datum(name, as_text(session.recorded_certificates(pair)))
    for kind in session.recorded_names():
        named = {f"traces/{kind}": "", **{name: drafter for drafter, name in others(kind).items()}}
        files |= {f"{name}.js": datum(name, quoted(session.recorded(kind, drafter))) for name, drafter in named.items()}
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
