"""Find the folder `assets`, inside the installed package or beside it in a checkout; read and write a user's files."""

import errno
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
    """Write a text, or let `content` make a file; then rename it, so that a crash leaves `path` as it was."""
    write = content if callable(content) else lambda new: new.write_text(content, encoding="utf-8")
    if path.exists() and not path.is_file():  # a device or a pipe
        write(path)
        return
    path = path.resolve()
    new = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise OSError for a file that `write_whole` cannot write: now, not after the work."""
    is_new = not path.exists()
    path.open("a").close()
    if path.is_file() and not os.access(path.resolve().parent, os.W_OK):
        raise PermissionError(errno.EACCES, "its folder cannot be written", str(path))
    if is_new:
        path.unlink()


def read_prompts(path: Path) -> list[Any]:
    """Read a prompt a line, or lines of JSON with `prompt` or with `messages`. Raises OSError, and Refused for none."""
    prompts = list[Any]()
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is no text in UTF-8: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.lstrip().startswith("{"):
            prompts += [line.strip()] if line.strip() else []
            continue
        try:
            entry = json.loads(line)
            prompts.append(entry["messages"] if "messages" in entry else entry["prompt"])
            if not isinstance(prompts[-1], str | list):
                raise ValueError
        except (ValueError, LookupError) as error:
            raise Refused(f"{path}, line {number}: JSON needs `prompt` or `messages`") from error
    if not prompts:
        raise Refused(f"{path} holds no prompt; write one a line, or lines of JSON with `prompt` or `messages`")
    return prompts
