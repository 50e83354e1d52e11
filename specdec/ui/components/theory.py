"""Sliders over the closed forms, and the run of the page's player on top. See `assets/page/theory/theory.js`."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..menu import read_json
from ..results import RESULTS
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
    """What the bench measured: of every report the machine and the rows."""
    reports = map(read_json, sorted(RESULTS.glob("*.json")))
    return [
        {
            "machine": one.get("machine", {}),
            "rows": [{name: row.get(name) for name in COLUMNS} for row in one.get("rows", [])],
        }
        for one in reports
    ]
