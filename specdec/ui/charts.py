"""Charts of measured figures, by plotly: to point at, to zoom and to save as a picture.

What is drawn of a cycle, or moves with the run on show, is SVG of the page's own.

Words outside the cells take their colour from the page's style sheet, so that a chart follows light and dark; cells are
tinted like the tokens' chips, with dark text in both. plotly is imported at the first chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LOW = "#f7bd9a"
MIDDLE = "#f3f6fa"
HIGH = "#8fa9d6"
CELL_INK = "#0b0f14"
LINE = "#94a3b8"
LIVE = "#6366f1"
# pixels
ROW = 30
LINE_OF_HEAD = 18
GAP = 10
AXIS = {"fixedrange": True, "showgrid": False, "zeroline": False, "showline": False, "ticks": ""}
NAMES = {**AXIS, "autorange": "reversed", "dtick": 1, "automargin": True, "ticksuffix": "  "}
UNUSED_BUTTONS = ["select", "lasso", "zoomin", "zoomout", "autoscale", "pan"]
Cells = Sequence[Sequence[float | None]]


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Cells,
    hover: Sequence[Sequence[str]] | None = None,
    even: float | None = None,
    highest: float | None = None,
    mark_best: bool = True,
) -> Any:
    """A figure by row and column, written into its cells; `hover` is what a cell says when pointed at.

    `even` is the value that is neither good nor bad: below it cells turn orange. Without it colours begin at 0.
    """
    figures = [value for line in values for value in line if value is not None]
    if highest is None:
        highest = max(figures, default=1.0)
    if even is None:
        low, high = 0.0, highest
        colours = [[0, MIDDLE], [1, HIGH]]
    else:
        low, high = min([*figures, even - 0.25]), max(highest, even + 0.25)
        colours = [[0, LOW], [(even - low) / (high - low), MIDDLE], [1, HIGH]]
    best = [max((v for v in column if v is not None), default=None) for column in zip(*values, strict=True)]

    def text(value: float | None, column: int) -> str:
        if value is None:
            return ""
        return f"<b>{value:.2f}</b>" if mark_best and len(rows) > 1 and value == best[column] else f"{value:.2f}"

    trace = {
        "type": "heatmap",
        "x": columns,
        "y": rows,
        "z": values,
        "text": [[text(value, i) for i, value in enumerate(line)] for line in values],
        "texttemplate": "%{text}",
        "textfont": {"color": CELL_INK, "size": 13},
        "hovertext": hover,
        "hoverinfo": "text" if hover else "none",
        "colorscale": colours,
        "zmin": low,
        "zmax": high,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    lines = 1 + max(column.count("<br>") for column in columns)
    top = {**AXIS, "side": "top", "type": "category", "dtick": 1, "tickangle": 0}
    return chart([trace], ROW * len(rows), lines, xaxis=top, yaxis=NAMES)


def chart(traces: list[dict[str, Any]], height: int, head_lines: int, below: int = 4, **layout: Any) -> Any:
    """A drawing of `height` pixels under `head_lines` lines of words, with `below` pixels under it."""
    from plotly.graph_objects import Figure

    above = GAP + LINE_OF_HEAD * head_lines
    clear = "rgba(0, 0, 0, 0)"
    font = {"family": "IBM Plex Sans, ui-sans-serif, system-ui, sans-serif", "size": 12}
    frame = {
        "template": "none",
        "height": above + height + below,
        "margin": {"l": 8, "r": 8, "t": above, "b": below},
        "paper_bgcolor": clear,
        "plot_bgcolor": clear,
        "font": font,
        "hoverlabel": {"align": "left", "font": font},
        "dragmode": False,  # a finger scrolls the page; the zoom button turns zooming on
        "modebar": {"remove": UNUSED_BUTTONS, "bgcolor": clear, "color": LINE, "activecolor": LIVE},
    }
    return Figure({"data": traces, "layout": frame | layout})
