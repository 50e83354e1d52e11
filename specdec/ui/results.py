"""Prepare the bench's report for the tab Methods: tables, a chart, and a few sentences."""

import json
from typing import Any

import pandas

from .menu import read_json
from .text import ASSETS, of_drafters, strings

RESULTS = ASSETS / "results"
Row = dict[str, Any]


def report() -> dict[str, Any]:
    return read_json(RESULTS / "methods.json")


def cells(rows: list[Row]) -> list[list[Any]]:
    """List the table's rows, with cells in the order of its headings."""
    columns = strings("methods")["table"]["columns"]
    shown = [
        row
        | {
            "method": method(row["drafter"]),
            "domain": domain(row["domain"]),
            "extra_parameters": row["extra_parameters"] / 1e6,
        }
        for row in rows
    ]
    return [[row[name] for name in columns] for row in shown]


def files(report: dict[str, Any]) -> dict[str, str]:
    """Write the two downloads, "json" with the report and "csv" with its rows. Nested values in CSV are JSON."""
    rows = report["rows"]
    flat = [{name: json.dumps(v) if isinstance(v, list | dict) else v for name, v in row.items()} for row in rows]
    text = json.dumps(report, ensure_ascii=False, indent=1)
    return {"csv": pandas.DataFrame(flat).to_csv(index=False), "json": text}


def method(drafter: str) -> str:
    return of_drafters("name").get(drafter, drafter)


def domain(name: str) -> str:
    return strings("methods")["domains"].get(name, name)


def at(temperature: float) -> str:
    return strings("methods")["temperature"].format(value=f"{temperature:g}")


def places(rows: list[Row]) -> list[tuple[str, float]]:
    """List the places (kind of text, temperature), the lowest temperature first."""
    return sorted({(row["domain"], row["temperature"]): None for row in rows}, key=lambda place: place[1])


def speedups(rows: list[Row]) -> tuple[dict[str, str], list[list[Any]]]:
    """Return the headings by column, and for each method a row of speed-ups."""
    columns = {f"{name} {temperature}": f"{domain(name)}, {at(temperature)}" for name, temperature in places(rows)}
    by_place = {(row["drafter"], row["domain"], row["temperature"]): row["measured_speedup"] for row in rows}
    drafters = dict.fromkeys(row["drafter"] for row in rows)
    table = [[method(drafter), *(by_place.get((drafter, *place)) for place in places(rows))] for drafter in drafters]
    return {"method": strings("methods")["table"]["columns"]["method"]} | columns, table


def chart(rows: list[Row]) -> Any:
    """Draw each measured speed-up with its interval: methods on the y axis, a colour for each of `places`."""
    from plotly import graph_objects

    words = strings("methods")["intervals"]
    title = {"text": words["title"], "subtitle": {"text": words["lead"]}, "x": 0}
    clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    figure = graph_objects.Figure(layout={**clear, "title": title, "legend": {"orientation": "h"}, "height": 640})
    figure.update_layout(scattermode="group", scattergap=0.3)
    for place in places(rows):
        shown = [row for row in rows if (row["domain"], row["temperature"]) == place]
        values, ends = [row["measured_speedup"] for row in shown], [row["measured_speedup_interval"] for row in shown]
        figure.add_scatter(
            x=values,
            y=[method(row["drafter"]) for row in shown],
            name=f"{domain(place[0])}, {at(place[1])}",
            mode="markers",
            orientation="h",
            error_x={
                "array": [end[1] - value for value, end in zip(values, ends, strict=True)],
                "arrayminus": [value - end[0] for value, end in zip(values, ends, strict=True)],
            },
        )
    figure.add_vline(1.0, line={"color": "gray", "dash": "dot"})
    return figure.update_xaxes(gridcolor="rgba(128,128,128,.25)").update_yaxes(gridcolor="rgba(128,128,128,.25)")


