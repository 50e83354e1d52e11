"""Read files that the host chose. Whatever is wrong with one ends in a ValueError of one sentence that names it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@contextmanager
def prefix_errors(name: str | Path) -> Iterator[None]:
    """Put the name of a file or checkpoint before a ValueError's message, and make one of any error of reading it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    except Exception as error:  # keys that are missing or of another type, numbers that no tensor can have
        if type(error).__name__ == "OutOfMemoryError":  # torch's: the file is whole, and the GPU is full
            raise
        raise ValueError(f"{name}: cannot be read ({type(error).__name__}: {brief(error)}); get it anew") from error


def brief(message: object) -> str:
    """Shorten a message to one line of at most 200 characters."""
    line = " ".join(str(message).split()) or type(message).__name__
    return line if len(line) <= 200 else f"{line[:199]}…"


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises ValueError if the file is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ValueError(f"there is no {path.name}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return content


def weight_files(folder: Path) -> list[str]:
    """Return a folder's weight files: `model.safetensors`, or else the shards in the index.

    If both are missing, return the only .safetensors file, because some draft heads use another file name.
    """
    if (folder / SINGLE).is_file():
        return [SINGLE]
    if (folder / INDEX).is_file():
        with prefix_errors(INDEX):
            return sorted(set(read_json(folder / INDEX)["weight_map"].values()))
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} .safetensors files, but no {SINGLE} or {INDEX}; pickles are not read")
    return files


def is_complete(folder: Path) -> bool:
    """Return whether a folder in the Hub's layout has its config.json and weights; a damaged index is for loading."""
    has_both = (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))
    with suppress(ValueError):
        return has_both and all((folder / file).is_file() for file in weight_files(folder))
    return has_both
