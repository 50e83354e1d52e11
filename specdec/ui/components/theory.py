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
LANES = "engine precision method domain temperature k ratio ratio_interval over_plain over_plain_interval".split()


def theory() -> gr.HTML:
    return drawn(
        "theory/theory",
        elem_id="theory-lab",
        hardware=read_json(ASSETS / "hardware.json"),
        results=results(),
        batches=batches(),
        precision=precision(),
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


def batches() -> dict[str, Any]:
    """What the bench measured with several texts at once, on which machine and when; {} if it did not."""
    report = read_json(recorded.RESULTS / "batch.json")
    if "points" not in report:
        return {}
    made = report.get("provenance", {}).get("measured", "")
    return {"machine": report.get("machine", {}), "points": report["points"], "measured": made}


def precision() -> dict[str, Any]:
    """What the bench measured in several precisions; no rows where it did not."""
    report = read_json(recorded.RESULTS / "precision.json")
    made = report.get("provenance", {})
    return {
        "rows": [{name: row.get(name) for name in LANES} for row in report.get("rows", [])],
        "machine": report.get("machine", {}),
        "law_moved": report.get("law_moved", {}),
        "llama_cpp": report.get("llama_cpp"),
        "tokens": report.get("tokens"),
        "threads": made.get("models", {}).get("float32", {}).get("threads"),  # of every lane
        "measured": made.get("measured", ""),
        "commit": made.get("commit", ""),
    }
