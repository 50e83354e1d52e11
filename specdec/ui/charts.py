"""Charts of measured figures, by plotly: to point at, to zoom and to save as a picture.

What is drawn of a cycle, or moves with the run on show, is SVG of the page's own.

Words outside the cells take their colour from the page's style sheet, so that a chart follows light and dark; cells are
tinted like the tokens' chips, with dark text in both. plotly is imported at the first chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

LOW, MIDDLE, HIGH = "#f7bd9a", "#f3f6fa", "#8fa9d6"
CELL_INK, LINE, LIVE, OTHER = "#0b0f14", "#94a3b8", "#6366f1", "#c2630a"
ROW, LINE_OF_HEAD, GAP = 30, 18, 10  # pixels
Cells = Sequence[Sequence[float | None]]


def heat_map(
    rows: Sequence[str], columns: Sequence[str], values: Cells, about: Sequence[Sequence[str]] | None = None,
    even: float | None = None, most: float | None = None, mark_best: bool = True,
) -> Any:  # fmt: skip
    """A figure by row and column, written into its cells; `about` is what a cell tells when pointed at.

    `even` is the value that is neither good nor bad: below it cells turn orange. Without it colours begin at 0.
    """
    from plotly import graph_objects

    known = [value for line in values for value in line if value is not None]
    low, high = span(known, even, most)
    best = [max((v for line in values if (v := line[i]) is not None), default=None) for i in range(len(columns))]

    def written(value: float | None, column: int) -> str:
        if value is None:
            return ""
        return f"<b>{value:.2f}</b>" if mark_best and len(rows) > 1 and value == best[column] else f"{value:.2f}"

    trace = graph_objects.Heatmap(
        x=list(columns),
        y=list(rows),
        z=[list(line) for line in values],
        text=[[written(value, i) for i, value in enumerate(line)] for line in values],
        texttemplate="%{text}",
        textfont={"color": CELL_INK, "size": 13},
        hovertext=about,
        hoverinfo="none" if about is None else "text",
        colorscale=[[0, LOW], [(even - low) / (high - low), MIDDLE], [1, HIGH]]
        if even is not None
        else [[0, MIDDLE], [1, HIGH]],
        zmin=low,
        zmax=high,
        showscale=False,
        xgap=2,
        ygap=2,
    )
    figure = graph_objects.Figure(
        trace, layout(ROW * len(rows), 1 + max((column.count("<br>") for column in columns), default=0))
    )
    figure.update_xaxes(side="top", type="category", dtick=1, tickangle=0, **AXIS)
    figure.update_yaxes(autorange="reversed", dtick=1, automargin=True, ticksuffix="  ", **AXIS)
    return figure


def span(known: Sequence[float], even: float | None, most: float | None) -> tuple[float, float]:
    """The values at which colours end, on either side of `even`."""
    top = most if most is not None else max(known, default=1.0)
    if even is None:
        return 0.0, top or 1.0
    return min([*known, even - 0.25]), max(top, even + 0.25)


def side_by_side(
    names: Sequence[str], here: Sequence[float | None], recorded: Sequence[float | None], words: Any
) -> Any:
    """A line a method: a dot for what was measured here, a diamond for what was recorded, a rule at plain decoding."""
    from plotly import graph_objects

    def dots(values: Sequence[float | None], name: str, symbol: str, colour: str) -> Any:
        marker = {"symbol": symbol, "size": 11, "color": colour, "line": {"color": colour, "width": 2}}
        hover = f"%{{y}}, {name}: %{{x:.2f}}×<extra></extra>"
        return graph_objects.Scatter(
            x=list(values), y=list(names), mode="markers", name=name, marker=marker, hovertemplate=hover
        )

    traces = [dots(recorded, words["recorded"], "diamond-open", LINE), dots(here, words["here"], "circle", LIVE)]
    figure = graph_objects.Figure(traces, layout(ROW * len(names), lines=2, below=48))
    figure.add_vline(x=1, line={"color": LINE, "width": 1.5, "dash": "dot"})
    figure.update_layout(legend=LEGEND)
    figure.update_xaxes(rangemode="tozero", ticksuffix="×", **scale(words["axis"]))
    figure.update_yaxes(autorange="reversed", dtick=1, automargin=True, ticksuffix="  ", **AXIS)
    return figure


@dataclass(frozen=True)
class Course:
    """A line of a chart; `notes` are numbers that its points tell beside their place."""

    name: str
    across: Iterable[float]
    up: Iterable[float]
    notes: Iterable[float] = ()
    colour: str = LIVE
    dash: str = "solid"


def courses(lines: Sequence[Course], across: str, up: str = "", even: float | None = None, note: str = "") -> Any:
    """Lines over an axis of a doubling number, or of one that grows evenly where `up` names what doubles upwards.

    `even` is the value that is neither good nor bad; values are then told as multiples of it.
    """
    from plotly import graph_objects

    unit = "×" if even is not None else ""
    told = f"{across}: %{{x:.4~g}}<br>{up or '%{y:.2f}' + unit}" + (": %{y:.4~g}" if up else "")
    told += f"<br>{note.format(n='%{customdata}')}" if note else ""
    traces = [
        graph_objects.Scatter(
            x=list(line.across), y=list(line.up), customdata=list(line.notes) or None, mode="lines+markers",
            name=line.name, hovertemplate=f"<b>{line.name}</b><br>{told}<extra></extra>",
            line={"color": line.colour, "dash": line.dash, "width": 2.5}, marker={"size": 8},
        )
        for line in lines
    ]  # fmt: skip
    figure = graph_objects.Figure(traces, layout(10 * ROW, lines=2 + len(lines) // 3, below=48))
    figure.update_layout(legend=LEGEND)
    doubling, steps = {"type": "log", "dtick": LOG_OF_2}, {"rangemode": "tozero"}
    figure.update_xaxes(**scale(across), **(steps if up else doubling))
    figure.update_yaxes(automargin=True, ticksuffix=f"{unit}  ", **scale(up), **(doubling if up else steps))
    if even is not None:
        figure.add_hline(y=even, line={"color": LINE, "width": 1.5, "dash": "dot"})
    return figure


def scale(title: str = "") -> dict[str, Any]:
    """An axis of numbers, which can be zoomed."""
    shown = {"title": {"text": title, "standoff": 8, "font": {"size": 12}}} if title else {}
    return {**AXIS, "fixedrange": False, "showgrid": True, "gridcolor": "rgba(148, 163, 184, .25)", "nticks": 6} | shown


BUTTONS_LESS = ["select", "lasso", "zoomin", "zoomout", "autoscale", "pan"]
LOG_OF_2 = 0.30103  # to 10: a step of plotly's logarithmic axes
LEGEND = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
AXIS = {"fixedrange": True, "showgrid": False, "zeroline": False, "showline": False, "ticks": ""}


def layout(height: int, lines: int, below: int = 4) -> dict[str, Any]:
    """For a drawing of that height below this many lines of words."""
    above = GAP + LINE_OF_HEAD * lines
    clear = "rgba(0, 0, 0, 0)"
    font = {"family": "IBM Plex Sans, ui-sans-serif, system-ui, sans-serif", "size": 12}
    return {
        "template": "none",
        "height": above + height + below,
        "margin": {"l": 8, "r": 8, "t": above, "b": below},
        "paper_bgcolor": clear,
        "plot_bgcolor": clear,
        "font": font,
        "hoverlabel": {"align": "left", "font": font},
        # A finger scrolls the page; who wants to zoom says so by its button.
        "dragmode": False,
        "modebar": {"remove": BUTTONS_LESS, "bgcolor": clear, "color": LINE, "activecolor": LIVE},
    }
