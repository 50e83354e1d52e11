"""The page for everyone: axe finds nothing, the keyboard reaches all and is seen, a narrow screen cuts nothing off."""

from __future__ import annotations

from contextlib import suppress

import pytest
from chrome import expect, pages, part, playwright, pytestmark  # noqa: F401

from specdec.ui.tabs import labels

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

TABS = labels()
FULLEST = ("race", "methods")
WIDTHS = (1280, 768, 375, 360)
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(11, 16, 32)"}
DRAWN = {  # what comes late on a tab, when it is opened or a part of it is
    "methods": ("#arena-chart .heatmaplayer image", "#kind-chart .heatmaplayer image"),
    "theory": ("[data-part=headline]:not(:empty)", "#batch-chart .scatterlayer .point"),
}

# Every part that can be folded, the Gradio ones and the Guide's sub-pages too: all of a tab is there to be looked at.
UNFOLD = """() => {
    for (const page of document.querySelectorAll(".sd-gd-page")) page.hidden = false;
    for (const part of document.querySelectorAll("details")) part.open = true;
    const folded = "button.label-wrap:not(.open), .sd-lid[aria-expanded=false]";
    for (const button of document.querySelectorAll(folded)) button.click();
}"""


def unfolded(page, name):
    """All of a tab that is shown, and drawn."""
    here = "[role=tabpanel]:visible *"
    shut, open_ = DRAWN.get(name, (here, here))
    page.wait_for_selector(shut)
    page.evaluate(UNFOLD)
    page.wait_for_selector(open_)


# Exhaustive: dark where only the layout is looked at, which is the same in both; and dark on a phone, whose colours are
# those of the wide page.
LONG, EXHAUSTIVE = [pytest.mark.long], [pytest.mark.long, pytest.mark.exhaustive]
themes = pytest.mark.parametrize("page", ["light", pytest.param("dark", marks=EXHAUSTIVE)], indirect=True)


@pytest.fixture(scope="module")
def page(request, browser, address):
    """One page a theme, for all tabs."""
    with pages(browser, address) as open_page:
        page = open_page(query=f"?__theme={request.param}", reduced_motion="reduce")
        page.press("[data-part=stage]", "End")
        expect(page.locator(".sd-stage")).to_have_css("background-color", GROUND[request.param])
        yield page


@pytest.fixture(params=[name if name in FULLEST else pytest.param(name, marks=pytest.mark.long) for name in TABS])
def tab(request, page):
    """Shown, wide, with nothing folded."""
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    button = page.get_by_role("tab", name=TABS[request.param], exact=True)
    button.click()
    expect(button).to_have_attribute("aria-selected", "true")
    unfolded(page, request.param)
    expect(page.locator("button.label-wrap:visible:not(.open)")).to_have_count(0)
    return request.param


def told(violations):
    """One paragraph a broken rule: where, and what axe measured there."""
    lines = []
    for one in violations:
        lines.append(f"{one['id']}: {one['help']}")
        for node in one["nodes"]:
            why = "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])
            lines += [f"  {' '.join(map(str, node['target']))}", f"    {why}", f"    {node['html'][:200]}"]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("page", "width"),
    [
        ("light", WIDTHS[0]),
        pytest.param("light", WIDTHS[-1], marks=LONG),
        pytest.param("dark", WIDTHS[0], marks=LONG),
        pytest.param("dark", WIDTHS[-1], marks=EXHAUSTIVE),
    ],
    indirect=["page"],
    scope="module",
)
def test_axe_finds_nothing(page, tab, width):
    page.set_viewport_size({"width": width, "height": 900})
    violations = axe.Axe().run(page).response["violations"]
    assert not violations, "\n" + told(violations)


# What reaches over the edge of the page, unless it lies in a box that scrolls or fades out on purpose.
CUT = """() => [...document.querySelectorAll("main *, footer *")].filter((node) => {
    const { left, right, width, height } = node.getBoundingClientRect();
    if (!width || !height || (left >= -1 && right <= innerWidth + 1) || node.closest("svg, .sd-hidden")) return false;
    for (let box = node.parentElement; box; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (/auto|scroll/.test(style.overflowX) || style.maskImage !== "none") return false;
    }
    return true;
}).map((node) => node.outerHTML.slice(0, 120))"""


WIDE = "document.documentElement.scrollWidth"


@themes
def test_nothing_needs_sideways_scrolling_and_nothing_is_cut_off(page, tab):
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        with suppress(playwright.TimeoutError):  # charts follow the width a moment later
            page.wait_for_function(f"() => !({CUT})().length && {WIDE} <= innerWidth", timeout=20_000)
        assert page.evaluate(CUT) == [], width
        assert page.evaluate(WIDE) <= width


