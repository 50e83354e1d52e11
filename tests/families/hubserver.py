"""A small server that speaks to huggingface_hub as the Hub does: names, sizes, and bytes from a place on."""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHA = "a" * 40
CHUNK = 1 << 16


class Hub(ThreadingHTTPServer):
    """Serves `repositories`: name -> folder. `gated` names want an agreement. What `garbles` sends other
    bytes of the same number. Bytes past `held` wait for `release`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.garbles = False
        self.held, self.release = 1 << 60, threading.Event()
        self.ranges: list[int] = []  # where a client asked to go on from

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        name = next((name for name in self.server.repositories if f"/{name}/" in path), None)
        if name is None:
            return self.refuse(404, "RepoNotFound")
        folder = self.server.repositories[name]
        if path.startswith("/api/models/"):
            files = [{"type": "file", "path": file.name, "size": file.stat().st_size, "oid": oid(file)} for file in
                     sorted(folder.iterdir())]  # fmt: skip
            facts = {"id": name, "sha": SHA, "siblings": [{"rfilename": file["path"]} for file in files]}
            return self.send(json.dumps(files if "/tree/" in path else facts).encode())
        if name in self.server.gated:
            return self.refuse(403, "GatedRepo")
        self.send_file(folder / path.rpartition("/")[2])

    do_HEAD = do_GET

    def send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_file(self, file: Path) -> None:
        body, content, said = self.command == "GET", file.read_bytes(), self.headers.get("Range", "")
        content = content[::-1] if self.server.garbles else content
        start = int(said.removeprefix("bytes=").partition("-")[0] or 0) if said else 0
        if start and body:
            self.server.ranges.append(start)
        if start >= len(content):
            return self.refuse(416, "")
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", SHA)
        self.send_header("ETag", f'"{oid(file)}"')
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client may leave
            for at in range(start, len(content) if body else start, CHUNK):
                if at >= self.server.held:
                    self.server.release.wait()
                self.wfile.write(content[at : at + CHUNK])


def oid(file: Path) -> str:
    """As the Hub names large files."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextlib.contextmanager
def hub(monkeypatch, cache: Path) -> Iterator[Hub]:
    """The server, the address of the Hub for processes that begin now; `cache` is theirs and this process's."""
    with Hub() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        use_cache(monkeypatch, cache)
        yield server
        server.release.set()
        server.shutdown()


def use_cache(monkeypatch, cache: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))


def put(cache: Path, name: str, folder: Path) -> Path:
    """`folder` in the Hub's cache, as a finished download leaves it."""
    place = cache / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(SHA)
    snapshot = place / "snapshots" / SHA
    snapshot.mkdir(parents=True)
    for file in folder.iterdir():
        os.link(file, snapshot / file.name)
    return snapshot
