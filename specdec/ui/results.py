"""Prepare the bench's reports for the tab Methods: tables and a few sentences."""

import json
from collections import Counter
from decimal import Decimal, ROUND_HALF_UP
from statistics import geometric_mean
from typing import Any

import pandas

from ..methods import EMBEDDED
from . import recorded
from .text import ASSETS, of_drafters, read_json, strings

RESULTS = ASSETS / "results"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8b5cf6")
SYMBOLS = ("circle", "diamond", "square", "x", "cross")
GAIN = 1.1  # the least speed-up that a finding calls one
SHOWN = ("star/bfloat16", "methods")  # the reports of the tab Methods, without `.json`
CHAINS = ("draft_model", "eagle3")  # drafters whose costs stand for a visitor's
QUOTED = ("draft_model", "early_exit", "prompt_lookup")  # drafters whose acceptance introductions quote
NUMBERS = ("alpha", "tau", "k", "draft_cost", "verify_cost", "measured_speedup")
WHERE = ("family", "dtype", "drafter", "domain", "temperature", "cpu", "cores", "gpu")
HALVES = {"predicted": "seen_cycles", "unseen": "unseen_cycles"}  # of the prompts, with their rows' weights
Row = dict[str, Any]


def reports() -> list[dict[str, Any]]:
    """List the tab's reports. That of the target that the page begins with comes first."""
    existing = [report for name in SHOWN if (report := read_json(RESULTS / f"{name}.json"))]
    return sorted(existing, key=lambda report: family_of(report) != recorded.first_target())


def family_of(report: dict[str, Any]) -> str:
    return report["provenance"]["models"].get("family", EMBEDDED)


def shown(value: float) -> float:
    """Round a figure to the two decimals of the tables, as a browser rounds it."""
    return float(Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def cells(rows: list[Row]) -> list[list[Any]]:
    """List the rows of the table of all figures."""
    columns = strings("methods")["table"]["columns"]
    texts = [row | in_words(row) | {"extra_parameters": row["extra_parameters"] / 1e6} for row in rows]
    return [[row[name] for name in columns] for row in texts]


def in_words(row: Row) -> dict[str, str]:
    return {"method": method(row["drafter"]), "domain": domain(row["domain"])}


def method(drafter: str) -> str:
    return of_drafters("name").get(drafter, drafter)


def domain(name: str) -> str:
    return strings("methods")["domains"].get(name, name)


def temperatures(rows: list[Row]) -> list[float]:
    return sorted({row["temperature"] for row in rows})


def columns(rows: list[Row]) -> dict[str, str]:
    """Map the columns of `speedups` to their headings."""
    words = strings("methods")
    kinds = {row["domain"]: domain(row["domain"]) for row in rows}
    return {"method": words["table"]["columns"]["method"], "mean": words["speedups"]["mean"]} | kinds


def speedups(rows: list[Row], temperature: float) -> list[list[Any]]:
    """Return a row a method, the fastest first: name and what it is, geometric mean, each speed-up and its interval."""
    kinds = dict.fromkeys(row["domain"] for row in rows)
    by_method: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["temperature"] == temperature:
            figures = [row["measured_speedup"], *row["measured_speedup_interval"]]
            by_method.setdefault(row["drafter"], {})[row["domain"]] = [shown(figure) for figure in figures]
    table = []
    for drafter, spans in by_method.items():  # a method that lacks a kind of text has no mean, and comes last
        whole = spans.keys() == kinds.keys()
        mean = shown(geometric_mean(span[0] for span in spans.values())) if whole else None
        line = of_drafters("line").get(drafter, "").replace("：", ":").split(":")[0]
        table.append([f"{method(drafter)}\n{line}", mean, *map(spans.get, kinds)])
    return sorted(table, key=lambda cells: -(cells[1] or 0.0))


def chart(rows: list[Row], temperature: float) -> Any:
    """Draw the speed-ups at a temperature over the tokens per cycle, and lines of one cost."""
    from plotly.graph_objects import Figure  # plotly.express would take a second more

    words, figure = strings("methods")["chart"], Figure()
    right, top = (max(row[name] for row in rows) * 1.1 for name in ("tau", "measured_speedup"))
    for i, drafter in enumerate(dict.fromkeys(row["drafter"] for row in rows)):  # looks the same at both temperatures
        here = [row for row in rows if row["drafter"] == drafter and row["temperature"] == temperature]
        figure.add_scatter(
            x=[row["tau"] for row in here],
            y=[row["measured_speedup"] for row in here],
            customdata=[domain(row["domain"]) for row in here],
            name=method(drafter),
            mode="markers",
            marker={"color": COLOURS[i % len(COLOURS)], "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 10},
            hovertemplate="%{fullData.name} · %{customdata}: %{y:.2f}×, τ %{x:.2f}<extra></extra>",
        )
    for cost in (1, 2, 3, 4):  # the names of the lines stand outside the frame, where no mark is
        end, line = min(right, top * cost), {"color": "#94a3b8", "dash": "dot", "width": 1}
        label = {"text": ["", words["cost"].format(value=cost)], "mode": "lines+text", "cliponaxis": False}
        label["textposition"] = "middle right" if end == right else "top center"
        figure.add_scatter(x=[0, end], y=[0, end / cost], line=line, hoverinfo="skip", showlegend=False, **label)
    axis = {"gridcolor": "rgba(128,128,128,.2)", "zeroline": False, "title": {"font": {"size": 13}}}
    return figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "IBM Plex Sans, ui-sans-serif, system-ui, sans-serif", "size": 13},
        height=520,  # `methods.css` keeps the place
        margin={"l": 48, "r": 48, "t": 24, "b": 52},
        legend={"orientation": "h", "x": 0, "y": -0.16, "title_text": ""},
        xaxis=axis | {"title_text": words["x"], "range": [0.8, right]},
        yaxis=axis | {"title_text": words["y"], "range": [0, top]},
    )


