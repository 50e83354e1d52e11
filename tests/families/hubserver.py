"""A small server that speaks to huggingface_hub as the Hub does: names, sizes, and bytes from a place on."""

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.servers.stub import Asked, Reply, Stub

SHA = "a" * 40
CHUNK = 1 << 16


class Hub(Stub):
    """Serves `repositories`: name -> folder. `gated` names want an agreement. What `garbles` sends other
    bytes of the same number. Bytes past `held` wait for `release`."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.repositories: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.garbles = False
        self.held, self.release = 1 << 60, threading.Event()
        self.ranges: list[int] = []  # where a client asked to go on from

    def answer(self, asked: Asked) -> Reply:
        path = asked.path.partition("?")[0]
        name = next((name for name in self.repositories if f"/{name}/" in path), None)
        if name is None:
            return refusal(404, "RepoNotFound")
        folder = self.repositories[name]
        if path.startswith("/api/models/"):
            files = [{"type": "file", "path": file.name, "size": file.stat().st_size, "oid": oid(file)} for file in
                     sorted(folder.iterdir())]  # fmt: skip
            facts = {"id": name, "sha": SHA, "siblings": [{"rfilename": file["path"]} for file in files]}
            return Reply.of(files if "/tree/" in path else facts)
        return refusal(403, "GatedRepo") if name in self.gated else self.file(folder / path.rpartition("/")[2], asked)

    def file(self, file: Path, asked: Asked) -> Reply:
        content = file.read_bytes()[:: -1 if self.garbles else 1]
        start = int(asked.headers.get("range", "").removeprefix("bytes=").partition("-")[0] or 0)
        if start and asked.method == "GET":
            self.ranges.append(start)
        if start >= len(content):
            return refusal(416, "")
        headers = {"x-repo-commit": SHA, "etag": f'"{oid(file)}"', "content-length": str(len(content) - start)}
        if start:
            headers["content-range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Reply(self.parts(content, start), 206 if start else 200, headers=headers)

    def parts(self, content: bytes, start: int) -> Iterator[bytes]:
        for at in range(start, len(content), CHUNK):
            if at >= self.held:
                self.release.wait()
            yield content[at : at + CHUNK]


def refusal(status: int, code: str) -> Reply:
    return Reply([], status, headers={"x-error-code": code, "content-length": "0"})


def oid(file: Path) -> str:
    """As the Hub names large files."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextlib.contextmanager
def hub(monkeypatch, cache: Path) -> Iterator[Hub]:
    """The server, the address of the Hub for processes that begin now; `cache` is theirs and this process's."""
    with Hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        use_cache(monkeypatch, cache)
        yield server
        server.release.set()


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
