"""The first screen of Race: from its first to its last frame all that matters is in the window and keeps its place."""

from __future__ import annotations

import pytest
import toyrun
from chrome import expect, part, pytestmark, settings  # noqa: F401

from specdec.traces.file import Trace
from specdec.ui import session
from specdec.ui.text import ASSETS

SEEN = ("lane0", "lane1", "figures", "gantt", "play", "say", "why", "all")
LOAD = "(log) => document.querySelector('.sd-player').load(log)"
SHOW = """(share) => {
    const player = document.querySelector(".sd-player");
    player.show({ t: share * player.kit.horizon(player.run()) });
}"""
PLACES = """(names) => names.map((name) => {
    const { x, y, right, bottom } = document.querySelector(`.sd-player [data-part=${name}]`).getBoundingClientRect();
    return [x, y, right, bottom].map(Math.round);
})"""


def a_long_run():
    return Trace(toyrun.header(), tuple(toyrun.events(cycles=40, tokens=100))).dumps()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), pytest.param(1920, 1080, marks=pytest.mark.long)])
def test_lanes_charts_and_run_are_in_the_window_from_the_first_to_the_last_frame(open_page, width, height):
    page = open_page(width, height, reduced_motion="reduce")
    page.evaluate(LOAD, a_long_run())
    first = None
    for share in (0, 0.01, 0.1, 0.3, 0.6, 0.9, 1):
        page.evaluate(SHOW, share)
        places = page.evaluate(PLACES, SEEN)
        for name, (x, y, right, bottom) in zip(SEEN, places, strict=True):
            assert x >= 0 and y >= 0 and right <= width and bottom <= height, (name, share)
        assert page.locator("#run").bounding_box()["y"] < places[0][1]
        first = first or places
        assert places == first, "something moved"
    lane0, lane1, meters = places[:3]
    assert lane0[1] == lane1[1] and lane0[2] < lane1[0] < meters[0]  # beside each other


def test_the_first_run_is_never_behind_and_ends_twice_as_fast(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.evaluate(LOAD, (ASSETS / "traces" / f"{session.FIRST[0]}.jsonl").read_text(encoding="utf-8"))
    told, first = [], None
    for i in range(41):
        page.evaluate(SHOW, i / 40)
        told.append(page.locator("[data-part=figures] .sd-hero dd").first.inner_text())
        first = first or page.evaluate(PLACES, SEEN)
        assert page.evaluate(PLACES, SEEN) == first, "something moved"
    ratios = [float(said.removesuffix("×")) for said in told if "×" in said]
    assert len(ratios) > 20 and min(ratios) >= 1 and ratios[-1] >= 2
    lanes = [page.locator(f"[data-part=lane{i}]").inner_text() for i in (0, 1)]
    assert all("comparing it with its reverse" in lane for lane in lanes)


def test_both_charts_follow_the_playhead(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.evaluate(LOAD, a_long_run())
    charts = page.locator(".sd-mini svg")
    expect(charts).to_have_count(2)
    drawn = []
    for share in (0.3, 0.8):
        page.evaluate(SHOW, share)
        drawn.append([charts.nth(i).locator(".sd-line-a").get_attribute("d") for i in (0, 1)])
    (fast, alpha), later = drawn
    assert later[0].startswith(fast) and later[1].startswith(alpha) and later != drawn[0]
    expect(charts.nth(0).locator("text")).to_have_text("1×")


def test_a_lane_reads_as_prose_until_all_of_it_is_asked_for(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.press("[data-part=stage]", "End")
    past = page.locator("[data-part=lane0] .sd-past .sd-rej:not(.sd-fut)").first
    assert past.inner_text() == "" and 0 < past.bounding_box()["width"] < 6  # a tick
    assert page.locator("[data-part=lane0] .sd-m:visible, [data-part=lane0] .sd-sp:visible").count() == 0
    part(page, "all").click()
    expect(part(page, "all")).to_have_attribute("aria-pressed", "true")
    assert "✗" in past.inner_text() and past.bounding_box()["width"] > 20
    part(page, "all").click()
    past.focus()
    page.keyboard.press("Enter")  # it is a button still
    expect(part(page, "card")).to_be_visible()


def test_what_is_chosen_stands_on_the_lid_of_the_settings(open_page):
    page = open_page(1280, 800, reduced_motion="reduce", query="?k=5&seed=11")
    lid = page.locator(".sd-lid").first
    expect(lid).to_contain_text("K 5")
    expect(lid).to_contain_text("seed 11")
    expect(page.get_by_label("Seed")).to_be_hidden()
    settings(page)
    page.get_by_label("Seed").fill("12")
    page.get_by_label("Seed").blur()
    expect(lid).to_contain_text("seed 12")
    lid.click()
    expect(page.get_by_label("Seed")).to_be_hidden()
