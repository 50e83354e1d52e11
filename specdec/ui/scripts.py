"""Link or inline the page's scripts: ES modules below `assets/page`, which import each other as `#page/FOLDER/NAME.js`.

An import map resolves these names, to files or, in a page that is opened from disk, to `data:` addresses.
"""

import hashlib
from functools import cache
from pathlib import Path

from ..families import smollm2
from ..paths import FAMILY
from .text import as_json, PAGE

FIRST = ("race", "shared/head", "shared/arrival", "shared/local", "handlers/changed")  # needed at the first click
ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%#\n"})  # what addresses cannot contain


@cache
def sources() -> dict[str, str]:
    """Read the scripts' texts, by their names below `assets/page`."""
    return {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*/*.js"))}


@cache
def layers() -> dict[str, bytes]:
    """Read the WebAssembly builds of `native.cpp`, by their names."""
    return {path.stem: path.read_bytes() for path in sorted((PAGE / "engine").glob("*.wasm"))}


def built_in() -> list[Path]:
    """List the files of the models that the browser's engine has without the Hub."""
    parts = ("target", "draft_model", "tokenizer")
    return [path for part in parts for path in sorted((FAMILY / part).glob("*.*"))]


@cache
def folder() -> str:
    """Return the address below which the app serves these files. It changes when one does."""
    digest = hashlib.sha256("".join([*sources().values(), smollm2.SHA256]).encode() + b"".join(layers().values()))
    for path in built_in():
        digest.update(path.read_bytes())
    return f"/page/{digest.hexdigest()[:16]}"


def link_modules() -> str:
    """Write an app's page's import map, and preload links for the modules of `FIRST`."""
    names = [name for name in sources() if name.startswith(FIRST)]
    preloads = "".join(f'<link rel="modulepreload" href=".{folder()}/{name}">' for name in names)
    places = import_map({"#page/": f".{folder()}/"})
    return f'<script type="importmap">{places}</script>{preloads}'


def inline_modules(*prefixes: str) -> str:
    """Write the import map of a page that is one file, with the modules that have `prefixes`."""
    names = [name for name in sources() if name.startswith(prefixes)]
    return f'<script type="importmap">{import_map(inlined(*names))}</script>'


def carrying(*names: str) -> str:
    """Write a script that adds an import map with these modules to its page."""
    text = as_json(import_map(inlined(*names)))
    script = f'Object.assign(document.createElement("script"), {{ type: "importmap", textContent: {text} }})'
    return f"document.head.append({script});\n"


def inlined(*names: str) -> dict[str, str]:
    return {f"#page/{name}": f"data:text/javascript,{sources()[name].translate(ESCAPES)}" for name in names}


def import_map(places: dict[str, str]) -> str:
    return as_json({"imports": places}).replace("<", "\\u003c")
