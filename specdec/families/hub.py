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

# What of a repository is wanted: folders within and the authors' own layout hold the same weights again.
WANTED: dict[str, Any] = {
    "allow_patterns": ["*.json", "*.jinja", "*.safetensors"],
    "ignore_patterns": ["*/*", "consolidated*"],
}
MORE = 1.25  # of the weights' bytes: what a model takes in memory, with its loading and its caches
LARGE = 10_000_000  # bytes from which a file is worth going on with
REPORT_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Fetched:
    """How far a download is, in bytes."""

    name: str
    done: int
    total: int


def find(name: str | Path) -> Path:
    """A folder or a GGUF file as it is; else the checkpoint of that name, from the cache or the Hub. ValueError says
    what to do."""
    if name == star.NAME:
        return star.find() or star.fetch(star.Progress(star.NAME))
    if is_on_disk(name):
        return Path(name)
    from huggingface_hub import snapshot_download

    try:
        return cached(str(name)) or Path(snapshot_download(str(name), **WANTED))
    except Exception as error:  # no such name, no network, no permission: each has its own class
        raise ValueError(reason(str(name), error)) from error


def is_on_disk(name: str | Path) -> bool:
    """Whether it is a folder, or a GGUF file. ValueError for a GGUF file that is not there."""
    if gguf_header.is_named(name) and not Path(name).exists():
        raise ValueError(
            TranslatableText("There is no GGUF file {name} on this machine. Check the path.", name=str(name))
        )
    return Path(name).is_dir() or gguf_header.is_file(name)


def cached(name: str) -> Path | None:
    """The checkpoint in the Hub's cache, whole; None if anything of it is missing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, **WANTED, local_files_only=True))
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
    message = " ".join(str(error).split())[:200] or type(error).__name__

    def fault(template: str) -> TranslatableText:
        return TranslatableText(template, name=name, reason=message)

    failed = fault("{name} could not be fetched ({reason}). Try again: what has arrived is kept.")
    sentences = {  # by the class of the error or of one that caused it; the first that fits
        "HFValidationError": fault("{name} is no folder here, and no name of a model: such a name is OWNER/MODEL."),
        "GatedRepoError": fault(
            "{name} asks for your agreement: accept it at https://huggingface.co/{name}, then log in with "
            "`hf auth login`, or set HF_TOKEN."
        ),
        "RepositoryNotFoundError": fault("There is no model {name} on the Hub, or it is private. Check the name."),
        "OfflineModeIsEnabled": fault("{name} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it."),
        "HfHubHTTPError": failed,
        "OSError": fault("{name} is not on this machine, and the Hub cannot be reached. Check the network."),
    }
    kinds = set[str]()
    cause: BaseException | None = error
    while cause is not None:
        kinds |= {kind.__name__ for kind in type(cause).__mro__}
        cause = cause.__cause__
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


def download(name: str, memory: int, progress: star.Progress) -> None:
    """Large files go into the cache first, each from where it stopped; the library then adds the rest."""
    from huggingface_hub import constants, snapshot_download

    files = snapshot_download(name, **WANTED, dry_run=True)
    stored = sum(file.file_size or 0 for file in files if file.filename.endswith(".safetensors"))
    if not stored:
        raise ValueError(TranslatableText("{name} holds no .safetensors file, and nothing else is opened.", name=name))
    if MORE * stored > memory:
        raise too_large(name, MORE * stored, memory)
    place = Path(constants.HF_HUB_CACHE)
    large = [file for file in files if file.will_download and (file.file_size or 0) >= LARGE]
    progress.total = sum(file.file_size or 0 for file in large)
    star.check_disk(name, progress.total, place)
    for file in large:
        fill(name, file.filename, file.commit_hash, place, progress)
    snapshot_download(name, **WANTED)


def fill(name: str, filename: str, commit: str, place: Path, progress: star.Progress) -> None:
    """A file as a blob of the cache, if the Hub names it by its SHA-256; others are left to the library."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import repo_folder_name
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(name, filename, revision=commit)
    facts = get_hf_file_metadata(url)
    if facts.size is None or not re.fullmatch("[0-9a-f]{64}", facts.etag or ""):
        return
    blob = place / repo_folder_name(repo_id=name, repo_type="model") / "blobs" / str(facts.etag)
    blob.parent.mkdir(parents=True, exist_ok=True)
    progress.part = blob.with_name(f"{blob.name}.part")
    star.fill(progress.part, url, blob.name, facts.size, build_hf_headers())
    progress.part.replace(blob)
    progress.finished += facts.size


def main(memory: int, names: Sequence[str]) -> None:
    """Fetch them; a line of JSON each half second says how far it is, and the last one how it ended."""
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    progress, over, last = star.Progress(), threading.Event(), dict[str, Any](ended=True)
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is not for the reader

    def report() -> None:
        while not over.wait(REPORT_EVERY_S):
            state = {"name": progress.name, "done": progress.done, "total": progress.total}
            print(json.dumps(state), file=sink, flush=True)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    for name in names:
        try:
            if not is_here(name):
                progress = star.Progress(name)
                if name == star.NAME:
                    star.fetch(progress)
                else:
                    download(name, memory, progress)
        except Exception as error:
            sentence = reason(name, error)
            last = {"template": sentence.template, "values": sentence.values}
            break
    over.set()
    reporter.join()
    print(json.dumps(last), file=sink, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
