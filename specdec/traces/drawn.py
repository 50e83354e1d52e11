"""Render a run as HTML for a notebook: the text with each drafted token's status, and the figures below the text."""

import re
from collections.abc import Iterable
from html import escape
from typing import Any

MARKS = {"accepted": "✓", "rejected": "✗", "discarded": "·", "resampled": "↻", "bonus": "+1"}  # beside the colours
STYLES = {
    "accepted": "background:#cbeadf",
    "rejected": "background:#f9cbb2;text-decoration:line-through",
    "discarded": "background:#e8ebef",
    "resampled": "background:#bfe0f7",
    "bonus": "background:#f8e29a",
}
# Control characters (not tab and newline), line separators, marks that can reverse a line, and lone surrogates.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace control characters, which models and servers can write, by their code points."""
    return CONTROL_CHARACTERS.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def draw(prompt: str, tokens: Iterable[tuple[str, str]], figures: dict[str, Any]) -> str:
    """Render `tokens`, pairs (piece, status). Plain tokens have the status "". Figures that are None are left out."""
    text = [f"<span>{escape(prompt)}</span>"]
    for piece, status in tokens:
        mark, style, visible = MARKS.get(status, ""), STYLES.get(status, ""), printable(piece).replace("\n", "↵")
        text.append(f'<span title="{status}" style="color:#000;{style}">{escape(visible)}<small>{mark}</small></span>')
    cells = {name: f"{x:.4g}" if isinstance(x, float) else str(x) for name, x in figures.items() if x is not None}
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in cells.items()]
    return f'<div style="white-space:pre-wrap">{"".join(text)}</div><table>{"".join(rows)}</table>'
