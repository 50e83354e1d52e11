"""A run draws itself in a notebook: every token with its state and mark, nothing of it as markup, and the figures."""

from html import unescape

import pytest

from specdec.events import Failed
from specdec.traces.cycle import cycles
from specdec.traces.file import MARKS, Trace
from tests import toyrun


@pytest.mark.parametrize("trace", [toyrun.trace(), toyrun.tree_trace(), toyrun.peer_trace()])
def test_every_token_is_drawn_with_its_state(trace: Trace) -> None:
    drawn = trace._repr_html_()
    shown = [status for one in cycles(trace.events, "speculative") for _, status in one.shown()]
    assert all(drawn.count(f'title="{status}"') == shown.count(status) > 0 for status in MARKS)
    assert all(drawn.count(f"<small>{mark}</small>") >= shown.count(status) for status, mark in MARKS.items())
    assert drawn.count("<span") == 1 + len(shown)


def test_what_a_run_holds_never_becomes_markup_and_the_figures_stand_below() -> None:
    trace = toyrun.trace()
    drawn, figures = trace._repr_html_(), trace.summary()["figures"]
    assert "<script" not in drawn and "<b>" not in drawn and "&lt;script&gt;" in drawn
    assert "The old keeper &lt;b&gt;&amp;" in drawn and "\u202e" not in drawn and "⟨202E⟩" in drawn
    assert f"<td>{figures['tau']:.4g}</td>" in drawn and "<td>draft_model</td>" in drawn and "None" not in drawn
    failed = Failed("speculative", 1, "target", "RuntimeError: <out of memory>", True, 1.0)
    assert "RuntimeError: <out of memory>" in unescape(Trace(trace.header, (*trace.events[:4], failed))._repr_html_())
