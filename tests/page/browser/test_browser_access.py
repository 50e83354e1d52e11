"""The page for everyone: axe finds nothing, the keyboard reaches all and is seen, a narrow screen cuts nothing off."""

import pytest

from specdec.ui.tabs import labels
from tests.page.browser.chrome import axe_violations, cut_off, expect

pytestmark = pytest.mark.long
TABS = labels()
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(11, 16, 32)"}
DRAWN = {  # what comes late on a tab, when it is opened or a part of it is
    "step": (".sd-step[data-state=ready]", ".sd-step [data-part=title]:not(:empty)"),
    "lossless": (".sd-proof [data-part=run]:not(:empty)", ".sd-verdict h2"),
    "methods": ("#arena tbody td", "[data-fold=figures] tbody td"),
    "theory": ("[data-part=headline]:not(:empty)", "[data-part=roof] svg path"),
}
UNFOLD = """() => {
    for (const page of document.querySelectorAll(".sd-gd-page")) page.hidden = false;
    for (const part of document.querySelectorAll("details")) part.open = true;
    const folded = "button.label-wrap:not(.open), .sd-lid[aria-expanded=false]";
    for (const button of document.querySelectorAll(folded)) button.click();
}"""


FOCUS = """() => {
    const node = document.activeElement, box = node.closest(".wrap-inner"); // a menu is ringed as a whole
    const style = getComputedStyle(box ? box.parentElement : node);
    if (node === document.body) return null;
    node.dataset.visits = Number(node.dataset.visits || 0) + 1;
    return {
        node: node.outerHTML.slice(0, 160),
        ringed: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        seen: node.getBoundingClientRect().width > 0,
        visits: Number(node.dataset.visits),
        last: Boolean(node.closest("footer")),
    };
}"""
SMALL = """() => [...document.querySelectorAll("button, a, summary, select, input, [role=tab]")].filter((node) => {
    const style = getComputedStyle(node);
    const label = node.matches("[type=checkbox], [type=radio]") && node.closest("label");
    if (node.closest(".sd-hidden, .sd-skip") || style.visibility === "hidden") return false;
    if (node.closest(".sd-inline") || (style.display === "inline" && node.closest("p, li, dd, td, th"))) return false;
    const { width, height } = (label || node).getBoundingClientRect();
    return width && height && (width < 23.5 || height < 23.5);
}).map((node) => node.outerHTML.slice(0, 140))"""


def each_tab(page):
    """The names of the tabs, each while it is shown, with nothing folded."""
    for name in TABS:
        page.locator(f"#{name}-button").click()
        shut, opened = DRAWN.get(name, ("[role=tabpanel]:visible *",) * 2)
        page.wait_for_selector(shut)
        page.evaluate(UNFOLD)
        page.wait_for_selector(opened)
        yield name


@pytest.mark.parametrize(("theme", "width", "rules"), [("dark", 1280, []), ("light", 360, ["color-contrast"])])
def test_axe_finds_nothing_in_all_of_it(open_page, theme, width, rules):
    page = open_page(width, 900, query=f"?__theme={theme}")
    page.press("[data-part=stage]", "End")
    expect(page.locator(".sd-stage")).to_have_css("background-color", GROUND[theme])
    for name in each_tab(page):
        assert axe_violations(page, *rules) == "", name


def test_nothing_is_cut_off_or_needs_sideways_scrolling_and_a_finger_finds_every_target(page):
    for name in each_tab(page):
        for width in (1280, 768, 375, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert cut_off(page) == [], (name, width)
        assert page.evaluate(SMALL) == [], name


def test_the_keyboard_goes_through_all_of_it_and_is_always_seen(page):
    for name in each_tab(page):
        page.evaluate("() => document.querySelectorAll('[data-visits]').forEach((node) => delete node.dataset.visits)")
        page.locator(f"#{name}-button").focus()
        stops = []
        while not stops or not stops[-1]["last"]:
            page.keyboard.press("Tab")
            stops.append(page.evaluate(FOCUS))
            assert stops[-1] is not None and stops[-1]["visits"] == 1, f"the way ends behind {stops[-2:]}"
        assert [stop["node"] for stop in stops if not (stop["ringed"] and stop["seen"])] == []
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(FOCUS)["visits"] == 2  # and back again
