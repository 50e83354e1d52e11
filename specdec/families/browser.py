"""Make the files of a family that the engine in a browser fetches: those of the embedded family, or of SmolLM2.

Run as a program it writes them into a folder. The app does so in a child process, so that it needs no torch itself.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from ..methods import EMBEDDED
from ..models.browser import weights
from . import chat, hub, published, zoo


def files(family: str) -> dict[str, bytes]:
    """Return the files by name. Raises ValueError for a family that is not on this machine."""
    if family == EMBEDDED:
        folder = zoo.EMBEDDED
        return {
            "target": weights(folder / "target"),
            "draft": weights(folder / "draft_model"),
            "tokenizer": (folder / "tokenizer/tokenizer.json").read_bytes(),
        }
    place = hub.find(family)
    tokenizer, around = published.load_tokenizer(place), chat.load_chat(place)
    more = {"chat": asdict(around) if around else None, "ends": sorted(published.end_tokens(place))}
    return {"target": weights(place, more), "tokenizer": tokenizer.to_str().encode()}


def main(family: str, place: str) -> None:
    for name, content in files(family).items():
        (Path(place) / name).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
