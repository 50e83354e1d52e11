"""*Methods* in a real Chromium: what was recorded, what is measured here, and its table."""

from __future__ import annotations

import time

import pytest
import toyrun
from chrome import expect, no_engine, open_fold, processor, pytestmark, SlowEngine, until_free  # noqa: F401

from specdec.methods import METHODS
from specdec.ui import session


def open_methods(page):
    page.get_by_role("tab", name="Methods").click()
    page.wait_for_selector("#arena-chart .heatmaplayer image")


def open_where(page):
    open_fold(page, "Where do guesses fail?")
    page.wait_for_selector("#kind-chart .heatmaplayer image")


def cells(page, chart):
    return page.locator(f"#{chart}-chart .heatmaplayer text")


def test_the_arena_shows_what_was_recorded_and_loads_no_model(open_page, monkeypatch):
    monkeypatch.setattr(session, "_engine", no_engine)
    page = open_page(reduced_motion="reduce")
    assert page.evaluate("typeof window.Plotly") == "undefined"  # fetched when the tab is first opened
    open_methods(page)
    expect(cells(page, "arena")).to_have_count(12)
    assert sorted(cells(page, "arena").all_text_contents())[:3] == ["0.80", "0.90", "1.00"]
    expect(page.locator(".sd-recorded-badge p").first).to_have_text("Recorded")
    assert "Draft model on Story (1.80×)" in page.inner_text("#findings")
    page.get_by_label("Tokens per cycle τ").check()
    expect(page.locator("#arena-chart .heatmaplayer")).to_contain_text("2.80")
    open_where(page)
    expect(cells(page, "position")).to_have_text(["0.80", "0.70", "0.60"] * 3)
    expect(page.locator("#methods .sd-pair2")).to_contain_text("least about digits (0.25)")
    page.locator(".sd-choices").get_by_label("Code").check()
    open_fold(page, "How each method drafts")
    cards = sum(method.card is not None for method in METHODS.values())
    assert page.locator("#cards section").count() == page.locator("#cards svg[role=img]").count() == cards


@pytest.mark.long
def test_the_table_is_sorted_by_mouse_and_by_keyboard_and_saved_as_a_file(open_page):
    page = open_page(reduced_motion="reduce")
    open_methods(page)
    open_fold(page, "All figures")
    table = page.get_by_role("table", name="All figures")
    first, speedup, worst = (
        table.locator("tbody tr").first,
        *(table.get_by_role("columnheader", name=name) for name in ("Speed-up ×", "Worst ×")),
    )
    expect(first).to_contain_text("Prompt lookup")
    speedup.get_by_role("button").click()
    expect(speedup).to_have_attribute("aria-sort", "descending")
    assert "1.80" in first.inner_text()
    page.keyboard.press("Enter")  # the heading has kept the focus
    expect(speedup).to_have_attribute("aria-sort", "ascending")
    assert "0.80" in first.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press(" ")
    expect(worst).to_have_attribute("aria-sort", "descending")
    assert speedup.get_attribute("aria-sort") == "none" and table.locator("tbody tr").count() == 12
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").press("Enter")
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert saved.value.suggested_filename == "specdec-methods.csv"
    assert len(lines) == 13 and lines[0].startswith("drafter,domain,temperature,k,measured_speedup")


@pytest.mark.long
def test_a_measurement_here_stands_beside_the_record_and_stops_when_told(open_page, monkeypatch):
    races = []

    def race(*_, **__):
        """Quick until a method is done; then slow, so that there is something to stop however slowly a page draws."""
        races.append(race)
        for event in toyrun.events():
            time.sleep(0.02 if len(races) <= 3 else 0.3)
            yield event

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), race))
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    open_methods(page)
    open_fold(page, "Run it here")
    line = page.locator("#live-notice")
    expect(line).to_contain_text("Nothing measured yet")
    page.click("#measure")
    expect(page.locator("#live-chart .scatterlayer .point")).not_to_have_count(0)
    expect(page.locator(".sd-live-badge p").first).to_have_text("Live")
    expect(line).to_contain_text("races done")
    page.click("#halt")
    page.wait_for_selector("#measure:enabled")
    expect(line).to_contain_text("Stopped")
    until_free()
    assert "Stopped" in line.inner_text()  # nothing came late
    expect(page.locator("#live-table")).to_contain_text("Draft model")
    assert page.locator("#live-chart .point").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.long
def test_a_tab_that_was_open_before_comes_back_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    names = ["step", "lossless", "methods", "theory", "guide", "race"]
    open_methods(page)
    press = "(name) => { document.querySelector(`#${name}-button`).click(); return new Promise(requestAnimationFrame) }"
    for name in names:
        page.evaluate(press, name)
        page.wait_for_timeout(500)
    spent = processor(page, "ScriptDuration")
    for name in names:
        page.evaluate(press, name)
    assert 0 < spent() / len(names) < 0.05
