"""Find the folder `assets`, inside the installed package or beside it in a checkout; read and write a user's files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .messages import Refused

PACKAGE = Path(__file__).resolve().parent
ASSETS = next((place for place in (PACKAGE / "assets", PACKAGE.parent / "assets") if place.is_dir()), PACKAGE)
FAMILY = ASSETS / "family"  # the models of `methods.EMBEDDED`


def write_whole(path: Path, content: str | Callable[[Path], object]) -> None:
    """Write a text, or let `content` make a file; then rename it, so that a crash leaves `path` as it was.

    Raises OSError.
    """
    write = content if callable(content) else lambda new: new.write_text(content, encoding="utf-8")
    new = part_of(path)
    if new == path:
        write(path)
        return
    try:
        write(new)
        new.replace(path.resolve())
    finally:
        new.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """Return where `write_whole` writes first: beside the file, hidden. A device or a pipe is written as it is."""
    if path.exists() and not path.is_file():
        return path
    return path.resolve().with_name(f".{os.getpid()}.{path.resolve().name}")


def check_writable(path: Path) -> None:
    """Raise OSError for a file that `write_whole` cannot write: now, not after the work."""
    for file in {path, part_of(path)}:
        is_new = not file.exists()
        file.open("a").close()
        if is_new:
            file.unlink()


def read_prompts(path: Path) -> list[Any]:
    """Read a prompt a line, or lines of JSON with `prompt` or with `messages`. Raises OSError, and Refused for none."""
    prompts = list[Any]()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is no text in UTF-8: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.lstrip().startswith("{"):
            prompts += [line.strip()] if line.strip() else []
            continue
        try:
            entry = json.loads(line)
            prompts.append(entry["messages"] if "messages" in entry else entry["prompt"])
        except (ValueError, LookupError) as error:
            raise Refused(f"{path}, line {number}: JSON needs `prompt` or `messages`") from error
    if not prompts:
        raise Refused(f"{path} holds no prompt; write one a line, or lines of JSON with `prompt` or `messages`")
    return prompts
