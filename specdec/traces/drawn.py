"""Render a run as HTML for a notebook: the text with each drafted token's status, and the figures below the text."""

from collections.abc import Iterable
from html import escape
from typing import Any

STYLES = {
    "accepted": ("✓", "background:#cbeadf"),
    "rejected": ("✗", "background:#f9cbb2;text-decoration:line-through"),
    "discarded": ("·", "background:#e8ebef"),
    "resampled": ("↻", "background:#bfe0f7"),
    "bonus": ("+1", "background:#f8e29a"),
}


def draw(prompt: str, tokens: Iterable[tuple[str, str]], figures: dict[str, Any]) -> str:
    """Render `tokens`, pairs (piece, status). Plain tokens have the status "". Figures that are None are left out."""
    text = [f"<span>{escape(prompt)}</span>"]
    for piece, status in tokens:
        mark, style = STYLES.get(status, ("", ""))
        visible = "".join(c if c.isprintable() else "↵" if c == "\n" else f"⟨{ord(c):04X}⟩" for c in piece)
        text.append(f'<span title="{status}" style="color:#000;{style}">{escape(visible)}<small>{mark}</small></span>')
    cells = {name: f"{x:.4g}" if isinstance(x, float) else str(x) for name, x in figures.items() if x is not None}
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in cells.items()]
    return f'<div style="white-space:pre-wrap">{"".join(text)}</div><table>{"".join(rows)}</table>'
