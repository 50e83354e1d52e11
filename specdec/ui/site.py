"""Write the page as files that any web server can serve. It has the app's tabs, and computes runs in the browser.

Gradio's components become markup, whose scripts `assets/page/site/host.js` mounts. The answers of Python functions are
computed beforehand. A page opened from disk may not fetch files. Therefore data are scripts that set `specdec[NAME]`,
and the import map contains the modules, except those that compute runs.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..messages import Refused
from ..methods import EMBEDDED
from ..traces.file import recording
from . import menu, recorded
from .browser import listed
from .components.drawn import as_json
from .gateway import first
from .request import PAIRS
from .scripts import carrying, layers, sources
from .sheet import data_script, Sheet
from .standalone import fonts
from .text import asset, ENGLISH, filled, language, LANGUAGES, of_drafters, prompts, speaking, strings, TAGS
from .theme import STYLES

STYLE = "assets/site.css"  # a folder with this file holds a site, and may be overwritten
ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r"})  # for `quoted`


def write(
    folder: Path,
    version: str,
    models: Callable[[str], Mapping[str, bytes]],
    base: str = "",
    families: Sequence[str] = (EMBEDDED,),
) -> int:
    """Write the site, also over an earlier one. Return its size in bytes.

    `models` makes a family's model files (`families.browser.files`). `base` is the future address of the page, which
    link previews need. Raises Refused if the folder cannot be created, or contains files but no earlier site.
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
            sheet = Sheet(recorded_runs(), begin(), {family: listed(family, parts) for family, parts in engine.items()})
            texts |= {sheet.index: document(sheet, version, base.rstrip("/")), **sheet.files}
    with speaking(ENGLISH):
        texts["README.md"] = filled("site/README.md", words=strings("page"), version=version)
    files = {name: text.encode() for name, text in texts.items()} | {"preview.png": first.PICTURE.read_bytes()}
    files |= {f"engine/{name}.wasm": content for name, content in layers().items()}
    files |= {f"engine/{family}.{name}": content for family, parts in engine.items() for name, content in parts.items()}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return sum(map(len, files.values()))


def document(sheet: Sheet, version: str, base: str) -> str:
    words, scripts = strings("site"), ("assets/modules.js", f"{begin()}.js", f"{sheet.data}/page.js")
    return filled(
        "site/index.html",
        words=words,
        language=TAGS[language()],
        head=first.tags(language(), f"{base}/preview.png" if base else f"{sheet.to_root}preview.png"),
        up=sheet.to_root,
        body=sheet.body,
        foot=words["foot"].format(version=version),
        scripts="\n".join(f'<script src="{sheet.to_root}{name}"></script>' for name in scripts),
    )


def shared_files() -> dict[str, str]:
    """Return the texts of the files that all languages share, by file name."""
    files = {
        STYLE: "".join(asset(f"{name}.css") for name in ("site/site", *STYLES, "shared/root")),
        "assets/fonts.css": fonts(),
        "assets/modules.js": carrying(*(name for name in sources() if not name.startswith(("class/", "engine/")))),
    }
    files |= {name: text for name, text in sources().items() if name.startswith("engine/")}
    for pair in PAIRS:
        name = f"certificates/{pair}"
        files[f"{name}.js"] = data_script(name, as_json(recorded.recorded_certificates(pair)))
    for page_language in LANGUAGES:
        with speaking(page_language):
            for kind in recorded.recorded_names():
                for drafter, name in runs_of(kind).items():
                    log = recorded.recorded(kind, "" if drafter == menu.drafter_of(kind) else drafter)
                    files[f"{name}.js"] = data_script(name, quoted(log))
    return files


def quoted(text: str) -> str:
    """Return the text as a JavaScript string in single quotes, so that a log's many double quotes are not escaped."""
    return "'" + text.translate(ESCAPES) + "'"


def recorded_runs() -> dict[str, dict[str, str]]:
    """Return, for each kind of example prompt, the files of its recorded runs by drafter."""
    kinds = [kind for kind in prompts() if kind in recorded.recorded_names()]
    return {kind: runs_of(kind) for kind in sorted(kinds, key=lambda kind: kind not in menu.questions())}


def runs_of(kind: str) -> dict[str, str]:
    """Return the files of a kind's recorded runs, without `.js`, by drafter. The kind's usual drafter comes first."""
    runs = {menu.drafter_of(kind): f"traces/{kind}"}
    for drafter in of_drafters("name"):
        path = recording(recorded.TRACES, kind, drafter)
        if drafter not in runs and path.exists():
            runs[drafter] = f"traces/{path.relative_to(recorded.TRACES).with_suffix('').as_posix()}"
    return runs


def begin() -> str:
    """Return the file of the run on the first screen, without `.js`."""
    return f"traces/{recorded.recorded_names()[0]}"
