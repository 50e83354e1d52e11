"""What the page costs whoever opens it: bytes, milliseconds to the first token, and the browser's main thread.

The real app runs in a process of its own, and a headless Chromium opens it anew for each repeat. A share is processor
time of the renderer's main thread (`ThreadTime` of CDP's Performance domain) over the wall clock. A busy machine does
not inflate it, but the page then draws less often: `playing_per_s` counts style recalculations, about one a drawing.
Milliseconds are wall clock from the start of navigation, as a visitor has them; `ready_ms` is when Gradio has
mounted, and `ready_cpu_ms` is how long the main thread computed until then.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from statistics import median
from typing import Any

import pandas
from tqdm import tqdm

from .options import Options
from .serving import served

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WINDOW = 5000  # ms over which a share is taken
PATIENCE = 120_000  # ms
TOLD = 6  # cycles that are told slowly; then a replay passes at its own pace

# In the page before its own scripts: when the first token of the recorded run can be seen, when Gradio has taken the
# first screen over, and how long tasks take.
MARKS = """
window.marks = { token: null, ready: null, tasks: [] };
new PerformanceObserver((list) => marks.tasks.push(...list.getEntries().map((task) => task.duration)))
  .observe({ type: "longtask", buffered: true });
(function look() {
  const token = document.querySelector("[data-part=lane0] .sd-tok:not(.sd-fut)");
  if (token) marks.token ??= performance.now();
  if (token && !document.getElementById("first")) marks.ready = performance.now();
  else requestAnimationFrame(look);
})();
"""
OPENED = """() => ({
  first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  first_token_ms: Math.max(marks.token, performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0),
  ready_ms: marks.ready,
  longest_task_ms: Math.max(0, ...marks.tasks),
  dom_nodes: document.querySelectorAll("*").length,
  fonts_that_hide_text: [...document.fonts].filter((font) => !["swap", "fallback", "optional"].includes(font.display)).length,
})"""  # noqa: E501
UNITS = {
    "ms": 0,
    "kb": 0,
    "s": 0,
    "share": 3,
    "nodes": 0,
    "text": 0,
}  # digits of a figure, by the last word of its name

Visit = dict[str, float | None]


def report(options: Options) -> dict[str, Any]:
    """Medians over `options.repeats` visits. ValueError without playwright or a Chromium."""
    with launched() as browser, served() as url:
        version = browser.version
        visits = [visit(browser, url) for _ in tqdm(range(options.repeats + 1), desc="visits", unit="visit")][1:]
    figures = {name: middle(name, [one[name] for one in visits]) for name in visits[0]}
    print(pandas.DataFrame([*visits, figures], index=[*range(1, len(visits) + 1), "median"]).T.to_string())
    return {"browser": f"Chromium {version}", "figures": figures, "visits": visits, "models": {}}


def chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """A browser. ValueError without playwright or a Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ValueError("this suite needs playwright: pip install -r requirements-dev.txt") from None
    if (place := chromium()) is None:
        raise ValueError("this suite needs a Chromium: apt-get install chromium, or name one in CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=place, args=FLAGS)
        yield browser
        browser.close()


def middle(name: str, values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), UNITS[name.rpartition("_")[2]]) if known else None


def visit(browser: Any, url: str) -> Visit:
    """One visitor with an empty cache: what arrives, then the main thread in each state of the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(MARKS)
    cdp = context.new_cdp_session(page)
    cdp.send("Performance.enable")
    wire = traffic(cdp)
    page.goto(url, wait_until="load")
    page.wait_for_function("marks.ready !== null")
    found: Visit = {"ready_cpu_ms": clocks(cdp)[1] * 1000}
    found["first_cycles_share"], _ = share(page, cdp)
    page.focus("[data-part=stage]")
    for _ in range(TOLD):
        page.keyboard.press("ArrowRight")
    found["idle_share"], _ = share(page, cdp)
    page.click("[data-part=play]")
    found["playing_share"], found["playing_per_s"] = share(page, cdp)
    page.click("#theory-button")
    page.wait_for_selector("#theory:visible")
    page.wait_for_timeout(2000)  # it is drawn when it is first opened
    found["other_tab_share"], _ = share(page, cdp)
    found |= page.evaluate(OPENED) | wire()
    context.close()
    return {name: middle(name, [value]) for name, value in found.items()}


def share(page: Any, cdp: Any) -> tuple[float, float]:
    """Processor time of the main thread in the next `WINDOW`, as a share of one core; style recalculations a second."""
    before = clocks(cdp)
    page.wait_for_timeout(WINDOW)
    wall, thread, restyles = (after - start for after, start in zip(clocks(cdp), before, strict=True))
    return thread / wall, restyles / wall


def clocks(cdp: Any) -> tuple[float, float, float]:
    """Wall clock and the main thread's processor time, seconds; style recalculations so far."""
    metrics = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
    return metrics["Timestamp"], metrics["ThreadTime"], metrics["RecalcStyleCount"]


def traffic(cdp: Any) -> Any:
    """Counts what comes over the wire from now on; the function that it returns says how much, in kB."""
    kinds: dict[str, str] = {}
    wire = {"Document": 0.0, "other": 0.0}
    raw = {"Document": 0.0, "other": 0.0}

    def kind(event: dict[str, Any]) -> str:
        return "Document" if kinds.get(event["requestId"]) == "Document" else "other"

    def finished(event: dict[str, Any]) -> None:
        wire[kind(event)] += event["encodedDataLength"] / 1000

    def arrived(event: dict[str, Any]) -> None:
        raw[kind(event)] += event["dataLength"] / 1000

    cdp.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))
    cdp.on("Network.loadingFinished", finished)
    cdp.on("Network.dataReceived", arrived)
    cdp.send("Network.enable")
    return lambda: {"html_kb": wire["Document"], "html_raw_kb": raw["Document"], "other_kb": wire["other"]}
