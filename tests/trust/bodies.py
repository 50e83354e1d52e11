"""The largest bodies that are taken, each made to cost memory.

The app has a process of its own. Its memory is that process' own peak, set back before each body; meanwhile another
visitor asks, and must be answered.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import toyrun

from .figures import at_least, at_most, Figure, none, skipped
from .load import app

PATIENCE = 300.0  # seconds; a busy machine takes its time
LARGEST = 15_900_000  # characters of a trace
LINE = 990_000  # of a line in it
MORE = 300.0  # MB above the idle app


def count(long: bool) -> list[Figure]:
    if not Path("/proc/self/clear_refs").exists():
        return [skipped("largest bodies taken", "9", "there is no /proc here")]
    with app(SPECDEC_PUBLIC="") as (url, process):
        return [*taken(url, process.pid, 3 if long else 1), none("deaths", int(process.poll() is not None))]


def traces() -> Iterator[tuple[str, str]]:
    """Texts of the largest size, each made to take much memory as it is read."""
    header, *events = toyrun.trace().dumps().splitlines()
    filled = events[1][:-1] + ',"x":[' + ",".join(["{}"] * (LINE // 3)) + "]}"
    lines = LARGEST // len(filled)
    yield "a run and one long text", "\n".join([header, *events, "x" * (LARGEST - 100_000)])
    yield "lines of objects", "\n".join([header, events[0], *[filled] * lines])
    yield "lines of fractions", "\n".join([header, events[0], *['{"x":[' + "1.5," * (LINE // 4) + "1]}"] * lines])
    yield "one wide character", "\n".join([header, "\U0001f600" + "x" * (LARGEST // 4 * 4 - 1_000)])
    yield "many events", "\n".join([header, *events * 400])
    yield "one line of objects", header + '\n{"x":[' + "{}," * (LARGEST // 3 - 200) + "{}]}"


def taken(url: str, pid: int, times: int) -> Iterator[Figure]:
    """By each way in. An answer is a refusal in a sentence, for none of these is a run."""
    unanswered = slow = sent = 0
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        component = next(
            one["id"]
            for one in client.get("config").json()["components"]
            if "open_trace" in json.dumps(one["props"].get("server_fns", []))
        )
        for _ in range(3):  # what is loaded once is loaded
            call(client, "theory", {})
            call(client, "audit", {"trace": "x"})
        client.get("")
        base, peak = memory(pid, "VmRSS"), 0.0
        for _, text in list(traces()) * times:
            for way in ("audit", "explain", "page"):
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
                sent += 1
                with another(url) as answered:
                    if way == "page":
                        asked = {"session_hash": "a", "component_id": component, "fn_name": "open_trace", "data": text}
                        told = client.post("gradio_api/component_server", json=asked).text
                    else:
                        told = call(client, way, {"trace": text})
                unanswered += "no run that can be read" not in told and "was not taken" not in told
                slow += not answered
                peak = max(peak, memory(pid, "VmHWM"))
        after = memory(pid, "VmRSS")
    yield at_least("largest bodies taken", sent, 18)
    yield none("of them not answered", unanswered)
    yield none("others not answered meanwhile", slow)
    yield at_most("peak memory above the idle app", peak - base, MORE, " MB")
    yield at_most("memory that stays afterwards", after - base, MORE / 2, " MB")


def memory(pid: int, name: str) -> float:
    """In MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def call(client: httpx.Client, name: str, arguments: dict[str, Any]) -> str:
    told = client.post(f"gradio_api/call/v2/{name}", json=arguments)
    return (
        client.get(f"gradio_api/call/{name}/{told.json()['event_id']}").text if told.status_code == 200 else told.text
    )


@contextlib.contextmanager
def another(url: str) -> Iterator[list[int]]:
    """Another visitor asks while this goes on; the statuses of the answers."""
    answered: list[int] = []

    def ask() -> None:
        with contextlib.suppress(httpx.HTTPError):
            answered.append(httpx.get(f"{url}gradio_api/app_id", timeout=PATIENCE).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    yield answered
    asking.join()
