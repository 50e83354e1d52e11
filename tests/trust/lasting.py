"""Killed at random moments, and run after run for long: what comes back, and what memory stays.

How soon the page answers again is told in seconds of the processor's time, so that a busy machine changes nothing.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from .figures import at_least, at_most, Figure, none, skipped
from .load import app

PATIENCE = 1_800.0
TOKENS = 4
# More sessions than Gradio is let keep; until then it grows. The messages of 2,000 it keeps whatever it is told
# (`pending_messages_per_session` in gradio/queueing.py, read 2026-11-23).
SESSIONS, ALL_SESSIONS = 100, 2_100


def count(long: bool) -> list[Figure]:
    if not Path("/proc/self/stat").exists():
        return [skipped("kills and restarts", "20", "there is no /proc here")]
    return [
        *kills(20 if long else 2),
        *in_a_row(1_000 if long else 60, long),
        *in_the_browser(1_000 if long else 8, long),
    ]


# ---- kills ----


def kills(trials: int) -> list[Figure]:
    """-9 to the page's process or to the engine's, as it starts, as it loads, in mid-run; then it must work again."""
    rng, lost, orphans, partial, slowest = random.Random(8), 0, 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for trial in range(trials):
            with app(TMPDIR=folder, GRADIO_TEMP_DIR=folder) as (url, process):
                pids = {process.pid, *children(process.pid)}
                slowest = max(slowest, *(seconds_of(pid) for pid in (process.pid,)))
                event = begin(url)
                time.sleep(rng.random() * 3)
                pids |= children(process.pid)
                engines = children(process.pid)
                if trial % 2 and engines:  # the same page must have another engine
                    os.kill(rng.choice(sorted(engines)), signal.SIGKILL)
                    told = finished(url, event)
                    lost += not (told or works(url))
                    lost += not works(url)
                else:
                    process.kill()
                    process.wait()
            lost += left_alone(lambda pids=pids: any(alive(pid) for pid in pids))  # type: ignore[misc]
            partial += sum(1 for path in Path(folder).rglob("*.partial"))
        with app() as (url, process):
            lost += not works(url)
    return [
        at_least("kills with -9", trials, trials),
        none("not working afterwards, or outlived by its engine", lost + orphans),
        none("half-written files", partial),
        at_most("processor time until the page answers", round(slowest, 1), 15, " s"),
    ]


def begin(url: str) -> str:
    sent = {"prompt": "Once upon a time", "max_tokens": 48}
    return str(httpx.post(f"{url}gradio_api/call/v2/compare", json=sent, timeout=PATIENCE).json()["event_id"])


def finished(url: str, event: str) -> str:
    """What came of it: an answer, or a sentence."""
    try:
        return httpx.get(f"{url}gradio_api/call/compare/{event}", timeout=PATIENCE).text
    except httpx.HTTPError:
        return ""


def works(url: str) -> bool:
    return '"same_text": true' in finished(url, begin(url))


def children(pid: int) -> set[int]:
    found = set[int]()
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            found |= set(map(int, (task / "children").read_text().split()))
        except OSError:
            continue
    return found.union(*map(children, found))


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def left_alone(busy: Callable[[], bool]) -> bool:
    """Whether it still is so after a long while."""
    for _ in range(1_200):
        if not busy():
            return False
        time.sleep(0.1)
    return True


def seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


# ---- runs in a row ----


def memory(pid: int) -> float:
    """MB that it wrote itself. Pages of files are not counted: they become its own when another program that uses the
    same libraries ends."""
    told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in told.splitlines() if line.startswith("Private_Dirty")) / 1_000


def in_a_row(runs: int, long: bool) -> list[Figure]:
    """Growth of the page's process and of the engine's, from a fifth of the runs on to the last."""
    with app() as (url, process), httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for _ in range(ALL_SESSIONS if long else SESSIONS):
            told = client.post("gradio_api/call/v2/theory", json={"alpha": 0.5}).json()["event_id"]
            client.get(f"gradio_api/call/theory/{told}")
        for number in range(runs):
            sent = {"prompt": f"Run {number % 7} began", "max_tokens": TOKENS, "temperature": 0.8, "seed": number}
            event = client.post("gradio_api/call/v2/compare", json=sent).json()["event_id"]
            told = client.get(f"gradio_api/call/compare/{event}").text
            assert '"texts"' in told, told[-300:]
            if number == runs // 5:
                before = {pid: memory(pid) for pid in (process.pid, *children(process.pid))}
        after = {pid: memory(pid) for pid in before}
    grown = [after[pid] - before[pid] for pid in before]
    most = 5.0 if long else 10.0  # in few runs, warming up is most of it
    return [
        at_least("runs in a row", runs, 1_000 if long else 60),
        at_most("growth of the page's process", max(0.0, grown[0]), most, " MB"),
        at_most("growth of the engine's process", max(0.0, *grown[1:], 0.0), most, " MB"),
    ]


def in_the_browser(runs: int, long: bool) -> list[Figure]:
    """Runs begun by the button of one page that stays open; what its scripts hold after a collection of garbage."""
    name = "growth of the browser's heap"
    try:
        import chrome
    except BaseException as error:  # pytest's way to skip is no Exception
        return [skipped(name, "≤ 5 MB", str(error)[:80])]
    if chrome.CHROMIUM is None:
        return [skipped(name, "≤ 5 MB", "no chromium on this machine")]
    with app() as (url, _), chrome.playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=chrome.CHROMIUM, args=chrome.FLAGS)
        page = chromium.new_page(reduced_motion="reduce")
        page.set_default_timeout(1_000 * PATIENCE)
        page.goto(f"{url}?max_tokens={TOKENS}")
        page.wait_for_selector("#first", state="detached")
        page.wait_for_selector(".sd-player:not([data-state=empty])", state="attached")
        tools = page.context.new_cdp_session(page)
        sizes = []
        for number in range(runs):
            before = page.evaluate("document.querySelector('.sd-player').run().header.run")
            page.click("#run")
            page.wait_for_function(
                "before => { const p = document.querySelector('.sd-player'), run = p.run();"
                " return run && run.header.run !== before && p.kit.isOver(run); }",
                arg=before,
            )
            page.wait_for_selector("#run:not([disabled])")
            if number in (runs // 5, runs - 1):
                sizes.append(heap(tools))
        chromium.close()
    grown = max(0.0, sizes[-1] - sizes[0])
    return [at_least("runs in one page", runs, runs), at_most(name, grown, 5.0, " MB")]


def heap(tools: Any) -> float:
    for _ in range(3):
        tools.send("HeapProfiler.collectGarbage")
    return float(tools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6
