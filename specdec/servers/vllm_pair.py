"""`specdec serve`: vLLM twice on the same model, speculative and plain, so that one can be watched beside the other.

vLLM cannot switch speculation off for one request, so the baseline is a server of its own. Both end when one does,
and with Ctrl-C. vLLM's options are those of 0.32 (its `config/speculative.py`, read in November 2026).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import NoReturn

HOST = "127.0.0.1"
EVERY = 10.0  # seconds between two lines that say how a start goes on
PATIENCE = 20.0  # seconds that a server has to end by itself
LINES = 12  # of its log, shown when it dies
INSTALL = (
    "vLLM is not installed: install it with `pip install vllm` (in an environment of its own is best), "
    "and name its command in SPECDEC_VLLM if it is not on the PATH"
)
# What the embedded family needs no more of: float32 as our own engine computes, and little memory.
SMALL = (
    "--served-model-name embedded --dtype float32 --enforce-eager --max-num-seqs 16 --kv-cache-memory-bytes 268435456"
).split()
SHARED = ["--gpu-memory-utilization", "0.45"]  # of a GPU's memory, or a CPU's: there are two servers


@dataclass(frozen=True)
class Speculation:
    """What drafts: a model or head (vLLM finds out which kind), or a method that needs none; at most k tokens."""

    draft: str | None
    method: str | None
    k: int

    def flags(self) -> list[str]:
        said: dict[str, object] = {"model": self.draft, "method": self.method, "num_speculative_tokens": self.k}
        if self.method == "ngram":  # its own defaults look for five equal tokens, which short texts do not have
            said |= {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
        config = json.dumps({name: value for name, value in said.items() if value is not None})
        return ["--speculative-config", config, "--per-request-spec-decode-metrics", "detailed"]


class Server:
    """One vLLM in a process group of its own, with its log in a file."""

    def __init__(self, name: str, command: Sequence[str], port: int, log: Path) -> None:
        self.name, self.address, self.port, self.log = name, f"http://{HOST}:{port}", port, log
        self.started = time.monotonic()
        with log.open("wb") as output:
            try:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                    env={"VLLM_NO_USAGE_STATS": "1"} | os.environ,
                )  # fmt: skip
            except OSError as error:
                raise ValueError(f"{command[0]} cannot be started: {error.strerror}") from error

    def ended(self) -> bool:
        return self.process.poll() is not None

    def healthy(self) -> bool:
        connection = HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def last_lines(self, count: int) -> list[str]:
        """Of its log, without what would steer a terminal."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        readable = ("".join(filter(str.isprintable, line)).rstrip() for line in lines)
        return [line[:300] for line in readable if line][-count:]

    def log_tail(self) -> list[str]:
        """The errors in its log, else its end: vLLM says much after an error."""
        lines = self.last_lines(10_000)
        return [line for line in lines if "error" in line.lower()][-LINES:] or lines[-LINES:]

    def send(self, number: signal.Signals) -> None:
        """To the whole group: vLLM computes in children of its own, which would outlive it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def gone(self) -> bool:
        return self.ended() and not group_lives(self.process.pid)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return False
    return True


class Died(Exception):
    """A server that ended by itself."""

    def __init__(self, server: Server) -> None:
        self.server = server


def serve(target: str | None, draft: str | None, method: str | None, k: int, port: int, flags: Sequence[str]) -> int:
    """Start both, say where they are, wait. 0 after Ctrl-C, 1 if one died. ValueError if they cannot be started."""
    vllm = command()
    check_ports(port)
    if any(flag.split("=")[0] == "--port" for flag in flags):
        raise ValueError("--port belongs before `--`: there are two servers, and it is the first one's")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specdec-serve-")))
        stack.enter_context(signals_as_interrupts())
        servers: list[Server] = []
        stack.callback(end_all, servers)
        try:
            if target is None:
                target, draft, flags = *embedded(folder / "family", draft, method), [*SMALL, *flags]
            elif not draft and not method:
                raise ValueError("say what drafts for --target: --draft MODEL_OR_HEAD, or --method ngram")
            if not any(flag.startswith(("--gpu-memory", "--kv-cache-memory")) for flag in flags):
                flags = [*flags, *SHARED]
            speculation = Speculation(draft, method, k)
            for name, own in (("speculative", speculation.flags()), ("plain", [])):
                address = ["--host", HOST, "--port", str(port + len(servers))]
                line = [vllm, "serve", target, *address, *own, *flags]
                servers.append(Server(name, line, port + len(servers), folder / f"{name}.log"))
                wait_until_healthy(servers, tell)
            print(invitation(*(server.address for server in servers)), flush=True)
            watch(servers)
        except KeyboardInterrupt:
            tell("ending both")
            return 0
        except Died as died:
            tell(
                f"the {died.server.name} server ended, with exit code {died.server.process.returncode}; "
                "the last lines of its log:"
            )
            print(*died.server.log_tail(), sep="\n", file=sys.stderr)
            return 1


def command() -> str:
    """vLLM's executable. ValueError, with the line that installs it, where there is none."""
    said = os.environ.get("SPECDEC_VLLM")
    found = shutil.which(said or "vllm")
    if found is None:
        raise ValueError(f"SPECDEC_VLLM names {said}, which is no command here" if said else INSTALL)
    return found


