"""All that asks two servers with a key, run against local ones that note which key came where."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from stub import Asked, Reply, Stub
from test_bad import KEY, vllm

import specdec
from specdec.settings import RunRequest
from specdec.types import SamplingParams

ROOT = Path(specdec.__file__).parent
PARAMS = SamplingParams(max_tokens=2)
SOUND = vllm(lambda _: Reply.of({"error": "no"}, 400))  # it says what it is, and writes nothing


def terminal(address: str, plain: str) -> None:
    from specdec.cli.run import watched

    watched(RunRequest("Once", "", 4, PARAMS), address, plain, "SPECDEC_SERVER_KEY", "", False)


def page(address: str, plain: str) -> None:
    from specdec.ui import watch

    assert list(watch.run(watch.WatchRequest("Once", PARAMS, address, plain, KEY)))


def certificate(address: str, plain: str) -> None:
    from specdec.cli.certify import certify_server

    certify_server(address, plain, draws=100)


def certificate_of_the_page(address: str, plain: str) -> None:
    from specdec.servers import child

    for _ in child.examine(address, plain, KEY, False, 100, 0.8, 0):
        pass


def bench(address: str, plain: str) -> None:
    from specdec.bench.options import Options
    from specdec.bench.servers import report

    report(Options("server", server=address, plain=plain, tokens=2, repeats=1))


def doctor(address: str, plain: str) -> None:
    from specdec.bench.doctor import examined

    examined(address, plain, "", (), "", 5, 0.8, json=True)


# By the module that connects: a test finds each of them, so that a new one cannot be left out.
CALLERS: dict[str, Callable[[str, str], None]] = {
    "cli/run.py": terminal,
    "ui/watch.py": page,
    "cli/certify.py": certificate,
    "servers/child.py": certificate_of_the_page,
    "bench/servers.py": bench,
    "bench/doctor.py": doctor,
}


def keys_sent(caller: Callable[[str, str], None], host: str, redirected: bool = False) -> tuple[set[str], set[str]]:
    """The keys that came to the server, and to the other one at `host`; "" for a request without.

    `redirected`: the plain server, on the server's own host, sends every request on to the other one.
    """
    with Stub(SOUND) as server, Stub(SOUND) as other:
        place = other.address.replace("127.0.0.1", host)

        def on(asked: Asked) -> Reply:
            return Reply([], 307, headers={"location": place + asked.path})

        refused, environment = contextlib.suppress(ValueError), {"SPECDEC_SERVER_KEY": KEY}
        with Stub(on) as gate, mock.patch.dict(os.environ, environment), refused:
            caller(server.address, gate.address if redirected else place)
        here, there = ({one.headers.get("authorization", "") for one in stub.asked} for stub in (server, other))
        return here, there


def importers(name: str, module: str = "connect") -> set[str]:
    """The package's files that import `name` from `specdec/servers/MODULE.py`, or that module whole."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                place = f".{node.module or ''}"
                names = {f"{place}.{alias.name}".replace("..", ".") for alias in node.names}
                if any(one.endswith((f".{module}.{name}", f"servers.{module}")) for one in names):
                    found.add(path.relative_to(ROOT).as_posix())
    return found
