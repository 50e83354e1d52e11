"""Link or inline the page's scripts: ES modules below `assets/page`, which import each other as `#page/FOLDER/NAME.js`.

A page's import map resolves these names. The app's pages load the modules as files. A page that is a single file, or is
opened from disk, contains the modules as `data:` addresses. Node resolves the same names by `package.json`.
"""

import hashlib
from functools import cache
from pathlib import Path

from ..families import smollm2
from ..paths import FAMILY
from .components.drawn import as_json
from .text import PAGE

FIRST = ("race", "shared/head", "shared/arrival", "shared/local", "handlers/changed")  # needed at the first click


@cache
def sources() -> dict[str, str]:
    """Read the scripts' texts, by their names below `assets/page`."""
    return {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*/*.js"))}


@cache
def layers() -> dict[str, bytes]:
    """Read the WebAssembly builds of `native.cpp`, by their names."""
    return {path.stem: path.read_bytes() for path in sorted((PAGE / "engine").glob("*.wasm"))}


def built_in() -> list[Path]:
    """List the files of the models that the browser's engine runs without a download from the Hub."""
    parts = ("target", "draft_model", "tokenizer")
    return [path for part in parts for path in sorted((FAMILY / part).glob("*.*"))]


@cache
def folder() -> str:
    """Return the address below which the app serves scripts, WebAssembly and models. It changes when a file changes."""
    digest = hashlib.sha256("".join([*sources().values(), smollm2.SHA256]).encode() + b"".join(layers().values()))
    for path in built_in():
        digest.update(path.read_bytes())
    return f"/page/{digest.hexdigest()[:16]}"


def link_modules() -> str:
    """Write the markup for a page of the app: the import map, and preload links for the modules of `FIRST`."""
    preloads = "".join(
        f'<link rel="modulepreload" href=".{folder()}/{name}">' for name in sources() if name.startswith(FIRST)
    )
    return import_map({"#page/": f".{folder()}/"}) + preloads


def inline_modules(*prefixes: str) -> str:
    """Write the markup for a page that is one file: an import map with the modules that have one of `prefixes`."""
    return import_map(inlined(*(name for name in sources() if name.startswith(prefixes))))


def carrying(*names: str) -> str:
    """Write a script that adds an import map with these modules to the page that loads the script."""
    text = as_json(import_text(inlined(*names)))
    script = f'Object.assign(document.createElement("script"), {{ type: "importmap", textContent: {text} }})'
    return f"document.head.append({script});\n"


def inlined(*names: str) -> dict[str, str]:
    """Write modules as `data:` addresses, and escape characters that addresses cannot contain."""
    escapes = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%#\n"})
    return {f"#page/{name}": f"data:text/javascript,{sources()[name].translate(escapes)}" for name in names}


def import_map(places: dict[str, str]) -> str:
    return f'<script type="importmap">{import_text(places)}</script>'


def import_text(places: dict[str, str]) -> str:
    return as_json({"imports": places}).replace("<", "\\u003c")
