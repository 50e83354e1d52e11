"""Checkpoints of the Hub: found in its cache, or fetched by a process that can be ended at any moment.

What has arrived stays in the cache, and the next attempt goes on from there. Only data files are fetched, never code.
This imports no torch: the page fetches, so that a download holds up no run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import children
from ..models import gguf_header
from ..types import TranslatableText
from . import star

PICKLES = ("pytorch_model*.bin", "medusa_lm_head.pt")
MORE = 1.25  # of the weights' bytes: what a model takes in memory, with its loading and its caches
LARGE = 10_000_000  # bytes from which a file is worth going on with
LOOK = 0.5  # seconds between two words about how far it is


@dataclass(frozen=True, slots=True)
class Fetched:
    """How far a download is, in bytes."""

    name: str
    done: int
    total: int


def patterns(pickles: bool = False) -> dict[str, Any]:
    """What of a repository is wanted: folders within and the authors' own layout hold the same weights again."""
    wanted = ["*.json", "*.jinja", "*.safetensors", *(PICKLES if pickles else ())]
    return {"allow_patterns": wanted, "ignore_patterns": ["*/*", "consolidated*"]}


def find(name: str | Path, pickles: bool = False) -> Path:
    """A folder or a GGUF file as it is; else the checkpoint of that name, from the cache or the Hub. ValueError says
    what to do."""
    if name == star.NAME:
        return star.find() or star.fetched()
    if is_on_disk(name):
        return Path(name)
    from huggingface_hub import snapshot_download

    try:
        return cached(str(name), pickles) or Path(snapshot_download(str(name), **patterns(pickles)))
    except Exception as error:  # no such name, no network, no permission: each has its own class
        raise ValueError(reason(str(name), error)) from error


def is_on_disk(name: str | Path) -> bool:
    """Whether it is a folder, or a GGUF file. ValueError for a GGUF file that is not there."""
    if gguf_header.is_named(name) and not Path(name).exists():
        raise ValueError(
            TranslatableText("There is no GGUF file {name} on this machine. Check the path.", name=str(name))
        )
    return Path(name).is_dir() or gguf_header.is_file(name)


