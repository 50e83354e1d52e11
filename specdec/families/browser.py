"""Make the files that the browser's engine fetches; the app, which imports no torch, runs this as a child process."""

import sys
from pathlib import Path

from ..methods import EMBEDDED
from ..models.browser import weights
from ..paths import FAMILY
from . import chat, hub, published


def files(family: str) -> dict[str, bytes]:
    """Return the contents of the files by name. Raises Refused if the family cannot be loaded."""
    if family == EMBEDDED:
        return {
            "target": weights(FAMILY / "target"),
            "draft": weights(FAMILY / "draft_model"),
            "tokenizer": (FAMILY / "tokenizer/tokenizer.json").read_bytes(),
        }
    place = hub.find(family)
    with hub.reading(family):
        tokenizer, template = published.load_tokenizer(place), chat.load_chat(place)
        header = {
            "chat": {name: getattr(template, name) for name in ("before", "after", "trims")} if template else None,
            "ends": sorted(published.end_tokens(place)),
        }
        return {"target": weights(place, header), "tokenizer": tokenizer.to_str().encode()}


if __name__ == "__main__":
    for name, content in files(sys.argv[1]).items():
        (Path(sys.argv[2]) / name).write_bytes(content)
