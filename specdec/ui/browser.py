"""Serve the page's scripts, and the files of the engine that runs in the browser.

Scripts import each other as `#page/FOLDER/NAME.js`, which an import map resolves. Models are written when first needed,
and stay in memory: 17 MB of the embedded family, 100 MB of SmolLM2.
"""

import functools
import hashlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .. import children
from ..families import hub, presets, smollm2
from ..methods import ACCEPTANCE, EMBEDDED, IN_BROWSER, METHODS
from ..paths import FAMILY
from ..settings import Setting, SETTINGS
from .text import as_json, of_drafters, PAGE, read_json, strings

FIRST = ("race", "shared/head", "shared/arrival", "shared/local", "handlers/changed")  # needed at the first click
ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%#\n"})  # what addresses cannot contain
NUMBERS = ("k", "temperature", "max_tokens", "seed", "top_p", "top_k")  # numeric settings of the browser's engine
# Assumed for prompt lookup, about the median of the rates that docs/results.md lists for it on SmolLM2: 0.17 to 0.52.
COPIED = 0.3
DEADLINE_S = 120.0  # for writing the models, which takes ten seconds on a busy machine
_making = threading.Lock()
HEADERS = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@functools.cache
def sources() -> dict[str, str]:
    return {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*/*.js"))}


@functools.cache
def layers() -> dict[str, bytes]:
    """Read the WebAssembly builds of `native.cpp`, by their names."""
    return {path.stem: path.read_bytes() for path in sorted((PAGE / "engine").glob("*.wasm"))}


def built_in() -> list[Path]:
    """List the files of the models that the browser's engine has without the Hub."""
    parts = ("target", "draft_model", "tokenizer")
    return [path for part in parts for path in sorted((FAMILY / part).glob("*.*"))]


@functools.cache
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
    """Write the import map of a page that is one file, with its modules as `data:` addresses."""
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


def settings_there(families: Sequence[str]) -> dict[str, Any]:
    """Return what the scripts need of the browser's engine. They keep times of a `version`."""
    names = of_drafters("name")
    return {
        "drafters": {family: {name: names[name] for name in IN_BROWSER[family]} for family in families},
        "acceptance": {family: {name: acceptance(name) for name in IN_BROWSER[family]} for family in families},
        "numbers": {name: bounds(SETTINGS[name]) for name in NUMBERS},
        "chosen": strings("page")["settings"]["chosen"]["browser"],
        "version": folder(),
    }


def acceptance(name: str) -> dict[str, list[float]]:
    """Return a drafter's acceptance by position, greedy and sampled, as `lanes.probe` takes it."""
    trained = read_json(FAMILY / METHODS[name].folder / "config.json").get("trained", {})
    return {kind: trained.get(kind) or [ACCEPTANCE.get(name, COPIED)] for kind in ("agreement", "overlap")}


def bounds(setting: Setting) -> dict[str, Any]:
    step = 1 if setting.type_ is int else setting.step
    return {"low": setting.low, "high": setting.high, "step": step, "label": strings("page")["settings"][setting.name]}


@functools.cache
def offered() -> list[str]:
    """List the families that a browser can run; none without the embedded models."""
    if not any(path.suffix == ".safetensors" for path in built_in()):
        return []
    return [EMBEDDED, *([presets.SMOLLM2] if hub.is_here(presets.SMOLLM2) else [])]


def listed(family: str, models: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """List the path and size of every file that the browser fetches to run a family."""
    files = {name: {"path": f"{family}.{name}", "size": len(content)} for name, content in models.items()}
    for name, binary in layers().items():
        if family == EMBEDDED or not name.startswith("relaxed"):  # this SIMD needs 7-bit weights; SmolLM2 has some of 8
            files[name] = {"path": f"{name}.wasm", "size": len(binary)}
    return files


@functools.cache
def made(family: str) -> dict[str, bytes]:
    """Write a family's models, and return their files by name. Raises OSError, SubprocessError."""
    with tempfile.TemporaryDirectory() as place:
        with children.start("specdec.families.export", family, place, stdout=subprocess.DEVNULL) as child:
            try:
                if status := child.wait(DEADLINE_S):
                    raise subprocess.CalledProcessError(status, child.args)
            finally:
                child.kill()
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


def made_once(family: str) -> dict[str, bytes]:
    with _making:  # if several visitors come at once, only the first starts the child process
        return made(family)


async def answer(request: Request) -> Response:
    """Answer with a script, `engine/BUILD.wasm`, `engine/FAMILY.json` or a model file."""
    content: bytes | None = None
    name = request.path_params["name"]
    if name in sources():
        return Response(sources()[name], 200, HEADERS, "text/javascript")
    place, _, file = name.partition("/")
    stem, _, kind = file.partition(".")
    if place == "engine" and kind == "wasm":
        content = layers().get(stem)
    elif place == "engine" and stem in offered():
        try:
            models = await run_in_threadpool(made_once, stem)
        except (OSError, subprocess.SubprocessError):
            return JSONResponse({"detail": "The models could not be written. Try again."}, 503)
        content = json.dumps(listed(stem, models)).encode() if kind == "json" else models.get(kind)
    if content is None:
        return JSONResponse({"detail": "There is no such file."}, 404)
    return Response(content, 200, HEADERS, "application/octet-stream")


def route() -> Route:
    return Route(f"{folder()}/{{name:path}}", answer)