def cached(name: str, pickles: bool = False) -> Path | None:
    """The checkpoint in the Hub's cache, whole; None if anything of it is missing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, **patterns(pickles), local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return folder if (folder / "config.json").exists() else None  # a cache that lists no files may be a part


def is_here(name: str) -> bool:
    """Whether nothing has to be fetched; ValueError where the name is none."""
    if name == star.NAME:
        return star.find() is not None
    try:
        return is_on_disk(name) or cached(name) is not None
    except Exception as error:
        raise ValueError(reason(name, error)) from error


def reason(name: str, error: Exception) -> TranslatableText:
    """Why a checkpoint could not be had, and what to do: one sentence."""
    if error.args and isinstance(error.args[0], TranslatableText):
        return error.args[0]
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    kinds = {kind.__name__ for one in causes for kind in type(one).__mro__}
    message = " ".join(str(error).split())[:200] or type(error).__name__
    failed = TranslatableText(
        "{name} could not be fetched ({said}). Try again: what has arrived is kept.", name=name, said=message
    )
    sentences = {
        "HFValidationError": TranslatableText(
            "{name} is no folder here, and no name of a model: such a name is OWNER/MODEL.", name=name
        ),
        "GatedRepoError": TranslatableText(
            "{name} asks for your agreement: accept it at https://huggingface.co/{name}, then log in with "
            "`hf auth login`, or set HF_TOKEN.",
            name=name,
        ),
        "RepositoryNotFoundError": TranslatableText(
            "There is no model {name} on the Hub, or it is private. Check the name.", name=name
        ),
        "OfflineModeIsEnabled": TranslatableText(
            "{name} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it.", name=name
        ),
        "HfHubHTTPError": failed,
        "OSError": TranslatableText(
            "{name} is not on this machine, and the Hub cannot be reached. Check the network.", name=name
        ),
    }
    return next((sentence for kind, sentence in sentences.items() if kind in kinds), failed)


def too_large(name: str, needed: float, free: float) -> ValueError:
    """The refusal of a checkpoint that needs more bytes of memory than are free."""
    return ValueError(
        TranslatableText(
            "{name} needs about {needed} GB of memory here, and {free} GB are free. Choose a smaller pair.",
            name=name,
            needed=f"{needed / 1e9:.1f}",
            free=f"{free / 1e9:.1f}",
        )
    )


def fetch(names: Sequence[str], memory: int) -> Generator[Fetched, None, None]:
    """Fetch what is missing of these checkpoints, if each fits into that many bytes of memory.

    Yields every half second, even if nothing moves. Closing the iterator ends it; ValueError says what failed.
    """
    process = children.start(__name__, str(memory), *names, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last: dict[str, Any] = {}
    try:
        for line in process.stdout:
            last = json.loads(line)
            if "name" in last:
                yield Fetched(**last)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if "template" in last:
        raise ValueError(TranslatableText(last["template"], **last["values"]))
    if not last.get("ended"):
        raise ValueError(TranslatableText("The download broke off. Try again: what has arrived is kept."))


# ---- the other process ----


class Download:
    """One checkpoint on its way. `done` and `total` are bytes of its large files; small ones do not count."""

    def __init__(self, name: str, memory: int = 0) -> None:
        self.name, self.memory, self.total = name, memory, 0
        self._finished, self._part = 0, Path()

    @property
    def done(self) -> int:
        return self._finished + (self._part.stat().st_size if self._part.is_file() else 0)

    def run(self) -> None:
        """Large files go into the cache first, each from where it stopped; the library then adds the rest."""
        from huggingface_hub import constants, snapshot_download

        files = snapshot_download(self.name, **patterns(), dry_run=True)
        stored = sum(file.file_size or 0 for file in files if file.filename.endswith(".safetensors"))
        if not stored:
            raise ValueError(
                TranslatableText("{name} holds no .safetensors file, and nothing else is opened.", name=self.name)
            )
        if MORE * stored > self.memory:
            raise too_large(self.name, MORE * stored, self.memory)
        place = Path(constants.HF_HUB_CACHE)
        large = [file for file in files if file.will_download and (file.file_size or 0) >= LARGE]
        self.total = sum(file.file_size or 0 for file in large)
        star.check_disk(self.name, self.total, place)
        for file in large:
            self.fill(file.filename, file.commit_hash, place)
        snapshot_download(self.name, **patterns())

    def fill(self, filename: str, commit: str, place: Path) -> None:
        """A file as a blob of the cache, if the Hub names it by its SHA-256; others are left to the library."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.file_download import repo_folder_name
        from huggingface_hub.utils import build_hf_headers

        url = hf_hub_url(self.name, filename, revision=commit)
        facts = get_hf_file_metadata(url)
        if facts.size is None or not re.fullmatch("[0-9a-f]{64}", facts.etag or ""):
            return
        blob = place / repo_folder_name(repo_id=self.name, repo_type="model") / "blobs" / str(facts.etag)
        blob.parent.mkdir(parents=True, exist_ok=True)
        self._part = blob.with_name(f"{blob.name}.part")
        star.fill(self._part, url, blob.name, facts.size, build_hf_headers())
        self._finished += facts.size
        self._part.replace(blob)


def main(memory: int, names: Sequence[str]) -> None:
    """Fetch them; a line of JSON each half second says how far it is, and the last one how it ended."""
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    now: Download | star.Download = Download("")
    over, last = threading.Event(), dict[str, Any](ended=True)

    def tell() -> None:
        while not over.wait(LOOK):
            print(json.dumps({"name": now.name, "done": now.done, "total": now.total}), file=sink, flush=True)

    sink = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is not for the reader
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    for name in names:
        try:
            if not is_here(name):
                now = star.Download() if name == star.NAME else Download(name, memory)
                now.run()
        except Exception as error:
            sentence = reason(name, error)
            last = {"template": sentence.template, "values": sentence.values}
            break
    over.set()
    teller.join()
    print(json.dumps(last), file=sink, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
