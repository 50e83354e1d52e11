"""A report of the bench, written by hand: three drafters, two texts, two temperatures."""

import json
from pathlib import Path
from typing import Any

SPEEDUPS = {  # by drafter: story and code, greedy; then both at 0.8
    "prompt_lookup": (0.9, 1.1, 0.8, 1.05),
    "draft_model": (1.8, 1.3, 1.2, 1.25),
    "medusa:tree": (1.4, 1.5, 1.1, 1.0),
}


def row(drafter: str, domain: str, temperature: float, speedup: float) -> dict[str, Any]:
    return {
        "drafter": drafter,
        "domain": domain,
        "temperature": temperature,
        "k": 4,
        "measured_speedup": speedup,
        "measured_speedup_interval": [speedup - 0.05, speedup + 0.1],
        "worst_prompt_speedup": None,
        "alpha": 0.4 + speedup / 4,
        "alpha_by_position": [0.8, 0.7, 0.6],
        "tau": 1.0 + speedup,
        "draft_cost": 0.1234,
        "verify_cost": 1.5,
        "tokens_per_second": 300.4,
        "extra_parameters": 1000,
    }


def report() -> dict[str, Any]:
    places = [("story", 0.0), ("code", 0.0), ("story", 0.8), ("code", 0.8)]
    rows = [
        row(drafter, *place, speedup)
        for drafter, speedups in SPEEDUPS.items()
        for place, speedup in zip(places, speedups, strict=True)
    ]
    models = {"kernels": "native", "threads": 2, "dtype": "float32"}
    made = {"measured": "2026-01-02T03:04:05+00:00", "commit": "abc1234", "models": models, "changed": []}
    return {"suite": "methods", "machine": {"cpu": "Toy", "cores": 2}, "rows": rows, "provenance": made}


def save(folder: Path) -> None:
    (folder / "methods.json").write_text(json.dumps(report()), encoding="utf-8")
