"""llama.cpp beside us: its own llama-server on the same weights, prompts, lengths and number of threads.

A server is a process of its own for each kind of numbers and each K, since speculation cannot be set for one request.
Its clock is its own, so neither HTTP nor JSON is timed. Whatever is not named here is as it is by default.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any


from specdec.export import llama_cpp as export
from specdec.servers.base import ServerError
from specdec.servers.connect import connect
from specdec.servers.llama_cpp import LlamaCpp

VARIABLE = "SPECDEC_LLAMA_SERVER"
DRAFT: export.Numbers = "q8_0"  # of every lane: ours drafts in 8 bits, too, whatever the target holds
PATIENCE = 60.0  # seconds for a model of this size to load


def command() -> str | None:
    """llama-server's executable. ValueError for one that was named and is not there."""
    said = os.environ.get(VARIABLE)
    found = shutil.which(said or "llama-server")
    if said and found is None:
        raise ValueError(f"{VARIABLE} names {said}, which is no command here")
    return found


class Servers:
    """The family's models in llama.cpp, each server started when it is first asked for. A context: they end with it."""

    def __init__(self, executable: str, family: str, threads: int) -> None:
        self.executable, self.family, self.threads = executable, family, threads
        self._running: dict[tuple[export.Numbers, int], LlamaCpp] = {}
        self._stack = ExitStack()
        self._files: dict[export.Numbers, dict[str, Path]] = {}

    def __enter__(self) -> Servers:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill leaves no server behind
        self._stack.callback(signal.signal, signal.SIGTERM, before)
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="specdec-gguf-")))
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def lane(self, numbers: export.Numbers, k: int = 0) -> LlamaCpp:
        """A server whose target holds such numbers; with `k`, it drafts as many tokens a cycle."""
        if (numbers, k) not in self._running:
            self._running[numbers, k] = self._start(numbers, k)
        return self._running[numbers, k]

    def model(self, name: str, numbers: export.Numbers) -> Path:
        if numbers not in self._files:
            written = export.export(self.family, self._folder / numbers, numbers)
            self._files[numbers] = {path.name.removesuffix(f"-{numbers}.gguf"): path for path in written}
        return self._files[numbers][name]

    def _start(self, numbers: export.Numbers, k: int) -> LlamaCpp:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        threads = str(self.threads)
        words = [self.executable, "--host", "127.0.0.1", "--port", str(port), "--parallel", "1"]
        words += ["--model", str(self.model("target", numbers)), "--threads", threads, "--threads-batch", threads]
        if k:
            words += ["--spec-type", "draft-simple", "--spec-draft-model", str(self.model("draft_model", DRAFT))]
            words += ["--spec-draft-n-max", str(k), "--spec-draft-threads", threads]
        log = self._stack.enter_context((self._folder / f"{numbers}-{k}.log").open("w+", encoding="utf-8"))
        process = self._stack.enter_context(subprocess.Popen(words, stdout=log, stderr=log))
        self._stack.callback(process.kill)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                server = connect(f"http://127.0.0.1:{port}")
            except ServerError as error:
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    last = log.read().strip().splitlines()[-1:] or [str(error)]
                    raise ValueError(f"llama-server did not start: {last[0]}") from error
                time.sleep(0.2)
            else:
                assert isinstance(server, LlamaCpp)
                return server
