"""Find the folder `assets`, inside the installed package or beside it in a checkout; read and write a user's files."""

import json
from pathlib import Path
from typing import Any

from .messages import Refused

PACKAGE = Path(__file__).resolve().parent
ASSETS = next((place for place in (PACKAGE / "assets", PACKAGE.parent / "assets") if place.is_dir()), PACKAGE)
FAMILY = ASSETS / "family"  # the models of `methods.EMBEDDED`


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole. Raises OSError; a file that the disk has no room for does not stay in part."""
    with path.open("w", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            if path.is_file():
                path.unlink()
            raise


def check_writable(path: Path) -> None:
    """Raise OSError for a file that cannot be written: now, not after the work."""
    is_new = not path.exists()
    path.open("a").close()
    if is_new:
        path.unlink()


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
