"""Run a pair as on ZeroGPU, but on this machine's GPU: by the package `spaces`, with a stand-in of its scheduler."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from specdec.figures.stats import Comparison
from specdec.messages import Step
from specdec.settings import RunRequest
from specdec.traces.file import Trace
from specdec.types import SamplingParams

GPU = {"idle": True, "nvidiaIndex": 0, "nvidiaUUID": "0", "allowToken": "token"}
QUOTA = {"left": 5, "wait": 60}
RUN = RunRequest("Once upon a time", "draft_model", 4, SamplingParams(max_tokens=96))


class Scheduler(ThreadingHTTPServer):
    """Answers what `spaces` 0.51.3 asks, and counts it. The answer to /schedule is a GPU unless the quota is spent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.is_spent, self.asked = False, list[str]()


class Answer(BaseHTTPRequestHandler):
    server: Scheduler

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        is_refused = path == "/schedule" and self.server.is_spent
        body = json.dumps(QUOTA if is_refused else GPU if path == "/schedule" else {}).encode()
        self.send_response(429 if is_refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def measure(pair: str = "embedded") -> Iterator[dict[str, Any]]:
    """Yield rows: two runs, the second in the fork of the first; a stopped run; a refused run. Needs CUDA and `spaces`.

    Call this before CUDA is initialised in this process.
    """
    scheduler = Scheduler()
    threading.Thread(target=scheduler.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{scheduler.server_port}"
    os.environ |= {"SPACES_ZERO_GPU": "true", "SPACES_ZERO_DEVICE_API_URL": address}
    from specdec.zero import ZeroProcess

    start = time.monotonic()
    with contextlib.closing(ZeroProcess(pair)) as process:
        from spaces.zero import startup

        startup()  # as when the page is launched
        yield {"loaded_s": time.monotonic() - start}
        request = RunRequest(RUN.prompt, RUN.drafter, RUN.k, RUN.params, target=pair)
        for name in ("a new fork", "the same fork"):
            start, times, lines = time.monotonic(), list[float](), ""
            for item in process.call("run", request, "auto", "", str):
                if isinstance(item, str):
                    times.append(time.monotonic() - start)
                    lines += item
            yield {"run": name, "first_line_s": times[0], "seconds": times[-1], **facts(Trace.loads(lines))}
        with contextlib.closing(process.call("run", request, "auto", "", str)) as running:
            any(isinstance(item, str) for item in running)
        start, released = time.monotonic(), scheduler.asked.count("/release")
        while scheduler.asked.count("/release") == released and time.monotonic() - start < 10:
            time.sleep(0.01)
        yield {"run": "stopped", "released_s": time.monotonic() - start}
        scheduler.is_spent = True
        with contextlib.closing(process.call("run", request, "auto", "", str)) as running:
            refused = next(item for item in running if isinstance(item, Step) and item.name == "ask" and item.text)
        yield {"run": "refused", "sentence": refused.text, "asked": scheduler.asked}


def facts(trace: Trace) -> dict[str, Any]:
    comparison = Comparison.from_events(trace.events)
    return {
        "gpu": trace.header.machine.get("gpu"),
        "device": trace.header.models["device"],
        "measured_speedup": comparison.measured_speedup,
        "eager_because": comparison.speculative.eager,
        "identical_to_plain": comparison.speculative.ids == comparison.plain.ids,
    }