def findings(rows: list[Row], temperature: float) -> list[str]:
    """Say which methods are most often fastest, pay on few texts, or are slow, and if α decides, as a table shows."""
    words = strings("methods")["findings"]
    rows = [row for row in rows if row["temperature"] == temperature]
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(row["domain"], []).append(row)
    wins = Counter(row["drafter"] for here in by_kind.values() for row in fastest(here)).most_common()
    most = [(name, count) for name, count in wins if count > len(by_kind) / 2] or wins[:1]
    winners = words["comma"].join(words["place"].format(method=method(name), count=count) for name, count in most)
    texts = [words["best"].format(total=len(by_kind), places=winners)]
    for kinds, names in narrow(rows).items():
        listed = {"kinds": words["comma"].join(map(domain, kinds)), "methods": words["comma"].join(map(method, names))}
        texts.append(words["only"].format(**listed))
    slow = [row for row in rows if shown(row["measured_speedup"]) < 1.0]
    if slow:
        worst = min(slow, key=lambda row: row["measured_speedup"])
        value = f"{shown(worst['measured_speedup']):.2f}"
        texts.append(words["slower"].format(count=len(slow), total=len(rows), **in_words(worst), value=value))
    else:
        texts.append(words["none_slower"].format(total=len(rows)))
    beaten = sum(not alpha_wins(here) for here in by_kind.values())
    texts.append(words["slower_alone" if beaten else "always_wins"].format(count=beaten, total=len(by_kind)))
    return texts


def narrow(rows: list[Row]) -> dict[tuple[str, ...], list[str]]:
    """Map kinds of text, at most half of all, to the methods that reach `GAIN` on these alone."""
    kinds = dict.fromkeys(row["domain"] for row in rows)
    special: dict[tuple[str, ...], list[str]] = {}
    for drafter in dict.fromkeys(row["drafter"] for row in rows):
        here = [row for row in rows if row["drafter"] == drafter]
        pays = {row["domain"] for row in here if shown(row["measured_speedup"]) >= GAIN}
        if 0 < len(pays) <= len(kinds) / 2:
            special.setdefault(tuple(kind for kind in kinds if kind in pays), []).append(drafter)
    return special


def fastest(rows: list[Row]) -> list[Row]:
    """List the fastest row, and those whose intervals reach it: their order may be chance."""
    best = max(shown(row["measured_speedup"]) for row in rows)
    return [row for row in rows if shown(row["measured_speedup_interval"][1]) >= best]


def alpha_wins(rows: list[Row]) -> bool:
    highest = max(shown(row["alpha"] or 0.0) for row in rows)
    return any(shown(row["alpha"] or 0.0) == highest for row in fastest(rows))


def measured_rows() -> list[Row]:
    """List the rows of all reports that have costs, each with its models and machine."""
    all_rows = []
    for path in sorted(RESULTS.rglob("*.json")):
        report = read_json(path)
        models = report.get("provenance", {}).get("models", {})
        for family, rows in report.get("stages", {models.get("family"): report.get("rows", [])}).items():
            all_rows += [
                {"dtype": models.get("dtype"), "source": path.stem} | row | {"family": family} | report["machine"]
                for row in rows
                if {"drafter", "alpha", "tau", "verify_cost"} <= row.keys() and row["measured_speedup"]
            ]
    return all_rows


def account() -> dict[str, Any]:
    """Return what the tab Theory holds against quoted figures, from all reports.

    `places`: of each report and drafter, the middle row by speed-up, at the lowest temperature. `spans`: least and
    greatest α and K by drafter and models. `predictions`: of each report, drafter and temperature, what half of the
    prompts predict and the others measured, over all kinds of text by cycles (equally in older reports).
    """
    halves = [f"{half}_{name}" for half in HALVES for name in ("tau", "speedup")]
    frame = pandas.DataFrame(measured_rows()).reindex(columns=[*WHERE, "source", *NUMBERS, *halves, *HALVES.values()])
    places = []
    for _, group in frame[frame.drafter.isin(CHAINS)].groupby(["drafter", "family", "source", "dtype"], sort=False):
        coldest = group[group.temperature == group.temperature.min()].sort_values("measured_speedup")
        places.append(coldest.iloc[len(coldest) // 2])
    quoted = frame[frame.drafter.isin(QUOTED)].groupby(["drafter", "family"], as_index=False)[["alpha", "k"]]
    frame = frame.dropna(subset=halves).fillna(dict.fromkeys(HALVES.values(), 1.0))
    for half, cycles in HALVES.items():
        frame[f"{half}_tau"] *= frame[cycles]
        frame[f"{half}_cost"] = frame[f"{half}_tau"] / frame[f"{half}_speedup"]
    place = [name for name in (*WHERE, "source") if name != "domain"]  # over all kinds of text
    sums = frame.groupby(place, dropna=False, as_index=False).sum(numeric_only=True)
    for half, cycles in HALVES.items():
        sums[[f"{half}_tau", f"{half}_cost"]] = sums[[f"{half}_tau", f"{half}_cost"]].div(sums[cycles], axis=0)
    predicted = sums[[*place, *(f"{half}_{name}" for half in HALVES for name in ("tau", "cost"))]]
    return {
        "places": json.loads(pandas.DataFrame(places, columns=[*WHERE, *NUMBERS]).to_json(orient="records")),
        "spans": quoted.agg(lambda column: column.quantile([0, 1]).tolist()).to_dict("records"),
        "predictions": json.loads(predicted.to_json(orient="records")),
    }