def findings(rows: list[Row]) -> list[str]:
    """Say which methods are fastest, how many rows are slower than plain decoding, and if the highest α always wins."""
    words = strings("methods")["findings"]
    fastest = {place: best(rows, place, "measured_speedup") for place in places(rows)}
    texts = []
    for temperature in dict.fromkeys(place[1] for place in fastest):
        phrases = [words["place"].format(**named(row)) for row in fastest.values() if row["temperature"] == temperature]
        texts.append(words["best"].format(temperature=at(temperature), places=words["comma"].join(phrases)))
    slow = [row for row in rows if row["measured_speedup"] < 1.0]
    if slow:
        worst = min(slow, key=lambda row: row["measured_speedup"])
        texts.append(words["slower"].format(count=len(slow), total=len(rows), **named(worst)))
    else:
        texts.append(words["none_slower"].format(total=len(rows)))
    beaten = sum(row is not best(rows, place, "alpha") for place, row in fastest.items())
    texts.append(words["slower_alone" if beaten else "always_wins"].format(count=beaten, total=len(fastest)))
    return texts


def best(rows: list[Row], place: tuple[str, float], name: str) -> Row:
    """Return the row of `place` whose figure `name` is largest."""
    here = [row for row in rows if (row["domain"], row["temperature"]) == place]
    return max(here, key=lambda row: row[name] or 0.0)


def named(row: Row) -> dict[str, str]:
    return {
        "method": method(row["drafter"]),
        "domain": domain(row["domain"]),
        "temperature": at(row["temperature"]),
        "value": f"{row['measured_speedup']:.2f}",
    }


def measured_rows() -> list[Row]:
    """List the rows of all reports that have costs and acceptance, each with the models and the machine it is of."""
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


CHAINS = ("draft_model", "eagle3")  # drafters whose costs stand for a visitor's
QUOTED = ("draft_model", "early_exit", "prompt_lookup")  # drafters whose acceptance introductions quote
NUMBERS = ("alpha", "tau", "k", "draft_cost", "verify_cost", "measured_speedup")
WHERE = ("family", "dtype", "drafter", "domain", "temperature", "cpu", "cores", "gpu")
PREDICTIONS = ("predicted_tau", "predicted_cost", "unseen_tau", "unseen_cost")


def account() -> dict[str, Any]:
    """Return what the tab Theory holds against quoted figures, from all reports.

    `places`: for each report and drafter, the middle row by speed-up, at the lowest temperature. `spans`: the least and
    the greatest α and K by drafter and models. `predictions`: rows that compare a prediction with other prompts.
    """
    halves = [f"{half}_{name}" for half in ("predicted", "unseen") for name in ("tau", "speedup")]
    frame = pandas.DataFrame(measured_rows()).reindex(columns=[*WHERE, "source", *NUMBERS, *halves])
    places = []
    for _, group in frame[frame.drafter.isin(CHAINS)].groupby(["drafter", "family", "source", "dtype"], sort=False):
        coldest = group[group.temperature == group.temperature.min()].sort_values("measured_speedup")
        places.append(coldest.iloc[len(coldest) // 2])
    quoted = frame[frame.drafter.isin(QUOTED)].groupby(["drafter", "family"], as_index=False)[["alpha", "k"]]
    frame = frame.dropna(subset=halves)
    for half in ("predicted", "unseen"):
        frame[f"{half}_cost"] = frame[f"{half}_tau"] / frame[f"{half}_speedup"]
    place = [name for name in (*WHERE, "source") if name != "domain"]  # over all kinds of text
    predicted = frame.groupby(place, dropna=False, as_index=False)[list(PREDICTIONS)].mean()
    return {
        "places": json.loads(pandas.DataFrame(places, columns=[*WHERE, *NUMBERS]).to_json(orient="records")),
        "spans": quoted.agg(lambda column: column.quantile([0, 1]).tolist()).to_dict("records"),
        "predictions": json.loads(predicted.to_json(orient="records")),
    }
