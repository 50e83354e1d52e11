"""A run as a piece of HTML for a notebook: the text with what became of every draft, and the figures below.

Styles stand in the elements, because notebooks drop style sheets. A token is dark on a tint of its own, so it can be
read on light and on dark; all else takes the notebook's colours. There is no script, and what a run holds is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TYPE_CHECKING

from jinja2 import Environment

from ..events import Failed, Position
from .cycle import cycles, is_unnamed

if TYPE_CHECKING:
    from .file import Trace  # which draws itself in a notebook

# The colours and marks of the page; the mark stands beside the colour for whoever does not see it.
STATES = {
    "accepted": ("✓", "background:#cbeadf;border-bottom:2px solid #00795a"),
    "rejected": ("✗", "background:#f9cbb2;border-bottom:2px solid #b34700;text-decoration:line-through"),
    "discarded": ("·", "background:#e8ebef;outline:2px dotted #64748b;outline-offset:-2px"),
    "resampled": ("↻", "background:#bfe0f7;border-bottom:4px double #0072b2"),
    "bonus": ("+1", "background:#f8e29a;border-left:3px solid #8a6400"),
}
COUNTED = {  # how the cycles of a server are known
    "exact": "; its cycles are exact",
    "merged": "; its cycles were separated afterwards by its own list",
    "totals": "; it tells sums only, and what arrived together counts as one cycle",
}
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")  # unseen, or turning the line
PAGE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""
<div style="max-width:60em;line-height:2;overflow-wrap:anywhere">
{% macro chip(piece, state, told="") %}
<span title="{{ told or state }}" style="{{ states[state][1] }};color:#0b0f14;border-radius:4px;padding:1px 4px;\
margin:0 2px;min-width:1em;white-space:pre-wrap;display:inline-block;line-height:1.4;font-family:monospace">\
{{ piece }}<small style="margin-left:3px;display:inline-block">{{ states[state][0] }}</small></span>
{% endmacro %}
<span style="white-space:pre-wrap;opacity:.7">{{ prompt }}</span>
{% for piece, state, told in tokens %}
{% if state %}{{ chip(piece, state, told) }}{% else %}
<span style="white-space:pre-wrap;font-family:monospace">{{ piece }}</span>
{% endif %}
{% endfor %}
{% for reason in failed %}<div>⚠ {{ reason }}</div>{% endfor %}
<div style="font-size:.85em">{% for state in states %}{{ chip(state, state) }}{% endfor %}</div>
<table style="color:inherit;font-size:.9em;line-height:1.5">
{% for name, value in figures %}
<tr><td style="text-align:left">{{ name }}</td><td style="text-align:left">{{ value }}</td></tr>
{% endfor %}
</table>
</div>""")


def drawn(trace: Trace) -> str:
    """The first lane's text, and the figures of the run."""
    lane = trace.header.lanes[0]
    tokens = [
        (visible(piece), status, told(x)) for one in cycles(trace.events, lane) for piece, status, x in one.shown()
    ]
    failed = [event.reason for event in trace.events if isinstance(event, Failed) and event.lane == lane]
    return PAGE.render(
        prompt=trace.header.prompt, tokens=tokens, failed=failed, figures=figures(trace.summary()), states=STATES
    )


def told(x: Position | None) -> str:
    if x is None:
        return ""
    told = [f"{name} = {value:.3f}" for name, value in (("p", x.p), ("q", x.q), ("u", x.u)) if value is not None]
    unnamed = ["the server does not tell which token it was"] if is_unnamed(x) else []
    return f"{x.status}: {', '.join(unnamed + told)}" if unnamed or told else x.status


def visible(piece: str) -> str:
    shown = piece.replace("\n", "↵").replace("\t", "⇥")
    shown = CONTROL.sub(lambda found: f"⟨{ord(found[0]):04X}⟩", shown)
    return shown.replace(" ", "␣") if not shown.strip() else shown


def figures(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Those of `Trace.summary` that the run has, with their units."""
    if asked := summary["settings"]:
        words = f"{asked['drafter']}, K = {asked['k']}, temperature {asked['temperature']:g}, seed {asked['seed']}"
        kept = "lossless" if asked["lossless"] else "LOSSY: the text no longer follows the target's distribution"
        if server := asked["server"]:
            yield "server", f"{server}, watched from outside{COUNTED.get(asked['counted'], '')}"
            words = f"temperature {asked['temperature']:g}, seed {asked['seed']}"
        yield "settings", words
        if not server:
            yield "verification", f"{asked['rule']}, {kept}"
    for name, key, unit in (
        ("measured speed-up", "measured_speedup", "×"),
        ("acceptance rate α", "alpha", ""),
        ("block efficiency τ", "tau", " tokens per cycle"),
        ("speculative", "tokens_per_second", " tokens/s"),
        ("plain decoding", "plain_tokens_per_second", " tokens/s"),
        ("cost of one draft token c", "draft_cost", " plain steps"),
        ("cost of one verification v", "verify_cost", " plain steps"),
    ):
        if (value := summary["figures"][key]) is not None:
            yield name, f"{value:.0f}{unit}" if "tokens/s" in unit else f"{value:.2f}{unit}"