def check_ports(port: int) -> None:
    for number in (port, port + 1):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, number))
            except OSError as error:
                raise ValueError(
                    f"port {number} is taken; name two free ones that follow each other by --port"
                ) from error


def embedded(folder: Path, draft: str | None, method: str | None) -> tuple[str, str | None]:
    """The embedded family, exported: its target, and what drafts by `method` (draft_model by default)."""
    from ..export import vllm

    if draft:
        raise ValueError("--draft belongs to a --target")
    tell("no --target: the embedded family is exported")
    written = {path.name: path for path in vllm.export("embedded", folder)}
    part = written.get(method or "draft_model")
    return str(written["target"]), str(part) if part else None


def wait_until_healthy(servers: Sequence[Server], say: Callable[[str], None]) -> None:
    """Until the last one answers; a line every EVERY seconds. Died where any ends before."""
    server = servers[-1]
    say(f"{server.name}: starting at {server.address}")
    told = server.started
    while not server.healthy():
        check(servers)
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            said = server.last_lines(1)
            say(f"{server.name}: {told - server.started:.0f} s; {said[0][:100] if said else 'nothing said yet'}")
        time.sleep(0.2)
    check(servers)  # what answered could have been another's
    say(f"{server.name}: ready after {time.monotonic() - server.started:.0f} s")


def watch(servers: Sequence[Server]) -> NoReturn:
    """Until one ends: Died."""
    while True:
        check(servers)
        time.sleep(0.2)


def check(servers: Sequence[Server]) -> None:
    for server in servers:
        if server.ended():
            raise Died(server)


def end_all(servers: Sequence[Server]) -> None:
    """Ask them to end, and make them after PATIENCE, or at another Ctrl-C."""
    with suppress(KeyboardInterrupt):
        for server in servers:
            server.send(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not all(server.gone() for server in servers):
            time.sleep(0.05)
    for server in servers:
        server.send(signal.SIGKILL)
        server.process.wait()


def invitation(speculative: str, plain: str) -> str:
    return "\n".join(
        [
            f"speculative  {speculative}",
            f"plain        {plain}",
            "",
            "a race of both, in a terminal and on the page:",
            f'  specdec "Once upon a time" --server {speculative} --plain {plain}',
            f"  SPECDEC_SERVERS={speculative},{plain} python app.py",
            "",
            "Ctrl-C ends both.",
        ]
    )


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """A closed terminal (but under `nohup`) and a polite kill end what was started, as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell(sentence: str) -> None:
    print("specdec:", sentence, file=sys.stderr, flush=True)
