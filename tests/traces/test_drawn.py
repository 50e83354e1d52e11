"""A run draws itself in a notebook: every token with its state and mark, nothing of it as markup, and the figures."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
import toyrun

from specdec.events import Failed, Verified
from specdec.traces.cycle import cycles
from specdec.traces.drawn import STATES, visible
from specdec.traces.file import Trace


class Reader(HTMLParser):
    """Tags must be closed in their order. Keeps the text, and each chip as its state and piece."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open, self.tags, self.chips, self.text = list[str](), set[str](), list[tuple[str, str]](), ""
        self.feed(markup)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        assert given.keys() <= {"style", "title"}
        self.open.append(tag)
        self.tags.add(tag)
        if title := given.get("title"):
            self.chips.append((title.partition(":")[0], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.chips and self.open[-1:] == ["span"] and data.strip(" \n"):
            self.chips[-1] = (self.chips[-1][0], self.chips[-1][1] or data)


@pytest.mark.parametrize(
    "trace", [toyrun.trace(), toyrun.tree_trace(), toyrun.peer_trace()], ids=["chain", "tree", "peer"]
)
def test_every_token_is_drawn_with_its_state(trace: Trace) -> None:
    drawn = Reader(trace._repr_html_())
    shown = [token for one in cycles(trace.events, "speculative") for token in one.shown()]
    wanted = [(status, visible(piece)) for piece, status, _ in shown if status]
    assert wanted and drawn.chips[: len(wanted)] == wanted
    assert [state for state, _ in drawn.chips[len(wanted) :]] == list(STATES)  # the key
    assert all(mark in drawn.text for mark, _ in STATES.values())
    assert drawn.tags <= {"div", "span", "small", "table", "tr", "td"}


def test_what_a_run_holds_never_becomes_markup() -> None:
    drawn = toyrun.trace()._repr_html_()
    assert "<script" not in drawn and "<b>" not in drawn and "&lt;script&gt;" in drawn
    assert "The old keeper &lt;b&gt;&amp;" in drawn
    assert "\u202e" not in drawn and "⟨202E⟩" in drawn
    assert "http" not in drawn and "javascript" not in drawn


def test_the_figures_stand_below() -> None:
    trace = toyrun.trace()
    text = Reader(trace._repr_html_()).text
    figures = trace.summary()["figures"]
    assert f"{figures['measured_speedup']:.2f}×" in text and f"{figures['tau']:.2f} tokens per cycle" in text
    assert "draft_model, K = 3, temperature 0.8, seed 7" in text and "lossless" in text
    assert "LOSSY" in toyrun.tree_trace("typical acceptance", lossless=False)._repr_html_()


def test_a_run_that_broke_says_why() -> None:
    failed = Failed("speculative", 1, "target", "RuntimeError: <out of memory>", True, 1.0)
    drawn = Trace.of([*toyrun.events()[:4], failed], "x")._repr_html_()
    assert "RuntimeError: &lt;out of memory&gt;" in drawn


def test_events_make_a_trace_that_can_be_saved_and_opened(tmp_path: Path) -> None:
    trace = Trace.of(iter(toyrun.events()), "a prompt")
    assert trace.header.lanes == ("speculative", "plain") and trace.header.source == "live"
    trace.save(str(tmp_path / "run.jsonl"))
    assert Trace.load(str(tmp_path / "run.jsonl")) == trace
    assert len(repr(trace)) < 200 and "a prompt" in repr(trace)
    with pytest.raises(ValueError, match="hold no run"):
        Trace.of([])


def test_a_summary_is_json_and_tells_texts_settings_and_figures() -> None:
    told = toyrun.trace().summary()
    assert json.loads(json.dumps(told, allow_nan=False)) == json.loads(json.dumps(told))
    assert told["texts"]["plain"].endswith(" p14") and told["same_text"] is False
    assert (told["settings"]["drafter"], told["settings"]["k"], told["settings"]["seed"]) == ("draft_model", 3, 7)
    assert told["figures"]["alpha"] == pytest.approx(8 / 12, abs=1e-4)
    alone = Trace.of([event for event in toyrun.events() if event.lane == "plain"]).summary()
    assert alone["same_text"] is None and alone["figures"]["measured_speedup"] is None


def test_a_cut_run_is_drawn_as_far_as_it_goes() -> None:
    whole = toyrun.events()
    for n in range(1, len(whole)):
        if isinstance(whole[n - 1], Verified):
            Reader(Trace.of(whole[:n], "x")._repr_html_())
