"""The engine in the visitor's browser: what may be asked of it, and the files that it fetches from the app.

Its script and the models lie below PLACE, under a name that changes with them, and nothing else does. A family's models
are written by a child process when the first visitor asks for them, and stay in memory: 17 MB of the built-in ones, 100
MB of SmolLM2, which is offered where it is on this machine.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .. import children
from ..families import hub, presets, star
from ..methods import EMBEDDED, IN_BROWSER
from ..settings import Setting, SETTINGS
from .components.drawn import as_function, script
from .menu import FAMILY
from .text import of_drafters, PAGE, strings

PLACE, LISTED = "/browser", "json"
NUMBERS = ("k", "temperature", "max_tokens", "seed", "top_p", "top_k")  # settings of a run there
TEXTS = ("prompt", "stop")  # beside those numbers
PATIENCE, FORGIVEN = 120.0, 60.0  # seconds for the models, of which a busy machine takes ten; until another try
KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


def asked(families: Sequence[str]) -> dict[str, Any]:
    """What scripts are told of who drafts there for which family, of the numbers of a run, and of what it lacks."""
    names = of_drafters("name")
    numbers = {
        one.name: {
            "low": one.step if one.above else one.low, "high": one.high, "step": 1 if one.type_ is int else one.step,
            "label": label(one),
        }
        for one in map(SETTINGS.__getitem__, NUMBERS)
    }  # fmt: skip
    known = {*NUMBERS, *TEXTS, *(one.name for one in SETTINGS.values() if not one.served and not one.sampling)}
    others = [one for one in SETTINGS.values() if one.name not in known]
    return {
        "drafters": {family: {name: names[name] for name in IN_BROWSER[family]} for family in families},
        "numbers": numbers,
        "others": {one.name: {"usual": one.default, "label": label(one)} for one in others},
    }  # fmt: skip


def label(setting: Setting) -> str:
    words = strings("page")["settings"][setting.label or setting.name]
    return str(words["label"] if isinstance(words, dict) else words)


@functools.cache
def engine_script() -> str:
    return f"({as_function('', script('engine/worker'))})();\n"


@functools.cache
def scripts() -> dict[str, str]:
    """That of the worker, and that of the page, which comes when this engine is chosen."""
    page = f"{script('shared/browser')}\nreturn files['./browser.js'].engine(props);"
    return {"engine.js": engine_script(), "page.js": f"self.specdecHere = {as_function('props', page)};\n"}


@functools.cache
def layers() -> dict[str, bytes]:
    """`native.cpp` in WebAssembly, as `tools.wasm` writes it."""
    return {path.stem: path.read_bytes() for path in sorted((PAGE / "engine").glob("*.wasm"))}


def offered() -> list[str]:
    """The families whose models this machine has."""
    here = {
        EMBEDDED: any(path.suffix == ".safetensors" for path in built_in()),
        presets.STAR: hub.is_here(presets.STAR),
    }
    return [family for family, is_here in here.items() if is_here]


def listed(family: str, models: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """All that a run of it fetches: where each lies, and its size. The star's output matrix has codes of 8 bits, which
    relaxed SIMD does not multiply."""
    of_layers = {name: one for name, one in layers().items() if family == EMBEDDED or not name.startswith("relaxed")}
    found = {name: {"path": f"{family}.{name}", "size": len(content)} for name, content in models.items()}
    return found | {name: {"path": name, "size": len(binary)} for name, binary in of_layers.items()}


def built_in() -> list[Path]:
    return [path for part in ("target", "draft_model", "tokenizer") for path in sorted(FAMILY.glob(f"{part}/*.*"))]


@functools.cache
def folder() -> str:
    """Where the files are, below PLACE: another name for another engine or other models. "" without models."""
    if EMBEDDED not in offered():
        return ""
    digest = hashlib.sha256("".join([*scripts().values(), star.SHA256]).encode() + b"".join(layers().values()))
    for path in built_in():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def made(family: str) -> dict[str, bytes]:
    """Its models' files by name. OSError where they cannot be had."""
    with tempfile.TemporaryDirectory() as place:
        with children.start("specdec.families.browser", family, place, stdout=subprocess.DEVNULL) as child:
            try:
                if child.wait(PATIENCE):
                    raise OSError("the models of the engine in the browser could not be written")
            except subprocess.TimeoutExpired:
                child.kill()
                raise OSError("the models of the engine in the browser took too long") from None
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


class InBrowser:
    """Middleware that answers what is below PLACE, and nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.making, self.failed = app, asyncio.Lock(), -FORGIVEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(f"{PLACE}/"):
            await self.app(scope, receive, send)
            return
        await (await self.answer(scope))(scope, receive, send)

    async def answer(self, scope: Scope) -> Response:
        below, _, name = scope["path"].removeprefix(f"{PLACE}/").partition("/")
        if scope["method"] not in ("GET", "HEAD") or not folder() or below != folder():
            return JSONResponse({"detail": "There is no such file."}, 404)
        try:
            found = await self.content(name)
        except OSError:
            return JSONResponse({"detail": "The models could not be made. Try again."}, 503)
        if found is None:
            return JSONResponse({"detail": "There is no such file."}, 404)
        kind = "text/javascript" if name in scripts() else "application/octet-stream"
        return Response(found, media_type=kind, headers=KEPT)

    async def content(self, name: str) -> bytes | None:
        """Of a file below `folder`; None for any other name."""
        family, _, part = name.partition(".")
        if name in scripts():
            return scripts()[name].encode()
        if name in layers():
            return layers()[name]
        if family not in offered():
            return None
        async with self.making:  # the first of many visitors at once has them made, the others wait
            if time.monotonic() - self.failed < FORGIVEN:
                raise OSError("they could not be made a moment ago")
            try:
                models = await run_in_threadpool(made, family)
            except OSError:
                self.failed = time.monotonic()
                raise
        return json.dumps(listed(family, models)).encode() if part == LISTED else models.get(part)
