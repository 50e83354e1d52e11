"""Measure the engine in browsers: its speed-up over plain decoding in the same run, by drafter and K.

Each installed browser (Debian's Chromium and Firefox) opens a page with `browsers.js`, headless and with a new profile.
Runs are greedy, on four prompts of each kind. Plain and speculative decoding take turns (`interleave` in engine.js).
"""

import functools
import http.server
import json
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas

from specdec.families.export import browser_files
from specdec.families.smollm2 import find
from specdec.families.smollm2 import NAME as SMOLLM2
from specdec.methods import EMBEDDED
from specdec.ui.browser import layers, listed, sources
from specdec.ui.text import prompts

from .options import Options

SCRIPT = Path(__file__).with_suffix(".js")
BROWSERS = {  # the command line; the address of the page is appended
    "chromium": ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir={profile}"),
    "firefox": ("firefox-esr", "--headless", "--no-remote", "--profile", "{profile}"),
}
KINDS = {EMBEDDED: ("story", "code", "facts"), SMOLLM2: ("coding", "summarization")}
DRAFTERS = {
    EMBEDDED: (("draft_model", 1), ("draft_model", 2), ("draft_model", 3), ("prompt_lookup", 4)),
    SMOLLM2: (("prompt_lookup", 3),),
}
PROMPTS = 4  # prompts of each kind
DEADLINE_S = 1800.0  # time limit of one browser
ISOLATION = {"Opener": "same-origin", "Embedder": "require-corp", "Resource": "cross-origin"}  # they allow threads


def report(options: Options) -> dict[str, Any]:
    rows, versions = [], {}
    for family in (EMBEDDED, *([SMOLLM2] if find() else [])):
        for isolated in (False, True):
            with tempfile.TemporaryDirectory() as folder, serving(Path(folder), isolated) as (address, posted):
                write(Path(folder), family, options)
                for name, command in BROWSERS.items():
                    if shutil.which(command[0]):
                        answer = run_in_browser(command, address, posted)
                        rows += [{"browser": name, "family": family, **row} for row in answer["rows"]]
                        versions[name] = re.split(r"(?:Firefox|Chrome)/", answer["agent"])[1].split(".")[0]
    print(pandas.DataFrame(rows).round(2).to_string(index=False))
    return {"rows": rows, "versions": versions, "models": {}}


def write(folder: Path, family: str, options: Options) -> None:
    """Write the page and the files that it fetches."""
    model_files, all_prompts = browser_files(family), prompts()
    fields = ("kind", "prompts", "drafter", "k", "tokens", "repeats")
    rows = [
        dict(zip(fields, (kind, all_prompts[kind][:PROMPTS], *drafter, options.tokens, options.repeats), strict=True))
        for kind in KINDS[family]
        for drafter in DRAFTERS[family]
    ]
    contents = {Path(name).name: text.encode() for name, text in sources().items() if name.startswith("engine/")}
    contents |= {f"{name}.wasm": content for name, content in layers().items()}
    contents |= {f"{family}.{name}": content for name, content in model_files.items()}
    contents["asked.json"] = json.dumps({"rows": rows, "family": family, "files": listed(family, model_files)}).encode()
    contents["index.html"] = f"<!doctype html><script>{SCRIPT.read_text(encoding='utf-8')}</script>".encode()
    for name, content in contents.items():
        (folder / name).write_bytes(content)


@contextmanager
def serving(folder: Path, isolated: bool) -> Iterator[tuple[str, queue.Queue[bytes]]]:
    """Serve the folder; yield its address and a queue of posted bodies. If `isolated`, browsers allow threads."""
    posted: queue.Queue[bytes] = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def end_headers(self) -> None:
            for name, value in ISOLATION.items() if isolated else ():
                self.send_header(f"Cross-Origin-{name}-Policy", value)
            super().end_headers()

        def log_message(self, *_: object) -> None:
            """Print no requests."""

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", posted
        server.shutdown()


def run_in_browser(command: tuple[str, ...], address: str, posted: queue.Queue[bytes]) -> dict[str, Any]:
    """Open the page in a browser, and return the figures that it posts. Raises RuntimeError if it posts an error."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = [argument.format(profile=profile) for argument in command]
        with subprocess.Popen([*arguments, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                answer: dict[str, Any] = json.loads(posted.get(timeout=DEADLINE_S))
            finally:
                browser.terminate()
    if "error" in answer:
        raise RuntimeError(f"{command[0]}: {answer['error']}")
    return answer
