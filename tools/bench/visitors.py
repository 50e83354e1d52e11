"""Many people at one app on this machine.

*A class*: one teacher in a browser, and thirty phones that hold their streams. The delay is from the teacher's press
to the moment when a phone has been told, on one machine's clock; drawing comes on top. The server's processor time
is that of its own process, not of the engine's, which does the one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

from specdec import children

from . import line
from .options import Options
from .page import launched

PHONES, PRESSES = 30, 20
LIMIT = 0.5  # seconds, the median of the delay
PATIENCE = 60.0  # seconds
PRESSED = """() => {
  const at = Date.now(), player = document.querySelector(".sd-player");
  player.querySelector("[data-part=next]").click();
  return [at / 1000, player.moment().t];
}"""

OVER = """() => {
  const player = document.querySelector(".sd-player"), run = player.run();
  return run && run.header.source === "live" && player.kit.isOver(run);
}"""


def report(options: Options) -> dict[str, Any]:
    """What a class costs and how late its phones are; then visitors with live runs of their own (`line.py`)."""
    return {"class": printed(a_class()), "line": printed(line.report(options.tokens)), "models": {}}


def printed(found: dict[str, Any]) -> dict[str, Any]:
    print("\n".join(f"{name:>18} {value}" for name, value in found.items()), end="\n\n")
    return found


@dataclass
class Phone:
    """What a phone is told, and when: the logs by their runs, and the first time that a moment came."""

    logs: dict[str, str] = field(default_factory=dict)
    times: dict[float, float] = field(default_factory=dict)

    async def listen(self, host: str, port: int, name: str) -> None:
        reader, writer = await asyncio.open_connection(host, port, limit=2**24)
        writer.write(f"GET /class/events?phone={name} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        try:
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    self.take(json.loads(line[6:]), time.time())
        finally:
            writer.close()

    def take(self, news: dict[str, Any], now: float) -> None:
        before = self.logs.get(news["run"], "") if news["part"] else ""
        self.logs[news["run"]] = before + news["log"]
        if cursor := news["state"]["cursor"]:
            self.times.setdefault(cursor["t"], now)


def a_class() -> dict[str, Any]:
    with opened() as (teach, process), phones(teach) as told, launched() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(teach)
        page.wait_for_selector("#first", state="detached")
        page.wait_for_selector(".sd-class:not([hidden])")
        before, began = processor_seconds(process), time.monotonic()
        page.click("#run")
        page.wait_for_function(OVER)
        page.focus("[data-part=stage]")
        page.keyboard.press("Home")
        delays = [delay for _ in range(PRESSES) for delay in pressed(page, told)]
        spent, took = processor_seconds(process) - before, time.monotonic() - began
        log = page.evaluate("document.querySelector('.sd-player').log()")
        wait(lambda: all(log in one.logs.values() for one in told), "the run is not on every phone")
    live = {run for one in told for run, text in one.logs.items() if '"source":"live"' in text.partition("\n")[0]}
    return {
        "phones": len(told),
        "presses": PRESSES,
        "delay_median_s": round(median(delays), 3),
        "delay_p95_s": round(quantiles(delays, n=20)[-1], 3),
        "within_limit": median(delays) <= LIMIT,
        "engine_runs": len(live),
        "log_kb": round(len(log) / 1000),
        "server_cpu_s": round(spent, 2),
        "server_cpu_share": round(spent / took, 3),
    }


def pressed(page: Any, told: list[Phone]) -> list[float]:
    """Seconds from one press of the teacher's until each phone was told of it."""
    for one in told:
        one.times.clear()
    at, t = page.evaluate(PRESSED)
    wait(lambda: all(t in one.times for one in told), "a phone was not told of a press")
    time.sleep(0.5)
    return [one.times[t] - at for one in told]


def wait(done: Any, otherwise: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > ends:
            raise RuntimeError(otherwise)
        time.sleep(0.02)


@contextlib.contextmanager
def opened() -> Iterator[tuple[str, int]]:
    """The app in class mode: the teacher's address, and the number of its process."""
    app = children.start(
        "specdec", "app", "--class", "--host", "127.0.0.1",
        environment={"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert app.stdout is not None
    try:
        found = (re.search(r"http://\S+\?teach=\S+", line) for line in app.stdout)
        yield next(one[0] for one in found if one), app.pid
    except StopIteration:
        raise RuntimeError("the app did not start") from None
    finally:
        app.kill()  # it would wait for the streams to end
        app.wait()


@contextlib.contextmanager
def phones(teach: str) -> Iterator[list[Phone]]:
    """Thirty of them, in a thread of their own."""
    host, port = urlsplit(teach).hostname, urlsplit(teach).port
    told = [Phone() for _ in range(PHONES)]

    async def listen() -> None:
        await asyncio.gather(*(one.listen(str(host), int(port or 0), f"{n:016x}") for n, one in enumerate(told)))

    loop = asyncio.new_event_loop()
    listening = loop.create_task(listen())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(listening)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield told
    finally:
        loop.call_soon_threadsafe(listening.cancel)
        thread.join()
        loop.close()


def processor_seconds(process: int) -> float:
    """Of that process alone, so far. ValueError where there is no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        raise ValueError("--suite visitors reads /proc, which only Linux has") from None
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))
