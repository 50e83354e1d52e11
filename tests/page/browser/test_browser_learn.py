"""*Learn here* in a real Chromium: how far it is, its chart, what came of it, Stop, and what was run before."""

from __future__ import annotations

import threading
import time

import pytest
import toyrun
from chrome import expect, open_fold, pytestmark, SlowEngine, until_free  # noqa: F401
from test_learn import DONE, LEARNING

from specdec.ui import session


@pytest.fixture
def lessons(monkeypatch):
    """A minute in two seconds, or without an end; the requests; and a gate that may keep the end back."""
    asked, endless, gate = [], [], threading.Event()
    gate.set()

    def told(request):
        asked.append(request)
        for i in range(10_000 if endless else 8):
            rounds = [[6.0 * j, 4 * j + 2, 60, 4.0] for j in range(1, 2 + min(i, 9))]
            yield LEARNING | {"rounds": rounds, "left": max(1.0, 60.0 - 6 * i)}
            time.sleep(0.3)
        gate.wait(120)
        yield DONE

    monkeypatch.setattr(session, "_lessons", told)
    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), lambda *_, **__: iter(toyrun.events())))
    return asked, endless, gate


def open_learn(page):
    page.get_by_role("tab", name="Methods").click()
    open_fold(page, "Learn here")


@pytest.mark.long
def test_a_minute_of_learning_is_told_drawn_and_concluded(open_page, lessons):
    page, (asked, _, gate) = open_page(375, reduced_motion="reduce"), lessons
    page.fill("#prompt textarea", "x = [")
    page.click("#run")
    expect(page.locator(".sd-badge").first).to_have_text("Live")
    page.wait_for_selector("#run:enabled")
    open_learn(page)
    line = page.locator("#learn-notice")
    expect(line).to_contain_text("Nothing learned yet")
    gate.clear()
    page.click("#learn")
    expect(line).to_contain_text("rejected")
    gate.set()
    expect(page.locator("#learn-chart .scatterlayer .point")).not_to_have_count(0)
    expect(line).to_contain_text("Done in")
    expect(page.locator("#learnt")).to_contain_text("rose from 0.10 to 0.40")
    expect(page.locator("#learnt")).to_contain_text("forgotten")
    expect(page.locator("#learn-table tbody tr")).to_have_count(2)
    assert [(one.kind, one.drafter, one.own) for one in asked] == [("code", "draft_model:story", ("x = [",))]
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.set_viewport_size({"width": 1280, "height": 900})
    page.reload()
    open_learn(page)
    page.click("#learn")  # what was run before the reload is forgotten
    expect(line).to_contain_text("Done in")
    assert asked[1].own == ()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.long
def test_stop_forgets_and_frees_the_machine(open_page, lessons):
    page, (_, endless, _) = open_page(reduced_motion="reduce"), lessons
    endless.append(True)
    open_learn(page)
    page.get_by_label("Facts").last.check()
    page.click("#learn")
    expect(page.locator("#learn-notice")).to_contain_text("seconds left")
    page.click("#unlearn")
    page.wait_for_selector("#learn:enabled")
    expect(page.locator("#learn-notice")).to_contain_text("Stopped. What was learned is forgotten.")
    until_free()
