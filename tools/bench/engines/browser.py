"""Our engine in a Chromium: the scripts, the layers and the weights of 7 bits that the page's visitors get."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict

from specdec.models.browser import weights
from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN

DRAFTERS = {
    PLAIN: "new NoDrafter()",
    "draft_model": "new DraftModel(draft, prompt.length + params.max_tokens + k)",
    "prompt_lookup": "new PromptLookup()",
}
LOAD = """async () => {
  const { layersIn, Model } = await import("./model.js"),
    bytes = async (name) => (await fetch(name)).arrayBuffer(),
    compiled = await layersIn(await bytes("relaxed.wasm"));
  for (const name of ["target", "draft"]) self[name] = new Model(compiled, await bytes(`${name}.bin`));
  Object.assign(self, await import("./drafters.js"), await import("./engine.js"));
}"""
WRITE = """([prompt, params, k]) => {
  const drafter = DRAFTER,
    nothing = { lane: "", ends: [], bytes: () => new Uint8Array(), piece: () => "" },
    events = [...generate({ ...nothing, target, prompt, params, drafter, k })];
  drafter.release?.();
  return events.filter(({ event }) => event === "drafted" || event === "committed");
}"""


def writer(job: Job) -> Write:
    from playwright.sync_api import sync_playwright

    from ..browsers import engine_files, serving

    (job.work / "index.html").write_text("<!doctype html>")
    for name, folder in (("target", job.target), ("draft", job.draft)):
        (job.work / f"{name}.bin").write_bytes(weights(folder))
    for name, content in engine_files().items():
        (job.work / name).write_bytes(content)
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    address, _ = until_exit.enter_context(serving(job.work, isolated=False))
    driver = until_exit.enter_context(sync_playwright())
    page = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]).new_page()
    page.goto(address)
    page.evaluate(LOAD)
    script = WRITE.replace("DRAFTER", DRAFTERS[job.method])

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        k = 0 if job.method == PLAIN else job.k
        events = page.evaluate(script, [list(prompt), asdict(params) | {"ignore_end": True}, k])
        drafted, committed = ([one for one in events if one["event"] == kind] for kind in ("drafted", "committed"))
        if k:
            job.counts = sum(len(one["tokens"]) for one in drafted), sum(one["accepted"] for one in committed)
        return [token for one in committed for token in one["tokens"]]

    return write


def chromium() -> str | None:
    """Find a Chromium of the machine; without one, playwright starts its own."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


ENGINE = Engine("SpecDec in Chromium", "", tuple(DRAFTERS), writer, precision="int7")
