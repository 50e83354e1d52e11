"""Prepare the bench's reports for the tab Methods: tables and a few sentences."""

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, ROUND_HALF_UP
from itertools import product
from statistics import geometric_mean
from typing import Any

import pandas

from ..methods import EMBEDDED
from . import recorded
from .text import ASSETS, of_drafters, read_json, strings

RESULTS = ASSETS / "results"
BLUE = "#0072b2"  # of named marks in the chart
GREY = "#94a3b8"  # of the others
LEFT = 0.8  # tokens per cycle, where the chart begins
HEIGHT = 384  # pixels, of the chart's frame
WIDTHS = (210, 640, 1500)  # pixels, of its frame: on a phone, on a tablet, at most
UP, ACROSS = {"middle": 0, "top": 1, "bottom": -1}, {"left": -1, "right": 1, "center": 0}
# The sides of a mark where its name can stand, the best first: how far up and across.
SIDES = {f"{v} {h}": (up, right) for v, up in UP.items() for h, right in ACROSS.items() if up or right}
GAIN = 1.1  # the least speed-up that a finding calls one
SHOWN = ("star/bfloat16", "methods")  # the reports of the tab Methods, without `.json`
CHAINS = ("draft_model", "eagle3")  # drafters whose costs stand for a visitor's
QUOTED = ("draft_model", "early_exit", "prompt_lookup")  # drafters whose acceptance introductions quote
NUMBERS = ("alpha", "tau", "k", "draft_cost", "verify_cost", "measured_speedup")
WHERE = ("family", "dtype", "drafter", "domain", "temperature", "cpu", "cores", "gpu")
HALVES = {"predicted": "seen_cycles", "unseen": "unseen_cycles"}  # of the prompts, with their rows' weights
Row = dict[str, Any]
Point = tuple[float, float]


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


def at(temperature: float) -> str:
    return strings("methods")["temperature"].format(value=f"{temperature:g}")


def temperatures(rows: list[Row]) -> list[float]:
    return sorted({row["temperature"] for row in rows})


def columns(rows: list[Row]) -> dict[str, str]:
    """Map the columns of `speedups` to their headings."""
    words = strings("methods")
    kinds = {row["domain"]: domain(row["domain"]) for row in rows}
    return {"method": words["table"]["columns"]["method"], "mean": words["speedups"]["mean"]} | kinds


def speedups(rows: list[Row], temperature: float) -> list[list[Any]]:
    """Return a row a method, the fastest first: name, geometric mean, each speed-up with its interval."""
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
        table.append([method(drafter), mean, *map(spans.get, kinds)])
    return sorted(table, key=lambda cells: -(cells[1] or 0.0))


def chart(rows: list[Row], temperature: float) -> Any:
    """Draw the speed-ups at a temperature over the tokens per cycle, the outermost named, and lines of one cost."""
    from plotly import graph_objects

    words = strings("methods")["chart"]
    right, top = (max(row[name] for row in rows) * 1.1 for name in ("tau", "measured_speedup"))
    figure = graph_objects.Figure()
    for cost in (1, 2, 3, 4):  # the names of the lines stand outside the frame, where no mark is
        end, line = min(right, top * cost), {"color": GREY, "dash": "dot", "width": 1}
        label = {"text": ["", words["cost"].format(value=cost)], "mode": "lines+text", "cliponaxis": False}
        side = "middle right" if end == right else "top center"
        figure.add_scatter(x=[0, end], y=[0, end / cost], line=line, hoverinfo="skip", textposition=side, **label)
    here = sorted((row for row in rows if row["temperature"] == temperature), key=lambda row: -row["measured_speedup"])
    names = [f"\u00a0{method(row['drafter'])} · {domain(row['domain'])}\u00a0" for row in here]
    firsts = sorted({row["drafter"]: i for i, row in reversed(list(enumerate(here)))}.values())
    named = places(
        [((row["tau"] - LEFT) / (right - LEFT), row["measured_speedup"] / top) for row in here], names, firsts
    )
    ends = {0, len(here) - 1} & named.keys()  # named on a phone, too; styles hide the last trace there
    common = {"x": [row["tau"] for row in here], "y": [row["measured_speedup"] for row in here], "cliponaxis": False}
    common["textposition"] = [named[i][1] if i in named else "top center" for i in range(len(here))]
    for shown_names, opacity in ((ends, 1), (named.keys() - ends, 0)):
        figure.add_scatter(
            text=[named[i][0] if i in shown_names else "" for i in range(len(here))],
            mode="markers+text",
            marker={"color": [BLUE if i in named else GREY for i in range(len(here))], "size": 9, "opacity": opacity},
            customdata=names,
            hovertemplate="%{customdata}: %{y:.2f}×, τ %{x:.2f}<extra></extra>" if opacity else None,
            hoverinfo=None if opacity else "skip",
            **common,
        )
    axis = {"gridcolor": "rgba(128,128,128,.2)", "zeroline": False, "title": {"font": {"size": 13}}}
    return figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "IBM Plex Sans, ui-sans-serif, system-ui, sans-serif", "size": 13},
        height=HEIGHT + 76,
        margin={"l": 48, "r": 48, "t": 24, "b": 52},
        showlegend=False,
        xaxis=axis | {"title_text": words["x"], "range": [LEFT, right]},
        yaxis=axis | {"title_text": words["y"], "range": [0, top]},
    )


def places(marks: list[Point], names: list[str], some: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Map the fastest mark (the first), the slowest and `some` to a name and its side, where no mark, name or edge is.

    What finds no room gets none. The first and the last have room on a phone, perhaps on two lines.
    """
    named: dict[int, tuple[str, str]] = {}
    ends = (0, len(marks) - 1)
    for i in dict.fromkeys((*ends, *some)):
        texts = (names[i], names[i].replace(" · ", "<br>")) if i in ends else names[i : i + 1]
        widths = WIDTHS if i in ends else WIDTHS[1:]
        for place in product(texts, SIDES):
            if all(has_room(marks, {**named, i: place}, i, width) for width in widths):
                named[i] = place
                break
    return named


def has_room(marks: list[Point], named: dict[int, tuple[str, str]], i: int, width: int) -> bool:
    """Return whether the name of mark `i` covers nothing in a frame of this width. Marks are shares of the frame."""
    dots = [(x * width, y * HEIGHT) for x, y in marks]
    edges = {j: box(*dots[j], *place) for j, place in named.items()}
    left, right, low, high = edges.pop(i)
    inside = min(left, low) >= 0 and right <= width and high <= HEIGHT
    covers_mark = any(left - 6 < x < right + 6 and low - 6 < y < high + 6 for x, y in dots)
    return (
        inside
        and not covers_mark
        and not any(left < b and a < right and low < d and c < high for a, b, c, d in edges.values())
    )


def box(x: float, y: float, name: str, side: str) -> tuple[float, float, float, float]:
    """Return the left, right, lower and upper edge in pixels of a name beside a mark."""
    texts, gap = name.split("<br>"), 7
    length = max(sum(14 if ord(letter) > 0x2E80 else 7 for letter in text.strip()) for text in texts)
    height = 17 * len(texts)
    up, across = SIDES[side]
    left, low = x + across * gap + (across - 1) * length / 2, y + up * gap + (up - 1) * height / 2
    return left, left + length, low, low + height


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