# The focused element: its name, whether it is ringed, and whether it is in the page's last part.
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


@themes
def test_the_keyboard_goes_through_all_of_it_and_is_always_seen(page, tab):
    page.evaluate("() => document.querySelectorAll('[data-visits]').forEach((node) => delete node.dataset.visits)")
    page.get_by_role("tab", name=TABS[tab], exact=True).focus()
    stops = []
    while not stops or not stops[-1]["last"]:
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUS))
        assert stops[-1] is not None and stops[-1]["visits"] == 1, f"the way ends behind {stops[-2:]}"
    assert [stop["node"] for stop in stops if not (stop["ringed"] and stop["seen"])] == []
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUS)["visits"] == 2  # and back again


def test_run_live_is_within_eight_stops_of_the_keyboard(open_page):
    page = open_page(reduced_motion="reduce", query="?tab=theory")
    expect(page.locator("#theory-button")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    expect(page.locator(".sd-skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#run")).to_be_focused()
    expect(page.locator("#race-button")).to_have_attribute("aria-selected", "true")


def test_the_tabs_are_one_stop_and_follow_the_arrow_keys(open_page):
    page = open_page(reduced_motion="reduce")
    page.locator("#race-button").focus()
    way = (("ArrowRight", "step"), ("ArrowRight", "lossless"), ("End", "guide"), ("ArrowRight", "race"))
    for key, name in (*way, ("ArrowLeft", "guide"), ("Home", "race")):
        page.keyboard.press(key)
        tab = page.locator(f"#{name}-button")
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") != "tab"


# What a finger is to meet and is smaller than 24 pixels; what stands in a line of text may be.
SMALL = """() => [...document.querySelectorAll("button, a, summary, select, input, [role=tab]")].filter((node) => {
    const style = getComputedStyle(node);
    const label = node.matches("[type=checkbox], [type=radio]") && node.closest("label");
    if (node.closest(".sd-hidden, .sd-skip") || style.visibility === "hidden") return false;
    if (node.closest(".sd-inline") || (style.display === "inline" && node.closest("p, li, dd, td, th"))) return false;
    const { width, height } = (label || node).getBoundingClientRect();
    return width && height && (width < 23.5 || height < 23.5);
}).map((node) => node.outerHTML.slice(0, 140))"""


@pytest.mark.long
def test_every_target_is_large_enough_for_a_finger(open_page):
    page = open_page(375, 812, reduced_motion="reduce")
    for name in TABS:
        page.locator(f"#{name}-button").click()
        unfolded(page, name)
        assert page.evaluate(SMALL) == [], name


def pixels(locator):
    return locator.screenshot(animations="disabled")


@pytest.mark.long
def test_forced_colours_tell_on_from_off(open_page):
    page = open_page(reduced_motion="reduce", forced_colors="active")
    page.locator("#lossless-button").click()
    switch = page.locator(".sd-bug").first
    knob, box = switch.locator("i"), page.locator(".sd-guesses input").first
    for shown, act in ((knob, switch.click), (box, box.check)):
        shown.scroll_into_view_if_needed()
        before = pixels(shown)
        act()
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")
        assert pixels(shown) != before
    page.locator("#methods-button").click()
    page.wait_for_selector(DRAWN["methods"][0])
    on, off = (page.locator("#methods input[type=radio]").nth(i) for i in (0, 1))
    assert on.is_checked() and pixels(on) != pixels(off)
    page.locator("#step-button").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-pass")
    ground = "(node) => getComputedStyle(node).backgroundColor"
    for place in (".sd-step .sd-pass:not(.sd-off)", ".sd-step .sd-i-target"):
        assert page.locator(place).first.evaluate(ground) != page.locator("body").evaluate(ground), place


@pytest.mark.long
def test_a_ticked_guess_is_seen(open_page):
    page = open_page(reduced_motion="reduce")
    page.locator("#lossless-button").click()
    box = page.locator(".sd-guesses input").first
    before = pixels(box)
    box.check()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    after = pixels(box)
    assert after != before and box.evaluate("(node) => getComputedStyle(node).appearance") == "auto"


@pytest.mark.long
def test_the_sentence_of_step_stands_beside_its_evidence_and_once(open_page):
    page = open_page(1280, 900, reduced_motion="reduce")
    page.locator("#step-button").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    bar = page.locator(".sd-step [data-part=bar]").bounding_box()["y"]
    for name in ("say", "right"):
        place = page.locator(f".sd-step [data-part={name}]").bounding_box()
        assert place["y"] >= 0 and place["y"] + min(place["height"], 200) <= bar, name
    page.locator(".sd-step [data-part=next]").click()
    assert page.locator(".sd-step [data-part=announce]").inner_text()
    expect(page.locator(".sd-step [data-part=announce]")).to_have_text("")
