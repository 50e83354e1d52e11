"""A chat template, rendered in a process of its own: it is a program from the checkpoint, and may never end.

transformers renders it in Jinja's sandbox, which bounds neither its time nor its memory.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from .. import children
from ..models import gguf_header

FILE, TABLE = "chat_template.jinja", "tokenizer_config.json"
MESSAGE = "speculative-decoding"  # stands for a prompt while the template is rendered
MOST = 4_000  # characters round a prompt
SECONDS, PATIENCE = 5, 60.0  # of the processor; of the clock, where that cannot be bounded or many wait for it
MEMORY = 2**29  # bytes


def around(template: str, controls: dict[str, str]) -> tuple[str, str, bool]:
    """What it puts before and after a prompt, and whether it strips the prompt. ValueError where it does neither."""
    try:
        found = children.ask(__name__, [template, controls], PATIENCE)
    except ValueError:
        raise ValueError("the chat template takes too much time or memory") from None
    if isinstance(found, str):
        raise ValueError(found)
    before, after, trims = found
    return before, after, trims


def has_one(place: Path) -> bool:
    """Whether a checkpoint has one, without reading what it says. It imports no torch."""
    if gguf_header.is_file(place):
        return bool(gguf_header.read(place).fields.get("tokenizer.chat_template"))
    table = place / TABLE
    with contextlib.suppress(OSError, ValueError):
        return (place / FILE).is_file() or "chat_template" in json.loads(table.read_text(encoding="utf-8"))
    return False


# ---- the other process ----


def limit() -> None:
    """Windows has no such limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def rendered(template: str, controls: dict[str, str], message: str) -> str:
    from transformers.utils.chat_template_utils import render_jinja_template

    (text,), _ = render_jinja_template(
        [[{"role": "user", "content": message}]], chat_template=template, add_generation_prompt=True,
        enable_thinking=False, **controls,
    )  # fmt: skip
    return str(text)


def main() -> Any:
    """What `around` gives, or the reason why not."""
    template, controls = json.load(sys.stdin)
    rendered("", {}, "")  # loads what is needed
    limit()
    try:
        before, found, after = rendered(template, controls, MESSAGE).partition(MESSAGE)
        spaced = rendered(template, controls, f" {MESSAGE} ")
    except Exception as error:  # a stranger's program fails in its own way
        said = " ".join(str(error).split())[:200] or type(error).__name__
        return f"the chat template cannot be rendered: {said}"
    if not found or MESSAGE in after or len(before) + len(after) > MOST:
        return f"the chat template does not hold a prompt once, in at most {MOST:,} characters of its own"
    return before, after, f" {MESSAGE} " not in spaced


if __name__ == "__main__":
    print(json.dumps(main()))
