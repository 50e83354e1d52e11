"""Sliders over the closed forms, and the run that the page's player holds on top. All of it is `assets/theory.js`."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from ..text import ASSETS, strings

COLUMNS = (
    "drafter domain temperature k alpha alpha_by_position draft_acceptance_rate tau draft_cost verify_cost overhead"
    " measured_speedup"
).split()


def theory() -> gr.HTML:
    return gr.HTML(
        "",
        html_template=(ASSETS / "theory.html").read_text(encoding="utf-8"),
        js_on_load=(ASSETS / "theory.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        elem_id="theory-lab",
        words=strings("theory"),
        hardware=json.loads((ASSETS / "hardware.json").read_text(encoding="utf-8")),
        results=results(),
    )


def results() -> list[dict[str, Any]]:
    """What the bench measured: of every report the machine and the rows."""
    reports = (json.loads(path.read_text(encoding="utf-8")) for path in sorted((ASSETS / "results").glob("*.json")))
    return [
        {
            "machine": one.get("machine", {}),
            "rows": [{name: row.get(name) for name in COLUMNS} for row in one.get("rows", [])],
        }
        for one in reports
    ]
