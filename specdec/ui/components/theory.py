"""Sliders over the closed forms, and the run of the page's player on top. See `assets/page/theory/theory.js`."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...methods import is_wrapper
from .. import results as recorded
from ..menu import read_json
from ..text import ASSETS
from .drawn import drawn

COLUMNS = (
    "drafter domain temperature k alpha alpha_by_position draft_acceptance_rate tau draft_cost verify_cost overhead"
    " measured_speedup"
).split()


def theory() -> gr.HTML:
    return drawn(
        "theory/theory",
        elem_id="theory-lab",
        hardware=read_json(ASSETS / "hardware.json"),
        results=results(),
    )


def results() -> list[dict[str, Any]]:
    """What the bench measured of drafters: of every report with such rows the machine and those."""
    found = []
    for one in map(read_json, sorted(recorded.RESULTS.glob("*.json"))):
        rows = [
            {name: row.get(name) for name in COLUMNS} | {"wrapper": is_wrapper(row["drafter"])}
            for row in one.get("rows", [])
            if "drafter" in row
        ]
        if rows:
            found.append({"machine": one.get("machine", {}), "rows": rows})
    return found
