"""The recorded report of the bench, as the tab Methods shows it: a table, its names, and a few sentences about it."""

from __future__ import annotations

import json
from typing import Any

import pandas

from .menu import read_json
from .text import ASSETS, of_drafters, strings

RESULTS = ASSETS / "results"
REPORTS = ("methods", "embedded")  # the first that is there: every drafter, or those that need no heads
COLUMNS = (
    "method", "domain", "temperature", "k", "measured_speedup", "worst_prompt_speedup", "alpha", "tau", "draft_cost",
    "verify_cost", "tokens_per_second", "extra_parameters",
)  # fmt: skip
PLACE = {"drafter", "domain", "temperature"}
# How many digits a column shows, None for words; of all others two
DIGITS = {
    "method": None, "domain": None, "temperature": 1, "k": 0, "k_recorded": 0, "draft_cost": 3, "tokens_per_second": 0,
}  # fmt: skip


def recorded() -> dict[str, Any]:
    """The report, {} if there is none that can be read. Rows without a place in the arena are left out."""
    for name in REPORTS:
        report = read_json(RESULTS / f"{name}.json")
        rows = report.get("rows")
        if isinstance(rows, list):
            return report | {"rows": [row for row in rows if isinstance(row, dict) and row.keys() >= PLACE]}
    return {}


def frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    """One line a drafter, text and temperature, under the names that people read."""
    named = [{**row, "method": method(row["drafter"]), "domain": domain(row["domain"])} for row in rows]
    table = pandas.DataFrame(named, columns=list(COLUMNS))
    table["extra_parameters"] /= 1e6
    return table.rename(columns=strings("methods")["table"]["columns"])


def digits(column: pandas.Series) -> int | None:
    """How many a column of a table shows: none of whole numbers, and fewer of large ones; None for words."""
    if not pandas.api.types.is_numeric_dtype(column):
        return None
    return 0 if pandas.api.types.is_integer_dtype(column) or column.max() >= 100 else 2


def cells(table: pandas.DataFrame) -> list[list[Any]]:
    """Its rows; None where there is no figure."""
    return table.astype(object).where(table.notna(), None).values.tolist()


def csv(rows: list[dict[str, Any]]) -> str:
    """The rows for other programs: the report's own names; lists and mappings as JSON."""
    flat = [{name: json.dumps(v) if isinstance(v, list | dict) else v for name, v in row.items()} for row in rows]
    return pandas.DataFrame(flat).to_csv(index=False)


def files(texts: Any, rows: list[dict[str, Any]]) -> dict[str, str]:
    """What is saved of a report, by the kind of file."""
    return {"csv": csv(rows), "json": json.dumps(texts, ensure_ascii=False, indent=1)}


def method(drafter: str) -> str:
    return of_drafters("name").get(drafter, str(drafter))


def domain(name: str) -> str:
    return strings("methods")["domains"].get(name, str(name))


def at(temperature: float) -> str:
    return strings("methods")["temperature"].format(value=f"{temperature:g}")


def drafters(rows: list[dict[str, Any]]) -> list[str]:
    """In the order of the report."""
    return list(dict.fromkeys(row["drafter"] for row in rows))


def places(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Every text and temperature, greedy first."""
    return sorted(dict.fromkeys((row["domain"], row["temperature"]) for row in rows), key=lambda place: place[1])


def figure(row: dict[str, Any] | None, name: str) -> float | None:
    value = (row or {}).get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def by_place(rows: list[dict[str, Any]]) -> dict[tuple[str, str, float], dict[str, Any]]:
    return {(row["drafter"], row["domain"], row["temperature"]): row for row in rows}


def fastest(rows: list[dict[str, Any]], place: tuple[str, float], name: str = "measured_speedup") -> dict[str, Any]:
    """The row of a place whose figure is largest."""
    here = [row for row in rows if (row["domain"], row["temperature"]) == place]
    return max(here, key=lambda row: figure(row, name) or 0.0)


def findings(rows: list[dict[str, Any]]) -> list[str]:
    """The speed-ups in sentences: what is fastest where, what is slower than plain decoding, and whether α decides."""
    words = strings("methods")["chart"]
    texts = []
    for temperature in dict.fromkeys(place[1] for place in places(rows)):
        best = [fastest(rows, place) for place in places(rows) if place[1] == temperature]
        texts.append(words["best"].format(temperature=at(temperature), places=words["comma"].join(map(phrase, best))))
    slow = [row for row in rows if (value := figure(row, "measured_speedup")) is not None and value < 1.0]
    if slow:
        worst = min(slow, key=lambda row: row["measured_speedup"])
        texts.append(words["slower"].format(count=len(slow), total=len(rows), **named(worst)))
    else:
        texts.append(words["none_slower"].format(total=len(rows)))
    beaten = sum(fastest(rows, place) is not fastest(rows, place, "alpha") for place in places(rows))
    texts.append(words["slower_alone" if beaten else "always_wins"].format(count=beaten, total=len(places(rows))))
    return texts


def phrase(row: dict[str, Any]) -> str:
    return strings("methods")["chart"]["place"].format(**named(row))


def named(row: dict[str, Any]) -> dict[str, str]:
    value = figure(row, "measured_speedup")
    return {
        "method": method(row["drafter"]),
        "domain": domain(row["domain"]),
        "temperature": at(row["temperature"]),
        "value": "–" if value is None else f"{value:.2f}",
    }
