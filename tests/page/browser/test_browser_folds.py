"""*Theory* and *Methods* in a real Chromium: short when opened, and all of them there by a press."""

from __future__ import annotations

import pytest
from chrome import expect, pytestmark  # noqa: F401

SHORT = 2400  # pixels of the whole page: three screens of a laptop
HEIGHT = "document.documentElement.scrollHeight"
# On each tab what is drawn at once, and what in each section is there when it has been opened.
TABS = {
    "theory": (
        ("[data-part=wall] svg", "[data-part=curves] svg"),
        {
            "Which K?": ("[data-part=table] tbody tr", "[data-part=map] td b"),
            "Rules and temperature": ("[data-part=rules] svg rect", "[data-part=heat] svg rect"),
            "Formula and clock": ("[data-part=measured] svg rect", "[data-part=kept] svg rect"),
            "What the formula assumes": ("[data-part=positions] svg circle", "[data-part=checks] svg path"),
            "The memory wall": tuple(f"[data-part={name}] svg path" for name in ("roof", "batches", "trade")),
            "Often quoted figures, worked out": ("[data-part=claims] article",),
            "Many texts at once": ("#batch-chart .scatterlayer .point", "#rates-chart .scatterlayer .point"),
        },
    ),
    "methods": (
        ("#arena-chart .heatmaplayer image", "#findings p"),
        {
            "How each method drafts": ("#cards svg[role=img]",),
            "Three questions": (".sd-questions h3",),
            "All figures": (".sd-table tbody tr",),
            "Where do guesses fail?": ("#position-chart .heatmaplayer image", "#kind-chart .heatmaplayer image"),
            "Run it here": ("#measure",),
        },
    ),
}


@pytest.mark.parametrize("name", TABS)
def test_a_tab_is_short_and_every_section_opens_by_keyboard_and_is_drawn(open_page, name):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.locator(f"#{name}-button").click()
    tab, (first, folds) = page.locator(f"#{name}"), TABS[name]
    for part in first:
        expect(tab.locator(part).first).to_be_visible()
    assert page.evaluate(HEIGHT) <= SHORT
    lids = tab.locator(".sd-section > summary")
    assert lids.locator("h2").all_inner_texts() == list(folds)
    assert all(lids.locator("span").all_inner_texts())  # what each answers
    lids.first.focus()
    for i, parts in enumerate(folds.values()):
        if i:
            page.keyboard.press("Tab")  # nothing of a section that is shut is on the way
        expect(lids.nth(i)).to_be_focused()
        assert not tab.locator(parts[0]).first.is_visible()
        page.keyboard.press("Enter" if i % 2 else "Space")
        for part in parts:
            expect(tab.locator(part).first).to_be_visible()
        edge = lids.nth(i).locator("xpath=..").bounding_box()
        for chart in tab.locator(".sd-section[open] :is(.sd-chart > svg, .main-svg):visible").all():
            box = chart.bounding_box()
            assert box["width"] > 200 and box["x"] + box["width"] <= edge["x"] + edge["width"] + 1
        page.keyboard.press("Enter")
    assert page.evaluate(HEIGHT) <= SHORT


def test_a_chart_fits_its_section_when_the_page_changed_while_it_was_shut(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    page.locator("#theory-button").click()
    lids = page.locator("#theory .sd-section > summary")
    for i in (4, 6):
        lids.nth(i).click()
    expect(page.locator("#batch-chart .main-svg").first).to_be_visible()
    for i in (4, 6):
        lids.nth(i).click()
    page.set_viewport_size({"width": 375, "height": 812})
    for i in (4, 6):
        lids.nth(i).click()
    for chart in ("[data-part=roof] svg", "#batch-chart .main-svg"):
        page.wait_for_function(
            "(one) => document.querySelector(one).getBoundingClientRect().right <= innerWidth",
            arg=f"#theory {chart}",
        )
