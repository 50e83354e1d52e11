"""What the engine in a browser fetches of a family, by name: the built-in one's models, or the star's.

Run as a program it writes them into a folder: where the app asks for them, in a process that ends with its torch.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from ..methods import EMBEDDED
from ..models.browser import weights
from . import chat, hub, published, zoo


def files(family: str) -> dict[str, bytes]:
    """ValueError for a family that is not on this machine."""
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
