"""Our engine in a Chromium: the scripts, the layers and the weights of 7 bits that the page's visitors get."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specdec.models.browser import weights
from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Asked, Engine, PLAIN

PAGE = "<!doctype html>"
LOAD = """async () => {
  const { layersIn, Model } = await import("./model.js"),
    bytes = async (name) => (await fetch(name)).arrayBuffer(),
    compiled = await layersIn(await bytes("layers"));
  self.target = new Model(compiled, await bytes("target"));
  self.draft = new Model(compiled, await bytes("draft"));
}"""
WRITE = """async ([prompt, params, method, k]) => {
  const { DraftModel, NoDrafter, PromptLookup, SuffixDrafter } = await import("./drafters.js"),
    { generate } = await import("./engine.js"),
    drafters = {
      draft_model: () => new DraftModel(draft, prompt.length + params.max_tokens + k),
      prompt_lookup: () => new PromptLookup(),
      suffix: () => new SuffixDrafter(),
    },
    drafter = (drafters[method] || (() => new NoDrafter()))(),
    nothing = { ends: [], bytes: () => new Uint8Array(), piece: () => "" },
    events = generate({ ...nothing, lane: "", target, prompt, params, drafter, k }),
    told = { tokens: [], drafted: 0, accepted: 0 };
  for (const event of events) {
    if (event.event === "drafted") told.drafted += event.tokens.length;
    if (event.event !== "committed") continue;
    told.tokens.push(...event.tokens);
    told.accepted += event.accepted;
  }
  drafter.release?.();
  return told;
}"""


def writer(asked: Asked) -> Write:
    from ..browsers import serving

    place = asked.work / "browser"
    serve(asked, place)
    open_for_good = ExitStack()
    atexit.register(open_for_good.close)
    address, _ = open_for_good.enter_context(serving(place, isolated=False))
    page = open_for_good.enter_context(launched()).new_page()
    page.goto(address)
    page.evaluate(LOAD)

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        drafting = 0 if asked.method == PLAIN else asked.k
        told = page.evaluate(WRITE, [list(prompt), asdict(params) | {"ignore_end": True}, asked.method, drafting])
        asked.counts[:] = [told["drafted"], told["accepted"]] if drafting else []
        return [int(token) for token in told["tokens"]]

    return write


def chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


@contextmanager
def launched() -> Iterator[Any]:
    """Start a headless Chromium; ValueError where there is none."""
    from playwright.sync_api import sync_playwright

    if (place := chromium()) is None:
        raise ValueError("this engine needs a Chromium: apt-get install chromium, or name one in CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=place, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def serve(asked: Asked, place: Path) -> None:
    """The files that the page fetches."""
    from specdec.ui.scripts import layers, sources

    place.mkdir(exist_ok=True)
    (place / "index.html").write_text(PAGE)
    for name, text in sources().items():
        if name.startswith("engine/"):
            (place / Path(name).name).write_text(text)
    (place / "layers").write_bytes(layers()["relaxed"])
    for name, folder in (("target", asked.target), ("draft", asked.draft)):
        (place / name).write_bytes(weights(folder))


ENGINE = Engine(
    "SpecDec in Chromium", "", (PLAIN, "draft_model", "prompt_lookup", "suffix"), writer, precision="int7"
)  # fmt: skip
